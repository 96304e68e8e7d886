"""What a report shows: gathered in one pass, told in sentences, laid out as a page."""
