"""Golden outputs: what the commands write for programs, over all captures in the repository.

`python -m tests.golden.outputs` writes them anew and prints what differs from before; `--dry-run`
prints only. The outputs of a command are one file of `outputs`; `xzless` shows it:

    $ summary bunny.pcapng --format json
    {...
"""

from __future__ import annotations

import difflib
import json
import lzma
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

import amqpsniff
from amqpsniff.analysis.report_tables import REPORTS
from tests.cli.running import run
from tests.conftest import CAPTURES, REPO, SAMPLES
from tests.report.pages import data_of, text_of

OUTPUTS = Path(__file__).parent / "outputs"

Line = tuple[str, ...]
"""The arguments of one run; the folder is that of the samples."""

MAX_LINES = 100
"""Lines of a difference that are printed for one run."""

QUERIES = (
    "SELECT method, count(*) AS number FROM frames GROUP BY 1 ORDER BY 1",
    (
        "SELECT exchange, routing_key, outcome, count(*) AS messages, sum(body_size) AS size "
        "FROM messages GROUP BY ALL ORDER BY ALL"
    ),
    (
        "SELECT c.client, c.vhost, h.channel, h.mode, h.delivered, f.code FROM channels AS h "
        "JOIN connections AS c USING (connection_id) LEFT JOIN findings AS f USING (connection_id) "
        "ORDER BY ALL"
    ),
)

CHOICES = (
    ("--where", "method = 'basic.deliver'"),
    ("--from", "0.5", "--to", "2"),
    ("--connection", ":43716"),
    ("--channel", "2", "--limit", "3"),
)
"""Options that choose rows, for a capture of several connections."""

PAIRS = (
    ("compared/before.pcap.gz", "compared/after.pcap.gz"),
    ("../tests/captures/incidents/ab_before.pcap", "../tests/captures/incidents/ab_after.pcap"),
    ("pika_mix.pcap", "node.pcap"),
    ("midstream.pcap", "aiopika_rpc.pcap"),
)

SAME_TRAFFIC = (
    ("compared/path_client.pcap.gz", "compared/path_broker.pcap.gz"),
    ("compared/nat_client.pcap.gz", "compared/nat_broker.pcap.gz"),
    ("../tests/captures/incidents/d_client.pcap", "../tests/captures/incidents/d_broker.pcap"),
)


def samples() -> list[Line]:
    """The samples; those of TLS with their keys too."""
    return [*_opened(SAMPLES), *_opened(SAMPLES / "compared")]


def real() -> list[Line]:
    """Captures of real traffic."""
    folders = (CAPTURES, CAPTURES / "incidents", CAPTURES / "own", CAPTURES / "settling")
    return [*samples(), *(line for folder in folders for line in _opened(folder))]


def every() -> list[Line]:
    """All captures."""
    return [*real(), *_opened(CAPTURES / "hostile")]


def _opened(folder: Path) -> Iterator[Line]:
    for path in sorted(folder.glob("*.pcap*")):
        name = _name(path)
        yield (name,)
        for ending, option in ((".keys", "--tls-keylog"), (".key", "--tls-key")):
            if path.with_suffix(ending).exists():
                yield name, option, _name(path.with_suffix(ending))


def _name(path: Path) -> str:
    """A path as seen from the samples."""
    inside = path.is_relative_to(SAMPLES)
    return str(path.relative_to(SAMPLES)) if inside else f"../{path.relative_to(REPO)}"


def over(captures: Iterable[Line], command: str, *options: str) -> list[Line]:
    """A command over each of these captures."""
    return [(command, *capture, *options) for capture in captures]


def traces() -> list[Line]:
    """Traces of the first routing key and of the first message id of each capture."""
    lines: list[Line] = []
    for capture in real():
        rows = amqpsniff.open(SAMPLES / capture[0]).table(
            "messages", columns=("method", "routing_key", "message_id")
        )
        for column in ("routing_key", "message_id"):
            values = (value for value in rows[column].to_pylist() if value)
            for value in islice(values, 1):
                option = f"--{column.replace('_', '-')}={value}"
                lines.append(("trace", *capture, option, "--limit", "20", "--format", "ndjson"))
    return lines


def follows() -> list[Line]:
    """The first connection of each sample."""
    lines: list[Line] = []
    for capture in samples():
        names = amqpsniff.open(SAMPLES / capture[0]).table("connections")["connection_id"]
        for name in islice(names.to_pylist(), 1):
            lines.append(("follow", *capture, "--connection", name, "--format", "ndjson"))
    return lines


def chosen() -> list[Line]:
    """Rows chosen by each option that chooses some."""
    return [
        (command, "pika_mix.pcap", *options, "--format", "ndjson")
        for command in ("inspect", "messages", "connections", "channels", "links", "diagnose")
        for options in CHOICES
        if command in ("inspect", "messages") or options[0] != "--where"
    ]


_REFUSED = re.compile(r"tshark [\d.]+ does not read it \(.*\)")
"""What one version says of a file, others say otherwise."""

KINDS: dict[str, Callable[[], list[Line]]] = {
    "summary": lambda: over(every(), "summary", "--format", "json"),
    "connections": lambda: over(every(), "connections", "--format", "ndjson"),
    "channels": lambda: over(every(), "channels", "--format", "ndjson"),
    "links": lambda: over(every(), "links", "--format", "ndjson"),
    "messages": lambda: over(every(), "messages", "--format", "ndjson"),
    "csv": lambda: [
        line
        for command in ("connections", "channels", "messages")
        for line in over(samples(), command, "--format", "csv")
    ],
    "inspect": lambda: over(every(), "inspect", "--format", "ndjson"),
    "chosen": chosen,
    "diagnose": lambda: over(every(), "diagnose", "--format", "ndjson"),
    "sarif": lambda: over(samples(), "diagnose", "--format", "sarif"),
    "topology": lambda: [
        *over(every(), "topology", "--format", "json"),
        *over(samples(), "topology", "--format", "dot"),
        *over(samples(), "topology", "--format", "mermaid"),
    ],
    "trace": traces,
    "follow": follows,
    "diff": lambda: [
        *(("diff", *pair, "--format", "json") for pair in PAIRS),
        *(("diff", "--same-traffic", *pair, "--format", "json") for pair in SAME_TRAFFIC),
    ],
    "report": lambda: over(
        [*_opened(SAMPLES), *_opened(CAPTURES / "incidents")], "report", "-o", "-"
    ),
    "report-table": lambda: [
        ("report-table", report, name, "--format", "ndjson")
        for report in REPORTS
        for name in ("node.pcap", "lost.pcap", "pika_mix.pcap", "php_churn.pcap")
    ],
    "export": lambda: [
        ("export", name, "-t", table)
        for table in ("frames", "messages", "connections", "channels", "links", "findings")
        for name in ("bunny.pcapng", "lost.pcap")
    ],
    "sql": lambda: [
        ("sql", name, query, "--format", "ndjson")
        for query in QUERIES
        for name in ("bunny.pcapng", "lost.pcap", "pika_mix.pcap", "zerowindow.pcap")
    ],
    "bodies": lambda: over(samples(), "bodies", "--decode", "-o", "{folder}/bodies"),
    "protocol": lambda: [
        ("explain", "--format", "json"),
        ("spec", "--format", "json"),
        *(("spec", name, "--format", "json") for name in ("codes", "tags", "frames", "headers")),
    ],
}
"""What is kept, by the file that it is kept in."""


def outputs(lines: Iterable[Line]) -> dict[str, str]:
    """The outputs of these runs, by their arguments."""
    with tempfile.TemporaryDirectory() as folder:
        return {
            shlex.join(line): _output(line, Path(folder) / str(number))
            for number, line in enumerate(lines)
        }


def _output(line: Line, folder: Path) -> str:
    folder.mkdir()
    result = run(*(word.format(folder=folder) if word[0] == "{" else word for word in line))
    written = _page(result.out) if line[0] == "report" and result.out else result.out
    for path in sorted(folder.rglob("manifest*")):
        written += path.read_text()
    complaint = result.err.replace(str(folder), "FOLDER") + f"exit {result.code}\n"
    text = written if (result.code, result.err) == (0, "") else f"{written}{complaint}"
    places = {REPO.as_uri(): "file:///REPO", str(REPO): "/REPO", amqpsniff.__version__: "VERSION"}
    for place, name in places.items():
        text = text.replace(place, name)
    text = _REFUSED.sub("tshark does not read it", text)
    return text if text.endswith("\n") or not text else f"{text}\n"


def _page(page: str) -> str:
    """The text of a report, a piece a line, and the values of its charts and conversations."""
    pieces = re.split(r"\s*<[^>]*>\s*", text_of(page))
    values = [
        json.dumps(value, ensure_ascii=False)
        for values in data_of(page).values()
        for value in values
    ]
    return "".join(f"{piece}\n" for piece in (*filter(None, pieces), *values))


@cache
def kept(kind: str) -> dict[str, str]:
    """The outputs that are kept."""
    text = lzma.decompress((OUTPUTS / f"{kind}.txt.xz").read_bytes()).decode()
    parts = re.split(r"^\$ (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def keep(kind: str, found: dict[str, str]) -> None:
    """Write the outputs of a kind."""
    OUTPUTS.mkdir(exist_ok=True)
    text = "".join(f"$ {line}\n{output}" for line, output in found.items())
    (OUTPUTS / f"{kind}.txt.xz").write_bytes(lzma.compress(text.encode(), preset=9))


def differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """Lines that say what differs, JSON spread over lines."""
    for line in {**before, **after}:
        if line not in after:
            yield f"$ {line}: is gone"
        elif line not in before:
            yield f"$ {line}: is new"
        elif before[line] != after[line]:
            yield f"$ {line}"
            compared = difflib.unified_diff(
                *_different(before[line].splitlines(), after[line].splitlines()), lineterm="", n=2
            )
            yield from islice(compared, 2, MAX_LINES)


def _different(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Two texts from their first different line to their last, as far as one is printed."""
    same = zip(before, after, strict=False)
    begin = next((at for at, (one, other) in enumerate(same) if one != other), None)
    begin = min(len(before), len(after)) if begin is None else begin
    while len(before) > begin < len(after) and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    most = slice(begin, begin + MAX_LINES)
    return _spread(before[most]), _spread(after[most])


def _spread(lines: list[str]) -> list[str]:
    return [one for line in lines for one in _values(line)]


def _values(line: str) -> list[str]:
    if not line.startswith(('{"', "[")):
        return [line]
    try:
        return json.dumps(json.loads(line), ensure_ascii=False, indent=1).splitlines()
    except ValueError:
        return [line]


def main(*options: str) -> None:
    """Print what differs, and unless it is a dry run keep what is found."""
    for kind, lines in KINDS.items():
        found = outputs(lines())
        before = kept(kind) if (OUTPUTS / f"{kind}.txt.xz").exists() else {}
        for line in differences(before, found):
            print(line)
        if "--dry-run" not in options and found != before:
            keep(kind, found)


if __name__ == "__main__":
    main(*sys.argv[1:])
