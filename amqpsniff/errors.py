"""Public exceptions.

    AmqpsniffError
    ├── CaptureError            a capture cannot be read
    │   ├── NotACapture             the bytes are not a supported capture format
    │   └── TsharkError             tshark is missing, too old, or fails
    ├── OutputError             output cannot be written
    ├── FilterError             a `where` expression or SQL statement that does not run
    ├── SpecError               a row of the protocol tables contradicts another
    └── UsageError              an invalid argument or call

A fault of the *traffic* is never an exception: it is a row of the findings table.
"""


class AmqpsniffError(Exception):
    """Base of every error this package raises on purpose; its text is one line for a person.

    Attributes:
        parameters: Names of parameters that stand in the text, in backticks.
    """

    def __init__(self, text: str = "", *parameters: str) -> None:
        super().__init__(text)
        self.parameters = parameters

    def with_options(self) -> str:
        """The text for a command line, where the parameter `from_` is the option --from."""
        text = str(self)
        for name in self.parameters:
            text = text.replace(f"`{name}`", f"--{name.rstrip('_').replace('_', '-')}")
        return text


class CaptureError(AmqpsniffError):
    """A capture cannot be opened or read."""


class NotACapture(CaptureError):
    """The first bytes of the file belong to no supported capture format.

    `what` names what the file seems to be instead; empty if unidentified.
    """

    what = ""


class TsharkError(CaptureError):
    """tshark is not there, is too old, refuses a capture, crashes, or stands still."""


class OutputError(AmqpsniffError):
    """A folder or file cannot be written to: no room, no right, or another run writes there."""


class FilterError(AmqpsniffError):
    """An expression over the columns of a table that cannot be evaluated."""


class SpecError(AmqpsniffError):
    """Two rows of the protocol tables contradict each other."""


class UsageError(AmqpsniffError):
    """An invalid argument or call; the message names it and a valid one."""


def read_twice(operation: str, name: str, *parameters: str) -> UsageError:
    """The error where an operation would read a capture twice that can be read only once."""
    text = f"{operation}: {name} would have to be read twice; save it to a file first"
    return UsageError(text, *parameters)
