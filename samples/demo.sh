#!/usr/bin/env bash
# What `make demo` runs, with amqpsniff and its Python first on PATH.
set -eu
cd "$(dirname "$0")"
out=${1:-../build/demo}
mkdir -p "$out"

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run amqpsniff --version
run amqpsniff summary pika_mix.pcap
run amqpsniff inspect blocked.pcap --limit 12
run amqpsniff connections pika_mix.pcap
run amqpsniff follow pika_mix.pcap --connection :43706 --channel 3
run amqpsniff messages aiopika_rpc.pcap --limit 8
run amqpsniff trace aiopika_rpc.pcap --correlation-id eef8d969-fd36-42e8-b94f-8c51934e5273
run amqpsniff sql pika_mix.pcap "SELECT method, outcome, count(*) FROM messages GROUP BY ALL ORDER BY ALL"
run amqpsniff export pika_mix.pcap --table messages --format parquet -o "$out/messages.parquet"
run amqpsniff diagnose lost.pcap

if command -v java >/dev/null 2>&1 && python -c 'import pyspark' 2>/dev/null; then
    run amqpsniff batch pika_mix.pcap node.pcap aiopika_rpc.pcap -o "$out/tables" --report traffic --limit 8
else
    echo "skipped: the Spark batch (it needs Java 17 and the extra \`spark\`)"
fi
