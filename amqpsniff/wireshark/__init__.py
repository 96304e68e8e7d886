"""Captures made for Wireshark: a part of one, and one with what was found out as comments."""
