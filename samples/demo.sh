#!/usr/bin/env bash
# What `make demo` runs, with amqpsniff on PATH.
set -eu
cd "$(dirname "$0")"

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run amqpsniff --version
