"""Watching traffic as it happens: rows given once they are settled, figures, metrics."""
