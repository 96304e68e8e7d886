"""Captures made for Wireshark: a part of one, and one with findings and outcomes as comments."""
