"""Packs: what frameworks and conventions write into messages, as rows of `packs.toml`.

A pack has conditions that recognise its messages (`when`) and the sources of columns. What
recognises a message are names and words that repeat: names of headers and of the first level of a
JSON body, exchange, content type and type. They are the `Shape` of a message, and messages of one
shape have one `Reading`, which is made once. Nothing here looks at a message;
`amqpsniff.decode.meanings` does.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from amqpsniff.errors import UsageError
from amqpsniff.packs.forms import FORMS

WORDS = ("operation", "error_type")
"""Columns of texts that repeat."""

KEYS = ("message_key", "conversation_key", "parent_key", "trace_id", "span_id")
"""Columns of texts that differ from message to message."""

NUMBERS = ("retry_count", "not_before")
"""Columns of numbers; `not_before` is a time, in microseconds since 1970."""

COLUMNS = ("framework", *WORDS, *KEYS, *NUMBERS)
"""Columns of messages that packs fill."""

CALLS = ("request_key", "reply_address", "answers_key")
"""Values that link a request with its reply: the id by which the reply will name it, where the
reply is to go (a message without it is no request, where a pack names a place for it), and the id
of the request that a message answers."""

VALUED = (
    "clocks-differ",
    "delay-too-long",
    "fanout-by-header",
    "federation-hops",
    "header-secret",
    "message-expired",
    "message-loops",
    "workers-controlled",
)
"""Findings that a value shows: their codes are keys with a source of it."""

LOOKED = (*VALUED, "addressed", "greets", "most_tries", "offset")
"""Values that only findings use: `addressed` is the number of consumers that answer a request
that all get (0: that is not known), `greets` is there where a request needs no answer if nobody got
it, `most_tries` is the number of tries after which its framework gives a message up, `offset` that
of a message of a stream."""

SAMPLED = ("unsampled", "sequence")
"""Values that are looked at in some messages of a connection: a tracer's word that nothing of this
trace is kept, and the number that a client gives a publish."""

FIELDS = (*COLUMNS[1:], *CALLS, *LOOKED, *SAMPLED)
"""What a pack has sources for."""

FINDINGS = (
    "delay-levels-old",
    "firehose-on",
    "header-secret",
    "message-skipped",
    "operation-failed",
    "retries-exhausted",
    "serialized-code",
    "trace-context-never",
)
"""Findings that a pack may raise for messages of a shape."""

ROLES = ("task", "task-v1", "result", "notification", "event")
"""Kinds of messages whose readers are checked for findings."""

DEMANDED = ("message_id",)
"""Properties without which clients of a framework refuse a message."""

SHAPE = ("exchange", "content_type", "type")
"""Properties that recognise a message."""

PROPERTIES = (*SHAPE, "routing_key", "message_id", "correlation_id", "reply_to", "app_id")
"""Properties that values are taken from."""

NAMED = ("header", "body", "client")
"""Places in which a value has a name: headers, the first level of a JSON body, and the client
properties of connection.start-ok."""

_FLAGS = ("internal", "awaited", "broadcast")
_OTHER_KEYS = ("title", "framework", "when", "client", "application", "findings", "role", "demands",
               *_FLAGS)  # fmt: skip
_PLACE = r"(?:(?P<place>header|body|client):(?P<name>[^ ]+)|(?P<property>[a-z_]+))"
_SOURCE = re.compile(
    _PLACE + r"(?: \$(?P<path>(?:\.[^.\[\] ]+|\[-?\d+\])+))?"
    r"(?: ~ (?P<pattern>.+?))?(?: as (?P<form>\w+))?"
    r"(?: if header:(?P<header>[^ ]+)(?: = (?P<wanted>.+))?)?"
)
_CONDITION = re.compile(r"(?P<no>not )?" + _PLACE + r"(?: (?P<relation>[=~]) (?P<text>.+))?")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]")


@dataclass(frozen=True)
class ValueSource:
    """The place of a value.

    Attributes:
        place: `header`, `body`, `client` or `property`.
        name: Name of the header, of the key, or of the column.
        path: Names and places inside the value; a step into a text reads the text as JSON.
        pattern: Of a text only its first group; null without a match.
        form: A function of `amqpsniff.packs.forms` that the value goes through.
        only: (header, its text; None for any) without which there is no value; None for no such
            condition.
    """

    place: str
    name: str
    path: tuple[str | int, ...] = ()
    pattern: re.Pattern[str] | None = None
    form: str | None = None
    only: tuple[str, str | None] | None = None


@dataclass(frozen=True)
class Condition:
    """A condition on a message or a client: a name exists, or a text matches."""

    place: str
    name: str
    text: str | None = None
    pattern: re.Pattern[str] | None = None
    negated: bool = False

    def holds(self, value: object) -> bool:
        """True if a value, or None without one, meets the condition."""
        if self.text is not None:
            is_met = value == self.text
        elif self.pattern is not None:
            is_met = isinstance(value, str) and self.pattern.search(value) is not None
        else:
            is_met = value is not None
        return is_met != self.negated


MAX_READINGS = 1_024
"""Readings that are remembered: programs have a few."""

Alternatives = tuple[tuple[Condition, ...], ...]
"""Alternatives; all conditions of one of them must hold."""


@dataclass(frozen=True)
class Pack:
    """One framework or convention: its marks and its values.

    Attributes:
        name: Name of its section.
        framework: Value of the column `framework`; None for a convention.
        when: What recognises a message.
        fields: Sources of columns; the first that has a value gives it.
        client: What recognises a client.
        application: Sources of the client's application.
        findings: Codes, each with conditions that a recognised message has to meet besides.
        role: What its messages are, one of `ROLES`, or None.
        demands: A property without which its clients refuse a message, or None.
        internal: Its messages are the framework's own, and not of the application.
        awaited: Who sends a request waits for the reply. Else it is one that may be answered.
        broadcast: Several may answer a request.
    """

    name: str
    title: str
    framework: str | None
    when: Alternatives
    fields: dict[str, tuple[ValueSource, ...]]
    client: Alternatives
    application: tuple[ValueSource, ...]
    findings: tuple[tuple[str, tuple[Condition, ...]], ...] = ()
    role: str | None = None
    demands: str | None = None
    internal: bool = False
    awaited: bool = False
    broadcast: bool = False


Words = tuple[str | None, str | None, str | None]
"""Texts of the properties `SHAPE`; None for properties that a message does not have."""


@dataclass(frozen=True)
class Shape:
    """Properties that messages recognised alike have in common.

    Attributes:
        words: Those of the message.
        headers: Those names of headers that packs name.
        body: Those names of a JSON body that packs name; None while the body was not looked at.
    """

    words: Words
    headers: frozenset[str]
    body: frozenset[str] | None = None


@dataclass(frozen=True)
class Reading:
    """The reading of messages of a shape.

    Attributes:
        framework: Value of the column; None if none was recognised.
        fields: (column, its sources) for the columns that can have a value.
        needs_body: The body was not looked at and must be.
        findings: Codes that the shape shows.
        traces: Conventions of tracing that it follows, by the names of their packs.
        role: That of its framework; `dead-letter` for what a framework has put aside.
        internal, awaited, broadcast: See `Pack`.
    """

    framework: str | None
    fields: tuple[tuple[str, tuple[ValueSource, ...]], ...]
    needs_body: bool
    findings: tuple[str, ...] = ()
    traces: tuple[str, ...] = ()
    role: str | None = None
    internal: bool = False
    awaited: bool = False
    broadcast: bool = False


class Packs:
    """All packs of a run, in the order in which they are tried."""

    def __init__(self, packs: Iterable[Pack]) -> None:
        self.packs = tuple(packs)
        self._of_words = [
            [
                condition
                for condition in self._conditions()
                if (condition.place, condition.name) == ("property", name)
            ]
            for name in SHAPE
        ]
        self._quick = [
            (
                frozenset(condition.text for condition in conditions),
                list(
                    dict.fromkeys(
                        condition.pattern.search for condition in conditions if condition.pattern
                    )
                ),
            )
            for conditions in self._of_words
        ]
        self._of_place = {
            place: [
                (pack, alternative)
                for pack in self.packs
                for alternative in pack.client
                if all(condition.place == place for condition in alternative)
            ]
            for place in ("client", "property")
        }
        self._alike: dict[object, str] = {}
        self._readings: dict[tuple[object, ...], Reading] = {}

    def _conditions(self) -> dict[Condition, None]:
        """The conditions of all packs, without repeats."""
        conditions = [
            condition
            for pack in self.packs
            for alternative in pack.when
            for condition in alternative
        ]
        conditions += [
            condition
            for pack in self.packs
            for _, alternative in pack.findings
            for condition in alternative
        ]
        return dict.fromkeys(conditions)

    @lru_cache(maxsize=32)  # noqa: B019 (packs are few, and `load` keeps them)
    def names(self, place: str) -> dict[str, tuple[str, ...]]:
        """The names that packs look for in headers or bodies, each with those that paths look for
        inside its value."""
        sources = [
            source
            for pack in self.packs
            for column_sources in pack.fields.values()
            for source in column_sources
        ]
        items: list[Condition | ValueSource] = [*self._conditions(), *sources]
        names: dict[str, dict[str, None]] = {item.name: {} for item in items if item.place == place}
        for source in sources:
            if source.only and place == "header":
                names.setdefault(source.only[0], {})
            if source.place == place and source.path and isinstance(source.path[0], str):
                names[source.name][source.path[0]] = None
        return {name: tuple(inside) for name, inside in names.items()}

    def least_body(self) -> int:
        """Bytes of the shortest object of JSON that has one of the names looked for in bodies."""
        return min(map(len, self.names("body")), default=0) + len('{"":0}')

    @lru_cache(maxsize=1024)  # noqa: B019 (packs are few, and `load` keeps them)
    def alike(self, index: int, word: str | None) -> str | None:
        """A word for the property at an index of `SHAPE` that meets the same conditions, always the
        same one: clients may make up names, of which most meet no condition."""
        if word is None:
            return None
        texts, searches = self._quick[index]
        if word not in texts:
            for search in searches:
                if search(word):
                    break
            else:
                return self._alike.setdefault(index, word)
        results = tuple([condition.holds(word) for condition in self._of_words[index]])
        return self._alike.setdefault((index, results), word)

    def reading(self, shape: Shape, columns: Collection[str] = COLUMNS) -> Reading:
        """The reading of messages of a shape: their first framework, and all conventions; `columns`
        are the requested ones of `FIELDS`.

        A framework that is recognised without the body comes before others that need the body.
        Shapes whose words are `alike` are read once.
        """
        alike = tuple(map(self.alike, count(), shape.words))
        key = alike, shape.headers, shape.body, tuple(columns)
        reading = self._readings.get(key)
        if reading is None:
            if len(self._readings) >= MAX_READINGS:
                self._readings.clear()
            reading = self._readings[key] = self._read(shape, columns)
        return reading

    def _read(self, shape: Shape, columns: Collection[str]) -> Reading:
        head = Shape(shape.words, shape.headers)
        early_framework = next(
            (pack.framework for pack in self.packs if pack.framework and _shown(pack.when, head)),
            None,
        )
        framework: Pack | None = None
        chosen = []
        needs_body = False
        for pack in self.packs:
            if pack.framework and (framework or early_framework not in (None, pack.framework)):
                continue
            is_shown = _shown(pack.when, shape)
            if is_shown is None:
                needs_body = True
                early_framework = None if pack.framework else early_framework
            elif is_shown:
                chosen.append(pack)
                framework = pack if pack.framework else framework
        chosen.sort(key=lambda pack: pack.framework is None)
        fields: dict[str, list[ValueSource]] = {}
        for pack in chosen:
            for column, sources in pack.fields.items():
                if column not in columns:
                    continue
                possible = [source for source in sources if _may_be(source, shape)]
                fields.setdefault(column, []).extend(possible)
        if shape.body is None:
            needs_body |= any(
                source.place == "body"
                for column_sources in fields.values()
                for source in column_sources
            )
        rows = tuple(
            (column, tuple(column_sources))
            for column, column_sources in fields.items()
            if column_sources
        )
        codes = dict.fromkeys(
            code
            for pack in chosen
            for code, conditions in pack.findings
            if _shown((conditions,), shape)
        )
        undecided = needs_body and early_framework is None
        name = framework.framework if framework and not undecided else None
        flags = (any(getattr(pack, flag) for pack in chosen) for flag in _FLAGS)
        traces = (pack.name for pack in chosen if "trace_id" in pack.fields and not pack.framework)
        role = next((pack.role for pack in chosen if pack.role), None)
        role = "dead-letter" if "retries-exhausted" in codes else role
        return Reading(name, rows, needs_body, tuple(codes), tuple(traces), role, *flags)

    def client(self, properties: dict[str, Any]) -> tuple[str | None, str | None]:
        """(framework, application) of a client that has these properties; None for unknown."""
        pack = self.client_pack(properties)
        if pack is None:
            return None, None
        values = (properties.get(source.name) for source in pack.application)
        texts = (text for text in values if isinstance(text, str) and text)
        return pack.framework, next(texts, None)

    def client_pack(self, properties: dict[str, Any]) -> Pack | None:
        """The pack that recognises a client by its properties, or None."""
        return self._of_client("client", properties)

    def uses(self, queue: str) -> bool:
        """True if the name of a queue shows what its client is."""
        return self._of_client("property", {"queue": queue}) is not None

    def _of_client(self, place: str, values: dict[str, Any]) -> Pack | None:
        for pack, conditions in self._of_place[place]:
            if all(condition.holds(values.get(condition.name)) for condition in conditions):
                return pack
        return None


def _shown(alternatives: Alternatives, shape: Shape) -> bool | None:
    """True if a message of the shape is recognised; None if its body decides that."""
    answer: bool | None = False
    for alternative in alternatives:
        unread = False
        for condition in alternative:
            if condition.place == "body" and shape.body is None:
                unread = True
            elif not condition.holds(_value(condition, shape)):
                break
        else:
            if not unread:
                return True
            answer = None
    return answer


def _value(condition: Condition, shape: Shape) -> object:
    if condition.place == "property":
        return shape.words[SHAPE.index(condition.name)]
    names = shape.headers if condition.place == "header" else shape.body or ()
    return True if condition.name in names else None


def _may_be(source: ValueSource, shape: Shape) -> bool:
    if source.place == "header":
        return source.name in shape.headers
    if source.place == "body":
        return shape.body is None or source.name in shape.body
    return True


class PackFile(NamedTuple):
    """A file of packs that was read."""

    name: str
    text: str

    @classmethod
    def read(cls, path: str | os.PathLike[str] | PackFile) -> PackFile:
        """The file at a path; raises UsageError for one that cannot be read."""
        if isinstance(path, PackFile):
            return path
        try:
            return cls(str(path), Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"packs {path} cannot be read: {error}") from None

    def __fspath__(self) -> str:
        return self.name


@lru_cache(maxsize=16)
def load(*files: PackFile) -> Packs:
    """The packs of files, and after them our own; raises UsageError for an error in a file."""
    packs = [pack for file in files for pack in parse(file.text, file.name)]
    return Packs((*packs, *_own()))


@lru_cache(maxsize=1)
def _own() -> tuple[Pack, ...]:
    path = Path(__file__).with_name("packs.toml")
    return tuple(parse(path.read_text(), path.name))


def parse(text: str, file: str) -> list[Pack]:
    """The packs of a text in TOML; raises UsageError that names the line at fault."""
    try:
        sections = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"packs {file}: {error}") from None
    return [_pack(name, section, text, file) for name, section in sections.items()]


def _pack(name: str, section: Any, text: str, file: str) -> Pack:
    key = ""
    try:
        if not isinstance(section, dict):
            key = name
            raise ValueError(f"`{name}` is in no section; begin with a line like [shop-events]")
        for key in section:
            if key not in _OTHER_KEYS and key not in FIELDS:
                known_keys = ", ".join((*_OTHER_KEYS, *FIELDS))
                raise ValueError(f"no key `{key}`; there are {known_keys}")
        values = {key: tuple(_texts(value)) for key, value in section.items()}
        for key in ("title", "framework", "role", "demands", *_FLAGS):
            if len(values.get(key, ("",))) != 1:
                raise ValueError(f"`{key}` is one text")
        parsed: dict[str, Any] = {}
        for key in ("when", "client"):
            parsed[key] = tuple(
                _alternative(alternative, key) for alternative in values.get(key, ())
            )
        for key in ("application", *FIELDS):
            parsed[key] = tuple(_source(source, key) for source in values.get(key, ()))
        role, demands = (values.get(name_of_key, (None,))[0] for name_of_key in ("role", "demands"))
        for key, word, words in (("role", role, ROLES), ("demands", demands, DEMANDED)):
            if word not in (None, *words):
                raise ValueError(f"no {key} `{word}`; there is {', '.join(words)}")
        key = "findings"
        codes = tuple(_finding(finding) for finding in values.get(key, ()))
        key = ""
        if not parsed["when"] and not parsed["client"]:
            raise ValueError("nothing recognises it; add `when` or `client`")
    except ValueError as error:
        line = _line(text, name, key)
        raise UsageError(f"packs {file}, line {line}, [{name}]: {error}") from None
    fields = {column: parsed[column] for column in FIELDS if parsed[column]}
    (title,), (framework,) = values.get("title", (name,)), values.get("framework", (None,))
    return Pack(
        name, title, framework, parsed["when"], fields, parsed["client"], parsed["application"],
        codes, role, demands, *(flag in values for flag in _FLAGS),
    )  # fmt: skip


def _texts(value: Any) -> Iterator[str]:
    for text in value if isinstance(value, list) else [value]:
        if not isinstance(text, str) or not text:
            raise ValueError(f"`{text}` is not a text; write a text, or several in [ ]")
        yield text


def _alternative(text: str, key: str) -> tuple[Condition, ...]:
    return tuple(_condition(condition.strip(), key) for condition in text.split(" & "))


def _condition(text: str, key: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a condition; write one like `header:task`, "
                         "`exchange = hutch` or `type ~ ^Shop`")  # fmt: skip
    place, name = _place(match, SHAPE if key == "when" else ("queue",))
    if (place in ("header", "body")) if key == "client" else (place == "client"):
        raise ValueError(f"`{text}` is not a condition of `{key}`")
    relation, value = match["relation"], match["text"]
    if relation and place in ("header", "body"):
        raise ValueError(f"`{text}`: that a {place} is there recognises a message, not its value")
    pattern = _pattern(value) if relation == "~" else None
    return Condition(place, name, value if relation == "=" else None, pattern, bool(match["no"]))


def _finding(text: str) -> tuple[str, tuple[Condition, ...]]:
    code, _, conditions = text.partition(" if ")
    if code not in FINDINGS:
        raise ValueError(f"no finding `{code}`; there are {', '.join(FINDINGS)}")
    return code, _alternative(conditions, "when") if conditions else ()


def _source(text: str, column: str) -> ValueSource:
    match = _SOURCE.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a source; write one like `header:task`, "
                         "`body:options $.retries` or `routing_key ~ ^([^.]+)`")  # fmt: skip
    place, name = _place(match, PROPERTIES)
    if (place == "client") != (column == "application"):
        raise ValueError(f"`{text}` is not a source of `{column}`")
    form = match["form"]
    if form is not None and form not in FORMS:
        raise ValueError(f"no form `{form}`; there are {', '.join(FORMS)}")
    pattern = _pattern(match["pattern"]) if match["pattern"] else None
    if pattern is not None and pattern.groups < 1:
        raise ValueError(f"`{match['pattern']}` has no group; put ( ) around what is the value")
    path = tuple(
        name_ or int(index) for name_, index in _STEP.findall(match["path"] or "")
    )  # fmt: skip
    required_header = (match["header"], match["wanted"]) if match["header"] else None
    return ValueSource(place, name, path, pattern, form, required_header)


def _place(match: re.Match[str], properties: tuple[str, ...]) -> tuple[str, str]:
    if match["place"]:
        return match["place"], match["name"]
    name = match["property"]
    if name not in properties:
        known_places = ", ".join((*(f"{place}:NAME" for place in NAMED), *properties))
        raise ValueError(f"no place `{name}`; there are {known_places}")
    return "property", name


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"invalid regular expression `{text}`: {error}") from None


def _line(text: str, section: str, key: str) -> int:
    """The line of a key in a section, of the section's heading without a key."""
    current, heading = None, 1
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("[") and not line.startswith((" ", "\t")):
            current = stripped.partition("]")[0].strip("[]\"' ")
            heading = number if current == section else heading
        elif key and current in (section, None) and re.match(rf"\"?{re.escape(key)}\"?\s*=", line):
            return number
    return heading
