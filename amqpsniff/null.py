"""The integer that stands for null."""

NULL = -(2**63 - 1) - 1
"""The integer that stands for null in `Integers`; no column of ours can hold it as a value."""
