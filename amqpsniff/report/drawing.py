"""A graph that flows from left to right, drawn as SVG.

Nodes stand in one column for each kind, in an order in which few edges cross: each column is sorted
by the middle of its neighbours, a few times to and fro.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from amqpsniff.wire_text import shortened

NODE_WIDTH, COLUMN_GAP, ROW_GAP, LINE_HEIGHT, MARGIN = 176, 196, 18, 15, 14
LOOP_WIDTH = 70
"""Pixels; the last is the room of an edge that does not lead to the right."""

NODE_CHARACTERS = 23
EDGE_CHARACTERS = 30
FITTED_CHARACTERS = 21
"""Characters that fit into a node and beside an edge; the whole text is in its title."""

SWEEPS = 4
BY_START, MIDDLE, BY_END = 0.27, 0.5, 0.73
"""Where a label stands on its edge: at the end that has fewer edges, where they are far apart."""

PLACES = (MIDDLE, BY_START, BY_END, 0.38, 0.62, 0.18, 0.82)
"""Other places of a label, if the best one is taken."""

LABEL_WIDTH, LABEL_HEIGHT = 6.2, 13
"""Pixels of a character of a label and of its line, more or less."""


class Node(NamedTuple):
    """One box: its column's kind, and the lines in it."""

    kind: str
    lines: Sequence[str]


class Line(NamedTuple):
    """An edge between nodes by number; `weight` from 0 to 1 makes it thicker."""

    start: int
    end: int
    label: str
    weight: float = 0.0
    dashed: bool = False


class Drawing:
    """Lays a graph out.

    Args:
        kinds: The columns, from left to right.
        label: What the picture shows, for screen readers.
    """

    def __init__(
        self, nodes: Sequence[Node], edges: Sequence[Line], kinds: Sequence[str], label: str
    ) -> None:
        self._nodes = nodes
        self._edges = edges
        self._about = label
        self._columns = [
            [number for number, node in enumerate(nodes) if node.kind == kind] for kind in kinds
        ]
        self._columns = [column for column in self._columns if column]
        self._across = {
            number: place for place, column in enumerate(self._columns) for number in column
        }
        self._neighbours: dict[int, list[int]] = {number: [] for number in range(len(nodes))}
        for edge in edges:
            self._neighbours[edge.start].append(edge.end)
            self._neighbours[edge.end].append(edge.start)
        self._labels: list[tuple[float, float, float]] = []
        self._tops: dict[int, float] = {}
        self._height = self._place()

    def svg(self) -> str:
        """The picture."""
        columns = len(self._columns)
        width = columns * NODE_WIDTH + max(columns - 1, 0) * COLUMN_GAP + 2 * MARGIN
        backward = (self._across[edge.end] <= self._across[edge.start] for edge in self._edges)
        width += LOOP_WIDTH if any(backward) else 0
        height = round(self._height + 2 * MARGIN)
        edges = "".join(map(self._edge, self._edges))
        nodes = "".join(self._node(number, node) for number, node in enumerate(self._nodes))
        return (
            f'<svg class="topology" viewBox="0 0 {width} {height}" '
            f'style="--width:{width}px" role="img" aria-label="{escape(self._about)}">'
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0 8 4 0 8z"/></marker></defs>{edges}{nodes}</svg>'
        )

    def _place(self) -> float:
        """Give every node its place in its column; the height of the highest column."""
        for sweep in range(SWEEPS):
            columns = self._columns if sweep % 2 == 0 else self._columns[::-1]
            for column in columns:
                column.sort(key=self._middle)
                self._stack(column)
        heights = [self._stack(column) for column in self._columns]
        highest = max(heights, default=0.0)
        for column, height in zip(self._columns, heights, strict=True):
            for number in column:
                self._tops[number] += (highest - height) / 2
        return highest

    def _middle(self, number: int) -> float:
        places = [
            self._tops[neighbour]
            for neighbour in self._neighbours[number]
            if neighbour in self._tops
        ]
        return sum(places) / len(places) if places else self._tops.get(number, 0.0)

    def _stack(self, column: list[int]) -> float:
        top = 0.0
        for number in column:
            self._tops[number] = top
            top += self._size(number) + ROW_GAP
        return top - ROW_GAP

    def _size(self, number: int) -> float:
        return LINE_HEIGHT * len(self._nodes[number].lines) + 12.0

    def _left(self, number: int) -> float:
        return MARGIN + self._across[number] * (NODE_WIDTH + COLUMN_GAP)

    def _centre(self, number: int) -> float:
        return MARGIN + self._tops[number] + self._size(number) / 2

    def _node(self, number: int, node: Node) -> str:
        left, top = self._left(number), MARGIN + self._tops[number]
        texts = "".join(
            f'<text x="{left + 10:.0f}" y="{top + 17 + LINE_HEIGHT * at:.1f}"'
            f"{_text_attributes(at, line)}>{escape(shortened(line, NODE_CHARACTERS))}</text>"
            for at, line in enumerate(node.lines)
        )
        rounded = 12 if node.kind == "exchange" else 4
        return (
            f'<g class="node {escape(node.kind)}"><title>{escape(node.kind)} '
            f"{escape(', '.join(node.lines))}</title>"
            f'<rect x="{left:.0f}" y="{top:.1f}" width="{NODE_WIDTH}" '
            f'height="{self._size(number):.0f}" rx="{rounded}"/>'
            f"{texts}</g>"
        )

    def _label_place(self, edge: Line) -> float:
        before, behind = (len(self._neighbours[node]) for node in (edge.start, edge.end))
        return MIDDLE if before == behind else BY_START if before < behind else BY_END

    def _label(self, edge: Line, curve: Sequence[float], half: float) -> tuple[float, float]:
        """The middle of an edge's label: where it is best, or else where no other label is."""
        left, right = curve[0] + half, curve[-2] - half
        places = []
        for at in (self._label_place(edge), *PLACES):
            x, y = (_bezier(at, *curve[axis::2]) for axis in (0, 1))
            places.append(
                (min(max(x, left), right) if curve[-2] - curve[0] == COLUMN_GAP else x, y)
            )
        x, y = next((place for place in places if self._is_free(*place, half)), places[0])
        self._labels.append((x, y, half))
        return x, y

    def _is_free(self, x: float, y: float, half: float) -> bool:
        return all(
            abs(x - other_x) >= half + other_half or abs(y - other_y) >= LABEL_HEIGHT
            for other_x, other_y, other_half in self._labels
        )

    def _edge(self, edge: Line) -> str:
        right = self._left(edge.start) + NODE_WIDTH
        y0, y1 = self._centre(edge.start), self._centre(edge.end)
        if self._across[edge.end] > self._across[edge.start]:
            x0, x1 = right, self._left(edge.end)
            bend = (x1 - x0) / 2
            curve = (x0, y0, x0 + bend, y0, x1 - bend, y1, x1, y1)
        else:  # in one column, or back: around the right side
            x0, x1 = right, self._left(edge.end) + NODE_WIDTH
            if edge.start == edge.end:
                y0, y1 = y0 - 6, y1 + 6
            out = max(x0, x1) + LOOP_WIDTH
            curve = (x0, y0, out, y0, out, y1, x1, y1)
        label = shortened(edge.label, EDGE_CHARACTERS)
        half = min(len(label) * LABEL_WIDTH / 2 + 4, COLUMN_GAP / 2)
        label_x, label_y = self._label(edge, curve, half)
        path = "M{:.0f} {:.1f}C{:.0f} {:.1f} {:.0f} {:.1f} {:.0f} {:.1f}".format(*curve)
        width = 1 + 3 * math.sqrt(max(0.0, min(edge.weight, 1.0)))
        dashed = " dashed" if edge.dashed else ""
        return (
            f'<g class="edge{dashed}"><title>{escape(edge.label)}</title>'
            f'<path d="{path}" stroke-width="{width:.1f}" marker-end="url(#arrow)"/>'
            f'<text x="{label_x:.0f}" y="{label_y - 3:.1f}">{escape(label)}</text></g>'
        )


def _text_attributes(at: int, text: str) -> str:
    """Attributes of a line of a node; a long one is made to fit, however wide its letters are."""
    fitted = f' textLength="{NODE_WIDTH - 20}" lengthAdjust="spacingAndGlyphs"'
    return (' class="more"' if at else "") + (fitted if len(text) >= FITTED_CHARACTERS else "")


def _bezier(at: float, a: float, b: float, c: float, d: float) -> float:
    rest = 1 - at
    return rest**3 * a + 3 * rest**2 * at * b + 3 * rest * at**2 * c + at**3 * d
