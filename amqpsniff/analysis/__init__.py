"""Answers that are made of rows: what routes messages, and the reports."""
