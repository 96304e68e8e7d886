"""`amqpsniff diff --same-traffic`: the same connections captured at two places."""

from __future__ import annotations

from typing import Any

from .options import Two


def same_traffic(two: Two, fail_on: str | None, top: int, form: str) -> int:
    """Compare two captures of the same connections; the exit code."""
    from amqpsniff.compare import SameTraffic
    from amqpsniff.compare.same_traffic import failures

    from .entry import FOUND, complain
    from .progress import Progress
    from .reading import Reading

    readings = [Reading(side) for side in two.sides()]
    traffic = SameTraffic(*(reading.capture for reading in readings))
    try:
        with Progress(not two.quiet) as bar:
            for packets in traffic.read():
                bar.at(packets)
        report = traffic.report(top)
    finally:
        traffic.close()
    for reading, sighting in zip(readings, traffic.sightings, strict=True):
        reading.capture.totals = sighting.totals
        reading.judge(sighting.found)
    report["failures"] = failures(report, fail_on)
    _write(report, form)
    if not two.quiet:
        for failure in report["failures"]:
            complain(failure)
    code = max(reading.exit_code for reading in readings)
    return code or (FOUND if report["failures"] else 0)


def _write(report: dict[str, Any], form: str) -> None:
    if form == "json":
        from .output import write_json

        write_json(report)
        return
    from .output import Output
    from .render.same_traffic import sections

    output = Output()
    output.show(*sections(report))
