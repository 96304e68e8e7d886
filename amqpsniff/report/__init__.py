"""Pages for people: one HTML file with its charts, tables and drawings inside.

Nothing of a page is loaded from anywhere. What it shows came from a wire, so every text is escaped
where it enters the page, and the page forbids its browser to run or to load anything else.
"""
