"""What a report shows: gathered in one pass over captures, told, and laid out as a page."""
