"""Reading machine-readable definitions of AMQP, to hold our rows against them.

Two shapes: the JSON digests kept beside the captures (`facts/methods`), and the XML files of
Debian's `amqp-specs`. Both become the same plain data.
"""

import json
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

LETTERS = {
    "octet": "o", "short": "h", "long": "l", "longlong": "L", "bit": "b", "shortstr": "s",
    "longstr": "S", "timestamp": "T", "table": "F", "content": "C",
}  # fmt: skip
WORDS = {"nowait": "no_wait"}


class Definition(NamedTuple):
    """One method; `senders` and `replies` are None where the file does not say."""

    class_id: int
    method_id: int
    name: str
    arguments: tuple[tuple[str, str], ...]
    content: bool
    synchronous: bool
    replies: frozenset[str] | None
    sender: str | None


class Definitions(NamedTuple):
    """One file: methods, properties by class id, constants with (value, kind)."""

    methods: list[Definition]
    properties: dict[int, list[tuple[str, str]]]
    constants: dict[str, tuple[int, str | None]]


def spelled(name: str) -> str:
    """A name of a definition as ours are spelled."""
    name = name.replace(" ", "_").replace("-", "_")
    return WORDS.get(name, name)


def _sender(receivers: list[str]) -> str | None:
    """Who may send what these receivers must take."""
    if not receivers:
        return None
    if len(set(receivers)) > 1:
        return "both"
    return {"client": "server", "server": "client"}[receivers[0]]


def from_json(path: Path) -> Definitions:
    """A digest of `facts/methods`; in those of RabbitMQ nobody says who sends and what answers."""
    digest = json.loads(path.read_text(encoding="utf-8"))
    methods = []
    for class_id, definition in digest["classes"].items():
        class_name = definition["name"]
        for method_id, method in definition["methods"].items():
            told = bool(method["chassis"])
            replies = frozenset(f"{class_name}.{reply}" for reply in method["responses"])
            methods.append(
                Definition(
                    int(class_id),
                    int(method_id),
                    f"{class_name}.{method['name']}",
                    tuple((spelled(field[0]), LETTERS[field[1]]) for field in method["fields"]),
                    method["content"],
                    # the specifications also call replies synchronous, RabbitMQ only requests
                    method["sync"] and (bool(replies) or not told),
                    replies if told else None,
                    _sender(method["chassis"]),
                )
            )
    properties = {
        int(class_id): [(spelled(name), LETTERS[kind]) for name, kind in definition["properties"]]
        for class_id, definition in digest["classes"].items()
    }
    constants = {name: (value, kind) for name, (value, kind) in digest["constants"].items()}
    return Definitions(methods, properties, constants)


def from_xml(path: Path) -> Definitions:
    """A file of Debian's `amqp-specs` (installed by the administrator, so parsed as it is)."""
    root = ET.parse(path).getroot()
    domains = {spelled(row.get("name")): row.get("type") for row in root.findall("domain")}

    def field(row: ET.Element) -> tuple[str, str]:
        kind = row.get("type") or row.get("domain")
        return spelled(row.get("name")), LETTERS[domains.get(spelled(kind), kind)]

    methods = []
    for group in root.findall("class"):
        for method in group.findall("method"):
            replies = [f"{group.get('name')}.{r.get('name')}" for r in method.findall("response")]
            methods.append(
                Definition(
                    int(group.get("index")),
                    int(method.get("index")),
                    f"{group.get('name')}.{method.get('name')}",
                    tuple(map(field, method.findall("field"))),
                    method.get("content") == "1",
                    method.get("synchronous") == "1" and bool(replies),
                    frozenset(replies),
                    _sender([row.get("name") for row in method.findall("chassis")]),
                )
            )
    properties = {
        int(group.get("index")): list(map(field, group.findall("field")))
        for group in root.findall("class")
    }
    constants = {
        spelled(row.get("name")).replace("_", "-"): (int(row.get("value")), row.get("class"))
        for row in root.findall("constant")
    }
    return Definitions(methods, properties, constants)
