"""Known disagreements in docs/verify.md, from their rows: `python -m tests.docs.verify`."""

from __future__ import annotations

from amqpsniff.opinion import KNOWN
from tests.docs.blocks import REPO

PAGE = REPO / "docs" / "verify.md"
BEGIN = "<!-- rows: python -m tests.docs.verify -->\n"
END = "<!-- end -->"


def page(text: str) -> str:
    """The page with the rows as they are now."""
    before, rest = text.split(BEGIN)
    after = rest.partition(END)[2]
    rows = "".join(
        f"| `{row.name}` | {row.traffic} | {row.tshark} | {row.here} |\n" for row in KNOWN
    )
    table = f"| name | traffic | tshark | here |\n|---|---|---|---|\n{rows}"
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
