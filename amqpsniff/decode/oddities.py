"""Oddities of values: what a reader noticed while it read on, one bit each.

A reader only sets bits; whoever knows the packet and the channel reports them as findings.
"""

NOT_UTF8 = 1
UNKNOWN_TAG = 2
UNUSUAL_TAG = 4
MALFORMED_TABLE = 8
TOO_DEEP = 16
DUPLICATE_NAME = 32
MILLISECONDS = 64
OUT_OF_RANGE = 128

ODDITY_CODES = (
    (NOT_UTF8, "text-not-utf8"),
    (UNKNOWN_TAG, "field-tag-unknown"),
    (UNUSUAL_TAG, "field-tag-unusual"),
    (MALFORMED_TABLE, "field-table-malformed"),
    (TOO_DEEP, "field-table-too-deep"),
    (DUPLICATE_NAME, "field-name-duplicate"),
    (MILLISECONDS, "timestamp-milliseconds"),
    (OUT_OF_RANGE, "number-out-of-range"),
)
"""Which finding each bit of `oddities` stands for."""


_OF_TAGS = ("field-tag-unknown", "field-tag-unusual")


def oddity_text(code: str, where: str, tag: int) -> str:
    """What is said of an oddity: where it is, and of which tag when a tag is odd."""
    if code not in _OF_TAGS:
        return where
    written = f" ('{chr(tag)}')" if 32 < tag < 127 else ""
    return f"tag {tag:#04x}{written} in the {where}"


def oddity_codes(oddities: int) -> list[str]:
    """The finding codes of the bits that are set."""
    return [code for bit, code in ODDITY_CODES if oddities & bit]
