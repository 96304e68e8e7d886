"""The bars: amqpsniff against tshark, whole process against whole process, on one core.

    python benchmarks/bench_tshark.py [--mix mixed] [--megabytes 260] [--rounds 3]

makes a capture of real RabbitMQ traffic repeated with fresh addresses, runs both programs on it in
turn in this one run, and prints the ratios of the medians with each bar beside them. The columns
asked of tshark are those of ours that it has, all arguments of methods among them, which are one
column here. It exits with 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from captures import MIXES, make
from measure import contest

FIELDS = (
    "frame.number frame.time_epoch ip.src tcp.srcport ip.dst tcp.dstport tcp.stream tcp.seq "
    "amqp.channel amqp.type amqp.length amqp.method.class amqp.method.method"
).split()
ARGUMENTS = [
    *"amqp.init.protocol amqp.init.version_major amqp.init.version_minor amqp.field".split(),
    *(
        f"amqp.method.arguments.{name}"
        for name in (
            "active arguments auto_delete capabilities challenge channel_id channel_max class_id "
            "client_properties cluster_id consume_rate consumer_count consumer_tag content_size "
            "delivery_tag destination dtx_identifier durable exchange exclusive filter frame_max "
            "global heartbeat host identifier if_empty if_unused immediate insist internal "
            "known_hosts locale locales mandatory mechanism mechanisms message_count meta_data "
            "method_id multiple no_ack no_local nowait out_of_band passive prefetch_count "
            "prefetch_size queue read realm reason redelivered reply_code reply_text requeue "
            "response routing_key server_properties source staged_size ticket type version_major "
            "version_minor virtual_host write"
        ).split()
    ),
]
PROPERTIES = [
    "amqp.header.body-size",
    *(
        f"amqp.method.properties.{name}"
        for name in (
            "content_type content_encoding headers delivery_mode priority correlation_id reply_to "
            "expiration message_id timestamp type user_id app_id cluster_id"
        ).split()
    ),
]
DELIVERIES = [
    *"amqp.message_in amqp.ack_in".split(),
    *(
        f"amqp.method.arguments.{name}"
        for name in (
            "exchange routing_key consumer_tag reply_text delivery_tag reply_code redelivered "
            "mandatory immediate queue publish_number"
        ).split()
    ),
]
MEGABYTES_BAR = 300


def tshark_fields(capture: Path, fields: list[str]) -> list[str]:
    """tshark printing these fields of the AMQP packets."""
    chosen = [word for field in fields for word in ("-e", field)]
    return ["tshark", "-r", str(capture), "-Y", "amqp", "-T", "fields", *chosen]


def contests(capture: Path, folder: Path) -> dict[str, tuple[float, list[str], list[str]]]:
    """What is measured: name → (bar, our command, tshark's)."""
    program = shutil.which("amqpsniff", path=sysconfig.get_path("scripts")) or "amqpsniff"
    export = [program, "export", str(capture), "-q", "--table"]
    frames = tshark_fields(capture, FIELDS + ARGUMENTS)
    messages = tshark_fields(capture, FIELDS + DELIVERIES + PROPERTIES)
    ek = ["tshark", "-r", str(capture), "-Y", "amqp", "-T", "ek"]
    phs = ["tshark", "-r", str(capture), "-q", "-z", "io,phs"]
    return {
        "frames to Parquet": (25, [*export, "frames", "-o", str(folder / "f.parquet")], frames),
        "messages to Parquet": (
            25,
            [*export, "messages", "-o", str(folder / "m.parquet")],
            messages,
        ),
        # both to standard output: a gigabyte of text measures the disk otherwise
        "frames to NDJSON": (25, [*export, "frames", "--format", "ndjson"], ek),
        "summary": (10, [program, "summary", str(capture), "-q"], phs),
    }


def main() -> int:
    """Measure everything; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mix", choices=sorted(MIXES), default="mixed")
    parser.add_argument("--megabytes", type=int, default=260)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="measure only contests with this word in their name")
    options = parser.parse_args()
    if shutil.which("tshark") is None:
        print("skipped: tshark is not installed")
        return 0
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        capture = make(options.mix, options.megabytes * 1_000_000, Path(folder) / "big.pcap")
        size = capture.stat().st_size
        print(f"{options.mix}: {size / 1e6:.0f} MB, one core, medians")
        for name, (bar, ours, theirs) in contests(capture, Path(folder)).items():
            if options.only and options.only not in name:
                continue
            rounds = 1 if "ek" in theirs else options.rounds
            missed += not contest(name, bar, ours, theirs, rounds, MEGABYTES_BAR, size)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
