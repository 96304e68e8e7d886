"""How rows look on a terminal and in a pipe."""
