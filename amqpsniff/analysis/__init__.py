"""Analyses of rows: a summary, a topology, a trace, a timeline, reports.

Each module takes rows or record batches of the tables and returns plain data: dictionaries, lists
and small dataclasses. None of them reads a file or writes to a terminal. `amqpsniff.Capture` reads
the rows and calls them; the command line shows the results.
"""
