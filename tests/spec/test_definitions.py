"""Every row against the specifications and the brokers' own definitions, and the other way round.

Where we differ on purpose the difference stands in `DELIBERATE` with its reason; a difference that
is not listed fails, and so does a listed one that is no longer there.
"""

from functools import cache
from pathlib import Path

import pytest

from amqpsniff.spec import CONSTANTS, METHODS, REPLY_CODES, Method, methods_for, properties_for
from tests.conftest import SHARED
from tests.spec.definitions import Definition, Definitions, from_json, from_xml

FACTS = SHARED / "facts" / "methods"
DEBIAN = Path("/usr/share/amqp/specs")

SOURCES = {
    "0-8s.json": "0-8",
    "0-8r.json": "0-8",
    "0-9s.json": "0-9",
    "0-9-1sx.json": "0-9-1",
    "0-9-1r.json": "0-9-1",
    "credit.json": "0-9-1",
    "0-8/amqp0-8.stripped.xml": "0-8",
    "0-8-qpid/amqp0-8-qpid.stripped.xml": "0-8",
    "0-9/amqp0-9.stripped.xml": "0-9",
    "0-9-qpid/amqp0-9-qpid.stripped.xml": "0-9",
    "0-9-1/amqp0-9-1.stripped.xml": "0-9-1",
    "0-9-1-qpid/amqp0-9-1.stripped.xml": "0-9-1",
    "0-9-1-rabbit/amqp0-9-1.stripped.extended.xml": "0-9-1",
}

# what 0-9-1 only reserves had these meanings before, or has them in RabbitMQ
RESERVED = {
    "ticket", "capabilities", "insist", "out_of_band", "channel_id", "known_hosts", "cluster_id",
    "auto_delete", "internal",
}  # fmt: skip

OLD = ("0-8s.json", "0-9s.json", "0-8/", "0-9/", "0-8-qpid/", "0-9-qpid/")
EXTENDED = ("0-9-1sx.json", "0-9-1-rabbit/")
LATEST = ("0-9-1sx.json",)  # Debian's copy of RabbitMQ's XML is older
ORIGINAL = ("0-9-1/", "0-9-1-qpid/")
NINE = ("0-9s.json", "0-9/", "0-9-qpid/")

DELIBERATE = {
    # what differs: the sources where it does (a prefix of their names), why
    "basic.cancel sender": (OLD + ORIGINAL, "RabbitMQ's consumer cancel notify"),
    "basic.cancel-ok sender": (OLD + ORIGINAL, "answers a cancel of either side"),
    "basic.ack sender": (NINE + ORIGINAL, "the server confirms publishes"),
    "connection.blocked sender": (LATEST, "RabbitMQ has no receiver for it, clients have"),
    "connection.unblocked sender": (LATEST, "RabbitMQ has no receiver for it, clients have"),
    "connection.update-secret sender": (LATEST, "clients send it to RabbitMQ"),
    "connection.update-secret-ok sender": (LATEST, "clients send update-secret to RabbitMQ"),
    "basic.recover replies": (
        ("0-8s.json", "0-8/", "0-9-1sx.json", "0-9-1/", "0-9-1-rabbit/"),
        "0-8: Qpid answers, one row serves both; 0-9-1: the XML forgets that recover-ok answers",
    ),
    "basic.recover synchronous": (
        ("0-9-1sx.json", "0-9-1/", "0-9-1-rabbit/"),
        "the XML forgets it, RabbitMQ's own definition says it",
    ),
    "basic.recover-sync replies": (("0-9-1-qpid/",), "the XML forgets them"),
    "basic.recover-sync synchronous": (("0-9-qpid/", "0-9-1-qpid/"), "the XML forgets it"),
    "file.open-ok synchronous": (("0-8r.json",), "the specification has file.stage answer it"),
    "exchange.bound replies": (("0-8-qpid/",), "the XML forgets that bound-ok answers"),
    "exchange.bound synchronous": (("0-8-qpid/",), "the XML forgets that bound-ok answers"),
    "basic.consume argument filter": (("0-9s.json", "0-9/"), "0-9-1 and Qpid call it arguments"),
    "basic property cluster_id": (ORIGINAL + EXTENDED, "reserved in 0-9-1, named in RabbitMQ's"),
}

PREVIEW = {
    # Qpid's preview of 0-10 classes in 0-9 and OpenAMQ's classes are in no file we can hold them to
    "dtx-demarcation", "dtx-coordination", "binding", "execution", "cluster", "direct", "restms",
}  # fmt: skip


def _path(source: str) -> Path:
    return (FACTS if source.endswith(".json") else DEBIAN) / source


@cache
def _read(source: str) -> Definitions:
    path = _path(source)
    if not path.is_file():
        pytest.skip(f"{source} is not here")
    return from_json(path) if path.suffix == ".json" else from_xml(path)


def _row(dialect: str, definition: Definition) -> Method:
    """The row for a definition: that of its name and layout among the readings of its id."""
    named = [
        row
        for row in methods_for(dialect, definition.class_id, definition.method_id)
        if row.name == definition.name
    ]
    assert named, f"no row for {definition.name} in {dialect}"
    types = [kind for _, kind in definition.arguments]
    fitting = [row for row in named if [argument.type for argument in row.arguments] == types]
    assert fitting, f"{definition.name} in {dialect}: arguments should be {definition.arguments}"
    return fitting[0]


def _differences(dialect: str, definition: Definition) -> set[str]:
    row, name = _row(dialect, definition), definition.name
    found = set()
    for argument, (theirs, _) in zip(row.arguments, definition.arguments, strict=True):
        if theirs.startswith("reserved") and argument.name in RESERVED:
            continue
        if argument.name != theirs:
            found.add(f"{name} argument {theirs}")
    if row.content != definition.content:
        found.add(f"{name} content")
    if row.synchronous != definition.synchronous:
        found.add(f"{name} synchronous")
    if definition.replies is not None and set(row.replies) != definition.replies:
        found.add(f"{name} replies")
    if definition.sender is not None and row.sender != definition.sender:
        found.add(f"{name} sender")
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_a_definition_has_its_row(source: str) -> None:
    dialect = SOURCES[source]
    definitions = _read(source)
    found: set[str] = set()
    for definition in definitions.methods:
        found |= _differences(dialect, definition)
    for class_id, theirs in definitions.properties.items():
        if source == "credit.json":
            continue  # methods only
        ours = properties_for(dialect, class_id)
        assert [row.type for row in ours] == [kind for _, kind in theirs]
        names = [row.name for row in ours]
        found |= {
            f"basic property {name}"
            for name, (their, _) in zip(names, theirs, strict=True)
            if name != their
        }
    listed = {
        difference for difference, (sources, _) in DELIBERATE.items() if source.startswith(sources)
    }
    assert found == listed


def test_every_deliberate_difference_names_a_source() -> None:
    for difference, (sources, reason) in DELIBERATE.items():
        assert reason, difference
        assert all(any(s.startswith(prefix) for s in SOURCES) for prefix in sources), difference


def test_a_row_has_its_definition() -> None:
    """Every row and dialect is in a file of that dialect, or is a listed exception."""
    known: dict[str, set[tuple[int, int, str, str]]] = {}
    for source, dialect in SOURCES.items():
        if not _path(source).is_file():
            pytest.skip(f"{source} is not here")
        known.setdefault(dialect, set()).update(
            (row.class_id, row.method_id, row.name, "".join(kind for _, kind in row.arguments))
            for row in _read(source).methods
        )
    strays = set()
    for row in METHODS:
        types = "".join(argument.type for argument in row.arguments)
        key = (row.class_id, row.method_id, row.name, types)
        for dialect in row.dialects:
            # RabbitMQ serves a 0-9 header with 0-9-1 methods
            same = dialect if (row.source, dialect) != ("rabbitmq", "0-9") else "0-9-1"
            if row.class_name not in PREVIEW and key not in known[same]:
                strays.add((row.name, row.source, dialect))
    assert strays == {
        ("exchange.query", "qpid", "0-9"),  # preview of 0-10
        ("exchange.query-ok", "qpid", "0-9"),
        ("message.transfer", "qpid", "0-9"),  # its arguments are not known
        ("queue.unbind", "openamq", "0-9"),
        ("queue.unbind", "openamq", "0-9-1"),
    }


@pytest.mark.parametrize("source", SOURCES)
def test_constants_and_reply_codes(source: str) -> None:
    dialect = SOURCES[source]
    for name, (value, kind) in _read(source).constants.items():
        if kind or name == "reply-success":
            (row,) = [row for row in REPLY_CODES if row.code == value]
            assert (row.name, row.kind) == (
                name,
                kind.split()[0].split("-")[0] if kind else "success",
            )
            assert dialect in row.dialects
        else:
            values = [
                (row.name, row.value)
                for row in CONSTANTS
                if dialect in row.dialects or (row.value == 8192 and source == "0-8r.json")
            ]
            assert (name, value) in values


@pytest.mark.parametrize("dialect", ["0-8", "0-9", "0-9-1"])
def test_no_reply_code_of_ours_is_invented(dialect: str) -> None:
    theirs = {
        value
        for source, of in SOURCES.items()
        if of == dialect
        for value, kind in _read(source).constants.values()
        if kind or value == 200
    }
    invented = {row.code for row in REPLY_CODES if dialect in row.dialects} - theirs
    assert invented == ({505} if dialect == "0-9" else set())  # RabbitMQ sends it there
