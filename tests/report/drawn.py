"""Charts as they are drawn: their SVG, and what of it cannot be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from amqpsniff.report.page import VEGA_LITE, in_script

MAX_PIXELS = 4_000
"""More than any chart of a page is wide or high."""

_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|Infinity|NaN|undefined|null)", re.IGNORECASE)
_PLACES = re.compile(r'\b(?:viewBox|width|height|x|y|x1|x2|y1|y2|d|transform|r)="([^"]*)"')


def svg(spec: dict[str, Any]) -> str:
    """A chart drawn as a page 600 pixels wide draws it."""
    import vl_convert

    given = json.loads(in_script({"$schema": VEGA_LITE, **spec}))
    given["width"] = 600
    made: str = vl_convert.vegalite_to_svg(given)
    return made


def wrong(specs: Iterable[dict[str, Any] | None]) -> list[tuple[str, str]]:
    """(title, what) of every place in the charts' SVG that is no number or off any page."""
    found = []
    for spec in specs:
        for text in [] if spec is None else _PLACES.findall(svg(spec)):
            for number in _NUMBER.findall(text):
                try:
                    sane = abs(float(number)) <= MAX_PIXELS
                except ValueError:
                    sane = False
                if not sane:
                    found.append((str(spec.get("title")), text[:80]))
    return found
