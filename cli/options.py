"""Options of commands, declared once.

A command takes one parameter per group (`captures: Captures`) and typer sees its fields as
parameters of their own; `spread` does the translation, and adds the options of `Terminal`, which
every command has. The first sentence of a help text is what the short help shows.
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

from .completions import Offer, method_names, outcomes, readers, words
from .output import COLOURS, settings, shown
from .render.clock import FORMS

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Selection

FILTERS = "Filters"
INPUT = "Input"
OUTPUT = "Output"
TERMINAL = "Terminal"
"""Panels of the help."""

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")
"""The tables of `amqpsniff.tables.schema`, whose import takes as long as the help itself."""


def option(named: str, text: str, panel: str = OUTPUT, **more: Any) -> Any:
    """An option, written as `-n --name METAVAR`; a flag has no metavar."""
    given = named.split(" ")
    names = sorted((word for word in given if word.startswith("-")), key=len, reverse=True)
    metavar = " ".join(given[len(names) :]) or None
    fixed = {"show_default": False, "metavar": metavar, "help": text, "rich_help_panel": panel}
    return typer.Option(*names, **fixed | more)


def choice(
    named: str, values: Iterable[str], refused: str, text: str, panel: str = OUTPUT, **more: Any
) -> Any:
    """An option with one of these values; any other is refused: `no format {} here`."""
    offered = tuple(values)

    def check(value: str | None) -> str | None:
        if value is not None and value not in offered:
            raise UsageError(f"{refused.format(f'`{value}`')}; there are {', '.join(offered)}")
        return value

    return option(named, text, panel, autocompletion=words(offered), callback=check, **more)


def argument(metavar: str, text: str, offer: Offer | None = None) -> Any:
    """An argument."""
    return typer.Argument(metavar=metavar, help=text, autocompletion=offer, show_default=False)


def format_option(
    formats: Iterable[str], more: str = "", *, what: str = "Output format", panel: str = OUTPUT
) -> Any:
    """The option `--format`; the help names the formats, and says more of them."""
    text = f"{what}: {', '.join(formats)}{more}."
    return choice("--format F", formats, "no format {} here", text, panel, show_default=True)


def verbose_option(text: str) -> Any:
    """The option `--verbose`, and what the help says of it."""
    return option("-v --verbose", text)


def limit_option(
    text: str = "Stop after this many rows.", panel: str = FILTERS, *, least: int = 0
) -> Any:
    """The option `--limit`, and what the help says of it; a default is at least `least`."""
    shown = least > 0
    return option("-n --limit N", text, panel, min=least, show_default=shown)


def sections_option(text: str = "Rows to show of each section.") -> Any:
    """The option `--limit` of a command that shows sections."""
    return limit_option(text, OUTPUT, least=1)


def table_option(text: str, more: str = "") -> Any:
    """The option `--table`; the help names the tables behind `text`, and says more of them."""
    text = f"{text}: {', '.join(TABLES)}{more}."
    return choice("-t --table T", TABLES, "no table {}", text)


def body_limit_option(text: str) -> Any:
    """The option `--body-limit`, and what the help says of it."""
    return option("--body-limit N", text, min=0, show_default=True)


TimeForm = Annotated[
    str,
    choice(
        "--time FORM", FORMS, "no time {}",
        f"How times are written: {', '.join(FORMS)}. Relative times are seconds since the capture "
        "began, absolute ones have date and time of day (see --tz), delta is seconds since the "
        "line before.", show_default=True,
    ),
]  # fmt: skip
TlsKeylog = Annotated[
    str | None,
    option(
        "--tls-keylog FILE", "Decrypt TLS with this key log. It may grow meanwhile. Default: the "
        "one that $SSLKEYLOGFILE names. Secrets inside a pcapng are used as well.", INPUT,
    ),
]  # fmt: skip
TlsKey = Annotated[
    list[str] | None,
    option(
        "--tls-key FILE", "Decrypt TLS with this RSA private key. It is a PEM or DER file and "
        "works where keys were exchanged by RSA; may be repeated.", INPUT,
    ),
]  # fmt: skip
Packs = Annotated[
    list[str] | None,
    option(
        "--packs FILE", "What messages of your own framework mean. A TOML file of packs, which are "
        "asked before the built-in ones; may be repeated.", INPUT,
    ),
]  # fmt: skip
By = Annotated[
    str | None,
    choice(
        "--by WHAT", ("operation",), "nothing by {}", "Counts and times by this instead: "
        "operation, which is the task, event or message type of a framework.",
    ),
]  # fmt: skip
Bodies = Annotated[bool, option("--bodies", "Fill the column body: what messages carry.")]
BodySha256 = Annotated[
    bool, option("--body-sha256", "Fill the column body_sha256: a digest of each body.")
]


def _named(output: Path | None) -> Path | None:
    """The file that is meant; None for `-`, which is standard output as it is standard input."""
    return None if output == Path("-") else output


OutputFile = Annotated[
    Path | None,
    option(
        "-o --output FILE", "Write to this file. It is replaced once all is written. Default, and "
        "`-`: standard output.", callback=_named,
    ),
]  # fmt: skip
Port = Annotated[
    list[int] | None,
    option(
        "--port N", "Only conversations with this TCP port. May be repeated. Default: any port, "
        "AMQP is told by its content.", INPUT, min=1, max=65535,
    ),
]  # fmt: skip
Reader = Annotated[
    str,
    option(
        "--reader R", "Reader of the capture: own, tshark, auto. This program itself (own), "
        "tshark, which knows more tunnels and rare links, or tshark, if installed, for what this "
        "program cannot read (auto).", INPUT, autocompletion=readers, show_default=True,
    ),
]  # fmt: skip
Dialect = Annotated[
    str | None,
    option(
        "--dialect D", f"Decode every connection as {', '.join(DIALECTS)}. Default: what the "
        "connection says.", INPUT, autocompletion=words(DIALECTS),
    ),
]  # fmt: skip
TableDialect = Annotated[
    str,
    option(
        "--table-dialect R", f"How the tags of field tables are read: {', '.join(READINGS)}.",
        INPUT, autocompletion=words(READINGS), show_default=True,
    ),
]  # fmt: skip
ShowSecrets = Annotated[
    bool, option("--show-secrets", "Show passwords and tokens instead of a placeholder.", INPUT)
]


Quiet = Annotated[bool, option("-q --quiet", "No warnings, no summary, no progress.", TERMINAL)]


@dataclasses.dataclass(kw_only=True)
class Decoding:
    """How what is read is decoded."""

    port: Port = None
    dialect: Dialect = None
    table_dialect: TableDialect = READINGS[0]
    show_secrets: ShowSecrets = False
    tls_keylog: TlsKeylog = None
    tls_key: TlsKey = None
    packs: Packs = None
    quiet: Quiet = False


Captures = argument("CAPTURE...", "Capture files, directories, patterns, or - for standard input.")


@dataclasses.dataclass(kw_only=True)
class Input(Decoding):
    """What is read, and how it is decoded."""

    captures: Annotated[list[str], Captures]
    reader: Reader = "auto"


@dataclasses.dataclass(kw_only=True)
class Two(Decoding):
    """Two captures that are compared, and how they are decoded."""

    before: Annotated[
        str,
        argument(
            "BEFORE", "A capture: a file, a directory, or a pattern. With --same-traffic the one "
            "made nearer to the clients.",
        ),
    ]  # fmt: skip
    after: Annotated[
        str,
        argument(
            "AFTER", "The capture it is compared with. With --same-traffic the one made nearer to "
            "the broker.",
        ),
    ]  # fmt: skip
    reader: Reader = "auto"

    def sides(self) -> tuple[Input, Input]:
        """Each of the two as what other commands read."""
        shared = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("before", "after")
        }
        return Input(captures=[self.before], **shared), Input(captures=[self.after], **shared)


@dataclasses.dataclass
class Names:
    """Filters by name and by time: `amqpsniff.analysis.selection` says what they choose."""

    client: Annotated[
        str | None, option("--client C", "Name, product, address or address:port.", FILTERS)
    ] = None
    user: Annotated[str | None, option("--user U", "User of the connection.", FILTERS)] = None
    vhost: Annotated[str | None, option("--vhost V", "Virtual host.", FILTERS)] = None
    queue: Annotated[
        str | None, option("--queue Q", "Queue; * stands for any text, as in amq.*.", FILTERS)
    ] = None
    exchange: Annotated[
        str | None, option("--exchange X", "Exchange; (default) is the one without name.", FILTERS)
    ] = None
    routing_key: Annotated[str | None, option("--routing-key K", "Routing key.", FILTERS)] = None
    method: Annotated[
        str | None,
        option("--method M", "basic.publish, publish, queue.*", FILTERS,
               autocompletion=method_names),
    ] = None  # fmt: skip
    message_id: Annotated[str | None, option("--message-id X", "Message id.", FILTERS)] = None
    outcome: Annotated[
        str | None,
        option("--outcome O", "What became of a message: acked, unconfirmed ...", FILTERS,
               autocompletion=outcomes),
    ] = None  # fmt: skip
    errors: Annotated[
        bool,
        option("--errors", "Only what failed. Methods that report an error; messages that were "
               "returned, refused, requeued or cut; connections and channels closed with an error "
               "or reset; findings that are errors.", FILTERS),
    ] = False  # fmt: skip
    packet: Annotated[
        str | None, option("--packet N[-M]", "Number of a packet, as in Wireshark.", FILTERS)
    ] = None
    from_: Annotated[
        str | None,
        option(
            "--from TIME", "Times from 3.5, 1m30s, 12:00:00 on. Since the capture began: seconds "
            "as lines show them (3.5, +3.5), 500ms, 1m30s, 1h. In UTC or in --tz: 12:00:00 (the "
            "day the capture began), 2026-01-31T12:00:00. Also: 2026-01-31T12:00:00+01:00, or "
            "seconds since 1970.", FILTERS,
        ),
    ] = None  # fmt: skip
    to: Annotated[
        str | None, option("--to TIME", "Times before this one, written as --from.", FILTERS)
    ] = None

    def part(self) -> dict[str, Any]:
        """The filters as arguments of `amqpsniff.Capture`."""
        given = {name: value for name, value in vars(self).items() if value not in (None, False)}
        given.pop("limit", None)
        zone = settings.zone
        return given | ({"tz": zone} if zone and ("from_" in given or "to" in given) else {})

    def selection(self) -> Selection:
        """The part as the library has it; raises UsageError for what cannot be."""
        from amqpsniff.analysis.selection import Selection

        return Selection(limit=getattr(self, "limit", None), **self.part())


@dataclasses.dataclass
class Scope(Names):
    """Which part of the traffic is wanted."""

    connection: Annotated[
        str | None,
        option("--connection ID", "Id or its beginning, client's address:port, :port.", FILTERS),
    ] = None
    channel: Annotated[
        int | None, option("--channel N", "Number of a channel.", FILTERS, min=0, max=65535)
    ] = None


@dataclasses.dataclass
class Conditions(Scope):
    """Which part of the traffic is wanted, by any condition."""

    where: Annotated[
        str | None,
        option(
            "--where SQL", "A condition over the table's columns. For example \"body_size > 1000 "
            "AND app_id = 'shop'\". The table is frames for inspect and follow, messages for "
            "messages, trace and bodies, findings for diagnose. For cut it is frames, or findings "
            "where they choose packets.", FILTERS,
        ),
    ] = None  # fmt: skip


@dataclasses.dataclass
class Rows(Conditions):
    """Which rows of a table are wanted."""

    limit: Annotated[int | None, limit_option()] = None


@dataclasses.dataclass
class Terminal:
    """How text is shown; `amqpsniff.cli.output` does it."""

    color: Annotated[
        str,
        choice(
            "--color WHEN", COLOURS, "no colour {}",
            f"Colour: {', '.join(COLOURS)}. With auto on a terminal, and where FORCE_COLOR or "
            "CLICOLOR_FORCE is set; not where NO_COLOR is.", TERMINAL, show_default=True,
        ),
    ] = COLOURS[0]  # fmt: skip
    width: Annotated[
        int | None,
        option("--width N", "Columns of a line. Default: those of the terminal; in a pipe "
               "nothing is cut.", TERMINAL, min=20),
    ] = None  # fmt: skip
    tz: Annotated[
        str | None,
        option("--tz ZONE", "Time zone of dates and times of day: Europe/Berlin, +01:00, local. "
               "Default: UTC.", TERMINAL),
    ] = None  # fmt: skip
    pager: Annotated[
        bool,
        option("--pager/--no-pager", "Page what is longer than the screen. By "
               "$AMQPSNIFF_PAGER, $PAGER, or less; empty, or cat, for none.", TERMINAL),
    ] = True  # fmt: skip


FILTER_NAMES = frozenset(
    field.name.strip("_").replace("_", "-") for field in dataclasses.fields(Rows)
)
"""Options that choose rows."""


def _parameters(function: Callable[..., Any]) -> list[tuple[str, type | None, inspect.Parameter]]:
    """Of every parameter that typer is to see: the group it belongs to by name, and itself."""
    hints = inspect.get_annotations(function, eval_str=True)
    found: list[tuple[str, type | None, inspect.Parameter]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if not dataclasses.is_dataclass(kind):
            found.append((name, None, parameter.replace(annotation=kind)))
            continue
        found += _fields(name, kind)  # type: ignore[arg-type]
    return found


def _fields(name: str, kind: type) -> Iterable[tuple[str, type, inspect.Parameter]]:
    hints = get_type_hints(kind, include_extras=True)
    for one in dataclasses.fields(kind):
        default = inspect.Parameter.empty if one.default is dataclasses.MISSING else one.default
        keyword = inspect.Parameter.KEYWORD_ONLY
        annotation = hints[one.name]
        yield (
            name,
            kind,
            inspect.Parameter(one.name, keyword, default=default, annotation=annotation),
        )


def _countable(value: Any) -> Any:
    """The value; of a number that no machine counts to, the highest to which it does."""
    return min(value, sys.maxsize) if isinstance(value, int) else value


def spread(function: Callable[..., int], *, paged: bool = True) -> Callable[..., int]:
    """Give a command whose parameters are groups of options the signature that typer reads.

    What it writes on a terminal may be `paged`, unless it comes from standard input, bit by bit.
    """
    found = _parameters(function)
    terminal = list(_fields("", Terminal))

    def call(**values: Any) -> int:
        how = {one.name: values[one.name] for _, _, one in terminal}
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
        how["pager"] &= paged and "-" not in (values.get("captures") or ())
        with shown(**how):
            return function(**arguments)

    seen = [one.replace(kind=one.KEYWORD_ONLY) for _, _, one in [*found, *terminal]]
    call.__signature__ = inspect.Signature(seen)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in seen}
    call.__name__ = function.__name__
    call.__doc__ = function.__doc__
    return call
