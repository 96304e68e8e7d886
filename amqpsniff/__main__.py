"""`python -m amqpsniff`: the command line without its script."""

import sys

from amqpsniff.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
