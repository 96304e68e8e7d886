"""What a report shows: gathered in one pass over captures, told in sentences, laid out as a page."""
