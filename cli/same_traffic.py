"""`amqpsniff diff --same-traffic`: the same connections captured at two places."""

from __future__ import annotations

from typing import Any

from .options import Two
from .severities import fails

FATES = {"altered": "error", "lost": "warning", "unrepaired": "warning", "dropped": "warning",
         "doubled": "info", "sender-capture": "info", "receiver-capture": "info"}  # fmt: skip
"""How bad what happened between is, for `--fail-on`. What was sent again needlessly is nothing."""


def same_traffic(two: Two, fail_on: str | None, top: int, form: str) -> int:
    """Compare two captures of the same connections; the exit code."""
    from amqpsniff.compare import SameTraffic

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
    report["failures"] = _failures(report, fail_on)
    _write(report, form)
    if not two.quiet:
        for failure in report["failures"]:
            complain(failure)
    code = max(reading.exit_code for reading in readings)
    return code or (FOUND if report["failures"] else 0)


def _failures(report: dict[str, Any], fail_on: str | None) -> list[str]:
    """Why the exit code is 1, one line each."""
    from amqpsniff.compare.losses import KINDS
    from amqpsniff.compare.same_traffic import WAYS
    from amqpsniff.quantities import octets, plural

    if not report["connections"]["both"]:
        return ["the captures have no connection in common"]
    found = []
    for kind, severity in FATES.items():
        if not fails(severity, fail_on):
            continue
        sums = [report["altered"]] if kind == "altered" else [report[way][kind] for way in WAYS]
        places = sum(one["places"] for one in sums)
        if places:
            text = KINDS.get(kind, "altered on the way")
            size = octets(sum(one["octets"] for one in sums))
            found.append(f"{severity}: {text}: {plural(places, 'place')}, {size}")
    return found


def _write(report: dict[str, Any], form: str) -> None:
    if form == "json":
        from .output import write_json

        write_json(report)
        return
    from .output import Output
    from .render.same_traffic import sections

    output = Output()
    output.show(*sections(report))
