"""Options that several commands share, written once and spread over a command's signature.

A command takes one parameter per group (`captures: Captures`) and typer sees its fields as
parameters of their own; `spread` does the translation.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from amqpsniff.errors import UsageError
from amqpsniff.spec import DIALECTS, READINGS

from .completions import readers, words
from .render.clock import FORMS

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Selection

INPUT = "Input"
ROWS = "Rows"
OUTPUT = "Output"
"""Panels of the help."""

TABLES = ("frames", "messages", "connections", "channels", "findings")
"""The tables of `amqpsniff.tables.schema`, whose import takes as long as the help itself."""


def format_option(
    formats: Iterable[str],
    more: str = "",
    *,
    what: str = "Output format",
    panel: str | None = OUTPUT,
) -> Any:
    """The option `--format`; the help names the formats, and says more of them."""
    text = f"{what}: {', '.join(formats)}{more}."
    offered = words(formats)
    return typer.Option(
        "--format", metavar="F", autocompletion=offered, help=text, rich_help_panel=panel
    )


def check_format(form: str, formats: Iterable[str]) -> None:
    """Raise UsageError for what is none of the formats."""
    if form not in formats:
        raise UsageError(f"no format `{form}` here; there are {', '.join(formats)}")


def top_option(text: str = "Rows to show of each section.") -> Any:
    """The option `--top`, and what the help says of it."""
    return typer.Option(min=1, metavar="N", help=text, rich_help_panel=OUTPUT)


def verbose_option(text: str) -> Any:
    """The option `--verbose`, and what the help says of it."""
    return typer.Option("--verbose", "-v", help=text, rich_help_panel=OUTPUT)


def limit_option(text: str = "Stop after this many rows.", panel: str = ROWS) -> Any:
    """The option `--limit`, and what the help says of it."""
    return typer.Option(
        "--limit", "-n", min=0, metavar="N", help=text, rich_help_panel=panel, show_default=False
    )


def table_option(text: str, more: str = "") -> Any:
    """The option `--table`; the help names the tables behind `text`, and says more of them."""
    return typer.Option(
        "--table",
        "-t",
        metavar="T",
        autocompletion=words(TABLES),
        help=f"{text}: {', '.join(TABLES)}{more}.",
        rich_help_panel=ROWS,
    )


def body_limit_option(text: str) -> Any:
    """The option `--body-limit`, and what the help says of it."""
    return typer.Option(min=0, metavar="N", help=text, rich_help_panel=OUTPUT)


def _time_form(form: str) -> str:
    """One of the forms of times; also where nothing is written that has a time in it."""
    if form not in FORMS:
        raise UsageError(f"no time `{form}`; there are {', '.join(FORMS)}")
    return form


TimeForm = Annotated[
    str,
    typer.Option(
        metavar="FORM",
        callback=_time_form,
        autocompletion=words(FORMS),
        help="How times are written: relative (seconds since the capture began), absolute "
        "(UTC), delta (seconds since the line before).",
        rich_help_panel=OUTPUT,
    ),
]
TlsKeylog = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Open TLS connections with this key log, which may grow meanwhile. Default: the "
        "one that $SSLKEYLOGFILE names. Secrets inside a pcapng are used as well.",
        rich_help_panel=INPUT,
        show_default=False,
    ),
]
TlsKey = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Open TLS connections whose keys were exchanged by RSA with this private key (PEM "
        "or DER); may be repeated.",
        rich_help_panel=INPUT,
        show_default=False,
    ),
]
Bodies = Annotated[
    bool,
    typer.Option("--bodies", help="Fill the column body of messages.", rich_help_panel=OUTPUT),
]
BodySha256 = Annotated[
    bool,
    typer.Option(
        "--body-sha256", help="Fill the column body_sha256 of messages.", rich_help_panel=OUTPUT
    ),
]


def _named(output: Path | None) -> Path | None:
    """The file that is meant; None for `-`, which is standard output as it is standard input."""
    return None if output == Path("-") else output


OutputFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to this file, which is replaced once all is written. Default, and `-`: "
        "standard output.",
        callback=_named,
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]

Port = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=65535,
        metavar="N",
        help="Only conversations with this TCP port; may be repeated. Default: any port, AMQP "
        "is told by its content.",
        rich_help_panel=INPUT,
        show_default=False,
    ),
]
Reader = Annotated[
    str,
    typer.Option(
        metavar="R",
        autocompletion=readers,
        help="What reads the capture: own (this program), tshark (knows more tunnels and rare "
        "links), or auto: tshark, if installed, for what this program cannot read.",
        rich_help_panel=INPUT,
    ),
]
Dialect = Annotated[
    str | None,
    typer.Option(
        metavar="D",
        autocompletion=words(DIALECTS),
        help=f"Decode every connection as {', '.join(DIALECTS)}. Default: what the connection "
        "says.",
        rich_help_panel=INPUT,
        show_default=False,
    ),
]
TableDialect = Annotated[
    str,
    typer.Option(
        metavar="R",
        autocompletion=words(READINGS),
        help=f"How the tags of field tables are read: {', '.join(READINGS)}.",
        rich_help_panel=INPUT,
    ),
]
ShowSecrets = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Show passwords and tokens instead of a placeholder.",
        rich_help_panel=INPUT,
    ),
]


@dataclasses.dataclass(kw_only=True)
class Decoding:
    """How what is read is decoded."""

    port: Port = None
    dialect: Dialect = None
    table_dialect: TableDialect = READINGS[0]
    show_secrets: ShowSecrets = False
    tls_keylog: TlsKeylog = None
    tls_key: TlsKey = None
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="No warnings, no progress.", rich_help_panel=OUTPUT),
    ] = False


@dataclasses.dataclass(kw_only=True)
class Input(Decoding):
    """What is read, and how it is decoded."""

    captures: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTURE...",
            help="Capture files, directories, patterns, or - for standard input.",
            show_default=False,
        ),
    ]
    reader: Reader = "auto"


@dataclasses.dataclass(kw_only=True)
class Two(Decoding):
    """Two captures that are compared, and how they are decoded."""

    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="A capture: a file, a directory, or a pattern. With --same-traffic the one made "
            "nearer to the clients.",
            show_default=False,
        ),
    ]
    after: Annotated[
        str,
        typer.Argument(
            metavar="AFTER",
            help="The capture it is compared with. With --same-traffic the one made nearer to the "
            "broker.",
            show_default=False,
        ),
    ]
    reader: Reader = "auto"

    def sides(self) -> tuple[Input, Input]:
        """Each of the two as what other commands read."""
        shared = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("before", "after")
        }
        return Input(captures=[self.before], **shared), Input(captures=[self.after], **shared)


FromTime = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Only from this time on: seconds since the capture began, as lines show them (3.5), "
        "500ms, 1m30s, 1h; 12:00:00 (UTC, the day the capture began), 2026-01-31T12:00:00Z, or "
        "seconds since 1970.",
        rich_help_panel=ROWS,
        show_default=False,
    ),
]
ToTime = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TIME",
        help="Only before this time, written like that of --from.",
        rich_help_panel=ROWS,
        show_default=False,
    ),
]


@dataclasses.dataclass
class Scope:
    """Which part of the traffic is wanted."""

    connection: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Only this connection: its id or the beginning of it, its client's address:port "
            "or :port.",
            rich_help_panel=ROWS,
            show_default=False,
        ),
    ] = None
    channel: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="N",
            help="Only this channel.",
            rich_help_panel=ROWS,
            show_default=False,
        ),
    ] = None
    from_: FromTime = None
    to: ToTime = None

    def selection(self) -> Selection:
        """The part as the library has it; raises UsageError for what cannot be."""
        from amqpsniff.analysis.selection import Selection

        return Selection(**vars(self))


Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="Only rows for which this expression over the columns of the table is true, such "
        "as \"method = 'basic.publish' AND exchange = 'orders'\". inspect and follow show the "
        "table frames, bodies the table messages, diagnose findings.",
        rich_help_panel=ROWS,
        show_default=False,
    ),
]


@dataclasses.dataclass
class Rows(Scope):
    """Which rows of a table are wanted."""

    where: Where = None
    limit: Annotated[int | None, limit_option()] = None


def _parameters(function: Callable[..., Any]) -> list[tuple[str, type | None, inspect.Parameter]]:
    """Of every parameter that typer is to see: the group it belongs to by name, and itself."""
    hints = inspect.get_annotations(function, eval_str=True)
    found: list[tuple[str, type | None, inspect.Parameter]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if not dataclasses.is_dataclass(kind):
            found.append((name, None, parameter.replace(annotation=kind)))
            continue
        fields = get_type_hints(kind, include_extras=True)
        for field in dataclasses.fields(kind):
            default = field.default
            if default is dataclasses.MISSING:
                default = inspect.Parameter.empty
            one = inspect.Parameter(
                field.name, parameter.KEYWORD_ONLY, default=default, annotation=fields[field.name]
            )
            found.append((name, kind, one))  # type: ignore[arg-type]
    return found


def _countable(value: Any) -> Any:
    """The value; of a number that no machine counts to, the highest to which it does."""
    return min(value, sys.maxsize) if isinstance(value, int) else value


def spread(function: Callable[..., int]) -> Callable[..., int]:
    """Give a command whose parameters are groups of options the signature that typer reads."""
    found = _parameters(function)

    def call(**values: Any) -> int:
        arguments: dict[str, Any] = {}
        groups: dict[str, tuple[type, dict[str, Any]]] = {}
        for name, group, parameter in found:
            if group is None:
                arguments[name] = _countable(values[name])
            else:
                fields = groups.setdefault(name, (group, {}))[1]
                fields[parameter.name] = _countable(values[parameter.name])
        for name, (group, fields) in groups.items():
            arguments[name] = group(**fields)
        return function(**arguments)

    seen = [one.replace(kind=one.KEYWORD_ONLY) for _, _, one in found]
    call.__signature__ = inspect.Signature(seen)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in seen}
    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call
