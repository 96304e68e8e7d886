"""Sentences of hand-written pages: how long they are, and the first of a page.

Paragraphs, list items and cells of tables are read; headings, code and what commands print are not.
A piece of code in a sentence counts as one word, and so does a list of them.
`python -m tests.docs.sentences FILE…` prints the sentences that are too long.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 29
"""Words of a sentence, at most."""

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4}.*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"(`+).+?\1(?:,\s+(`+).+?\2)*", re.DOTALL)
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\. ))")
_SENTENCE_END = re.compile(r"(?<=[.?!])[*)\"]*\s+(?=[^a-z])")


def blocks(text: str) -> Iterator[str]:
    """Paragraphs, list items and cells of a page, each on one line, with code as one word."""
    text = _COMMENT.sub("", _INDENTED.sub("", _FENCED.sub("\n\n", text)))
    for piece in _BLOCK_END.split(_CODE.sub("CODE", _LINK.sub(r"\1", text))):
        block = " ".join(piece.split())
        if block.startswith("|"):
            yield from (cell.strip() for cell in block.strip("|").split("|"))
        elif block and not block.startswith("#"):
            yield block.lstrip("-* ")


def too_long(text: str) -> list[str]:
    """Sentences with more than `LONGEST` words."""
    sentences = (sentence for block in blocks(text) for sentence in _SENTENCE_END.split(block))
    return [sentence for sentence in sentences if len(_words(sentence)) > LONGEST]


def opening(text: str) -> str:
    """The line under the heading of a page, which says what the page is for; empty without one."""
    heading, _, rest = text.partition("\n\n")
    first = rest.split("\n", 1)[0]
    return first if re.fullmatch(r"# .+", heading) and re.match(r"[\w`]", first) else ""


def _words(sentence: str) -> list[str]:
    return [word for word in sentence.split() if re.search(r"\w", word)]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for sentence in too_long(Path(name).read_text(encoding="utf-8")):
            print(f"{name} ({len(_words(sentence))}): {sentence}")
