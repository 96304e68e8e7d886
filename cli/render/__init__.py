"""Rows as text, on a terminal and in a pipe."""
