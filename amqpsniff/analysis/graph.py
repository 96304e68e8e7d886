"""A topology as a graph: DOT for Graphviz, Mermaid for pages that draw it.

Publishers lead to exchanges, exchanges to queues and to other exchanges, queues to consumers. Nodes
are numbered, names stand in labels only; a label holds nothing that its language could take for
something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from amqpsniff.units import count, octets
from amqpsniff.wire_text import exchange_name, named, shortened

MAX_LABEL = 60
"""Characters of a name in a label: a graph with longer ones cannot be read."""


SHAPES = {
    "publisher": ("box", '["', '"]'),
    "exchange": ("hexagon", '{{"', '"}}'),
    "queue": ("cylinder", '[("', '")]'),
    "consumer": ("box", '(["', '"])'),
}
"""Kinds of nodes: the shape in DOT, and the brackets that make it in Mermaid."""


class Edge(NamedTuple):
    """A line between two nodes, by number; `bound` is a binding that no message was seen to take.

    `weight` is the number of messages.
    """

    start: int
    end: int
    label: str
    bound: bool = False
    weight: int = 0


class Graph:
    """The graph of an `amqpsniff.analysis.topology.TopologyResult`.

    Attributes:
        nodes: (kind, lines of the label), in order.
        edges: `Edge`s between nodes, by their numbers.
    """

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.nodes: list[tuple[str, list[str]]] = []
        self.edges: list[Edge] = []
        self._places: dict[Any, int] = {}
        self._several = len({row["vhost"] for row in _rows(result)}) > 1
        for row in result["publishers"]:
            start = self._client("publisher", row)
            self._edge(start, self._exchange(row["vhost"], row["exchange"]), row, "published")
        self._flows(result)
        for row in result["consumers"]:
            end = self._client("consumer", row)
            self._edge(self._queue(row["vhost"], row["queue"]), end, row, "delivered")

    def _flows(self, result: Mapping[str, Any]) -> None:
        """Exchanges to their bindings' destinations, also those at the deletion of either."""
        keys: dict[Any, list[str]] = {}
        removed = {
            (row["vhost"], section[:-1], row[section[:-1]])
            for section in ("exchanges", "queues")
            for row in result[section]
            if row["removed"]
        }
        for row in result["bindings"]:
            ends = row["vhost"], row["exchange"], row["destination_type"], row["destination"]
            keys_of_ends = {(ends[0], "exchange", ends[1]), (ends[0], *ends[2:])}
            if not row["removed"] or removed & keys_of_ends:
                keys.setdefault(ends, []).append(row["routing_key"] or "")
        for row in result["routes"]:
            ends = row["vhost"], row["exchange"], "queue", row["queue"]
            start = self._exchange(row["vhost"], row["exchange"])
            end = self._queue(row["vhost"], row["queue"])
            self._edge(start, end, row, "delivered", keys.pop(ends, []))
        for (vhost, exchange, kind, name), names in keys.items():
            end = self._queue(vhost, name) if kind == "queue" else self._exchange(vhost, name)
            self.edges.append(Edge(self._exchange(vhost, exchange), end, _keys(names), bound=True))

    def _edge(self, start: int, end: int, row: dict[str, Any], column: str, keys: Any = ()) -> None:
        number = f"{count(row[column])} · {octets(row['bytes'])}"
        label = " · ".join(filter(None, (_keys(keys), number)))
        self.edges.append(Edge(start, end, label, weight=row[column]))

    def _node(self, kind: str, key: Any, vhost: str | None, *lines: str) -> int:
        place = self._places.get((kind, vhost, key))
        if place is None:
            place = self._places[kind, vhost, key] = len(self.nodes)
            vhost_lines = [f"vhost {_name(vhost)}"] if self._several else []
            self.nodes.append((kind, [*lines, *vhost_lines]))
        return place

    def _client(self, kind: str, row: dict[str, Any]) -> int:
        lines = [_name(row["name"]), *([_name(row["host"])] if row["host"] else [])]
        return self._node(kind, (row["name"], row["host"]), row["vhost"], *lines)

    def _exchange(self, vhost: str | None, name: str | None) -> int:
        return self._node("exchange", name, vhost, _short(exchange_name(name)))

    def _queue(self, vhost: str | None, name: str | None) -> int:
        return self._node("queue", name, vhost, _name(name))


def _rows(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for section in ("publishers", "bindings", "routes", "consumers"):
        yield from result[section]


def _name(name: str | None) -> str:
    return _short(named(name))


def _short(text: str) -> str:
    return shortened(text, MAX_LABEL)


def _keys(names: Any) -> str:
    """A few routing keys in short."""
    names = list(dict.fromkeys(names))  # bindings may differ by their arguments alone
    shown = [_name(name) for name in names[:3] if name]
    if len(names) > len(names[:3]):
        shown.append("…")
    return " ".join(shown)


def dot(result: Mapping[str, Any]) -> str:
    """A digraph in the DOT language."""
    graph = Graph(result)
    lines = ["digraph topology {", "  rankdir=LR;", '  node [fontname="sans-serif"];']
    for number, (kind, label) in enumerate(graph.nodes):
        text = "\\n".join(map(_for_dot, label))
        lines.append(f'  n{number} [shape={SHAPES[kind][0]}, label="{text}"];')
    for edge in graph.edges:
        style = ", style=dashed" if edge.bound else ""
        text = _for_dot(edge.label)
        lines.append(f'  n{edge.start} -> n{edge.end} [label="{text}"{style}];')
    return "\n".join([*lines, "}", ""])


def _for_dot(text: str) -> str:
    """A text inside quotes of the DOT language."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def mermaid(result: Mapping[str, Any]) -> str:
    """A flowchart in Mermaid's language."""
    graph = Graph(result)
    lines = ["flowchart LR"]
    for number, (kind, label) in enumerate(graph.nodes):
        _, begin, end = SHAPES[kind]
        lines.append(f"  n{number}{begin}{'<br/>'.join(map(_for_mermaid, label))}{end}")
    for edge in graph.edges:
        line = "-.->" if edge.bound else "-->"
        text = f'|"{_for_mermaid(edge.label)}"|' if edge.label else ""
        lines.append(f"  n{edge.start} {line}{text} n{edge.end}")
    return "\n".join([*lines, ""])


def _for_mermaid(text: str) -> str:
    """A text inside quotes of Mermaid: all but plain characters as their numbers."""
    return "".join(
        each if each.isalnum() or each in " .-_:/,·…" else f"#{ord(each)};" for each in text
    )


WRITERS: dict[str, Callable[[Mapping[str, Any]], str]] = {"dot": dot, "mermaid": mermaid}
"""Graph formats by name."""
