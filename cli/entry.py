"""The console script: answers `--version` before anything heavy is imported."""

import sys

from amqpsniff import __version__


def main() -> int:
    """Run the command line with `sys.argv` and return the exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        print(f"amqpsniff {__version__}")
        return 0
    print("amqpsniff: no command given; try --version", file=sys.stderr)
    return 2
