"""`python -m amqpsniff`: the command line without its script."""

import sys

try:
    from amqpsniff.cli.entry import main
except ModuleNotFoundError as error:
    if error.name != "amqpsniff.cli":
        raise
    sys.exit(
        "amqpsniff: this folder has the sources, which Python takes instead of an installed "
        "amqpsniff; run `amqpsniff`, or go to another folder"
    )

if __name__ == "__main__":
    sys.exit(main())
