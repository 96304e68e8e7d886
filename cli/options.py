"""Options of commands: what a person reads is text, what a program needs is in the signature.

`@spread` of a command and `@group` of a group of options are given the help, by panels:

    Output:
        -o --output FILE: Write to this file. [default]

An option belongs to the parameter of its longest name, an argument to that of its metavar
(`CAPTURE...`: captures). `{NAME}` stands for a constant of the command's module or of this one,
`[default]` shows the default. What a text lacks is in those of `SHARED`, `Decoding` and `Input`.
The first sentence is what the short help shows. `Annotated[int, at_least(1)]` says what values
there may be; of `format_` it is one of the module's `FORMATS`.

A command takes one parameter per group (`source: Input`) and typer sees its fields as parameters of
their own; `spread` does the translation, and adds the options of `Terminal`, which every command
has.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import (
    IO,
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    dataclass_transform,
    get_args,
    get_type_hints,
)

import typer

from amqpsniff import units
from amqpsniff.errors import UsageError
from amqpsniff.findings.finding import SEVERITIES
from amqpsniff.spec import DIALECTS, METHODS, READINGS

from .completions import Offer, codes, listed, words, words_of
from .entry import complain
from .files import STANDARD_OUTPUT, sink
from .output import COLOURS, settings, shown
from .render.clock import FORMS

if TYPE_CHECKING:
    from amqpsniff.analysis.selection import Selection

TABLES = ("frames", "messages", "connections", "channels", "links", "findings")
"""The tables of `amqpsniff.tables.schema`, whose import takes as long as the help itself."""


def one_of(values: Iterable[str], refused: str) -> dict[str, Any]:
    """One of these values; any other is refused: `no format {} here`."""
    offered = tuple(values)

    def check(value: str | None) -> str | None:
        if value is not None and value not in offered:
            raise UsageError(f"{refused.format(f'`{value}`')}; {units.listed(offered)}")
        return value

    return {"autocompletion": words(offered), "callback": check}


def offer(values: Offer) -> dict[str, Any]:
    """Any value; a shell offers these."""
    return {"autocompletion": values}


def at_least(lowest: int, highest: int | None = None) -> dict[str, Any]:
    """A number from `lowest` to `highest`; None for no upper bound."""
    return {"min": lowest, "max": highest}


def _named(output: Path | None) -> Path | None:
    """The file of an option; None for `-`, which is standard output."""
    return None if output == STANDARD_OUTPUT else output


TimeForm = Annotated[str, one_of(FORMS, "no time {}")]
By = Annotated[str | None, one_of(("operation",), "nothing by {}")]
FailOn = Annotated[str | None, one_of(SEVERITIES, "no severity {}")]
"""From which severity on a finding makes a command exit with 1."""
Reader = Annotated[str, offer(words_of("amqpsniff.capture.open", "READERS"))]
OutputFile = Annotated[Path | None, {"callback": _named}]
Port = Annotated[list[int] | None, at_least(1, 65535)]


_SECTION = re.compile(r"^(\w[\w ]*):\n((?: .*(?:\n|$))+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\S.*?): (.*(?:\n {8}.*)*)", re.MULTILINE)
_CONSTANT = re.compile(r"\{([A-Z_]+)\}")


def _described(text: str) -> dict[str, Any]:
    """Typer's settings for the options and arguments of a text, by the parameter's name."""
    found: dict[str, Any] = {}
    for panel, entries in _SECTION.findall(inspect.cleandoc(text)):
        for spec, help_text in _ENTRY.findall(entries):
            about = " ".join(help_text.split())
            tokens = spec.split(" ")
            flags = sorted((flag for flag in tokens if flag[0] == "-"), key=len, reverse=True)
            settings: dict[str, Any] = {
                "metavar": " ".join(tokens[len(flags) :]) or None,
                "help": about.removesuffix(" [default]"),
                "show_default": about.endswith(" [default]"),
            }
            if flags:
                settings["rich_help_panel"] = panel
                name = flags[0].partition("/")[0].lstrip("-").replace("-", "_")
                found[name] = typer.Option, flags, settings
            else:
                name = spec.removesuffix("...").lower() + "s" * spec.endswith("...")
                found[name] = typer.Argument, (), settings
    return found


SHARED = """
    Output:
        --bodies: Add what messages carry, as the column body.
        --body-sha256: Add a digest of each body, as the column body_sha256.
        --by WHAT: Counts and times by this instead: operation, which is the task, event or message
            type of a framework.
        --format F: Output format: {FORMATS}. [default]
        -n --limit N: Rows to show of each section. [default]
        -o --output FILE: Write to this file. It is replaced once all is written. Default, and `-`:
            standard output.
        --time FORM: How times are written: {FORMS}. Relative times are seconds since the capture
            began, absolute ones have date and time of day (see --tz), delta is seconds since the
            line before. [default]
"""
"""Options that several commands have."""

_SHARED = _described(SHARED)


_HELP: dict[type, dict[str, Any]] = {}
_Class = TypeVar("_Class", bound=type)


@dataclass_transform(kw_only_default=True)
def group(text: str) -> Callable[[_Class], _Class]:
    """Make a class a dataclass, and a group of options with this help."""

    def make(kind: _Class) -> _Class:
        made: Any = dataclasses.dataclass(kw_only=True)(kind)
        _HELP[made] = _described(text)
        return made  # type: ignore[no-any-return]

    return make


@group("""
    Input:
        --port N: Only conversations with this TCP port. May be repeated. Default: any port, AMQP is
            told by its content.
        --dialect D: Decode every connection as {DIALECTS}. Default: what the connection says.
        --table-dialect R: How the tags of field tables are read: {READINGS}. [default]
        --show-secrets: Show passwords and tokens instead of a placeholder.
        --tls-keylog FILE: Decrypt TLS with this key log. It may grow meanwhile. Default: the one
            that $SSLKEYLOGFILE names. Secrets inside a pcapng are used as well.
        --tls-key FILE: Decrypt TLS with this RSA private key. It is a PEM or DER file and works
            where keys were exchanged by RSA; may be repeated.
        --packs FILE: What messages of your own framework mean. A TOML file of packs, which are
            asked before the built-in ones; may be repeated.

    Terminal:
        -q --quiet: No warnings, no summary, no progress.
""")
class Decoding:
    """Options of decoding."""

    port: Port = None
    dialect: Annotated[str | None, offer(words(DIALECTS))] = None
    table_dialect: Annotated[str, offer(words(READINGS))] = READINGS[0]
    show_secrets: bool = False
    tls_keylog: str | None = None
    tls_key: list[str] | None = None
    packs: list[str] | None = None
    quiet: bool = False

    def given(self) -> dict[str, Any]:
        """The options as `amqpsniff.open` takes them, but for the key log."""
        return {
            "ports": self.port or (),
            "dialect": self.dialect,
            "table_dialect": self.table_dialect,
            "show_secrets": self.show_secrets,
            "tls_key": self.tls_key or (),
            "packs": self.packs or (),
        }

    def of(self, captures: list[str], reader: str) -> Input:
        """The same options, for these captures."""
        shared = {field.name: getattr(self, field.name) for field in dataclasses.fields(Decoding)}
        return Input(captures=captures, reader=reader, **shared)


@group("""
    Input:
        CAPTURE...: Capture files, directories, patterns, or - for standard input.
        --reader R: Reader of the capture: own, tshark, auto. This program itself (own), tshark,
            which knows more tunnels and rare links, or tshark, if installed, for what this program
            cannot read (auto). [default]
""")
class Input(Decoding):
    """The captures, and options of decoding."""

    captures: list[str]
    reader: Reader = "auto"


@group("""
    Input:
        BEFORE: A capture: a file, a directory, or a pattern. With --same-traffic the one made
            nearer to the clients.
        AFTER: The capture it is compared with. With --same-traffic the one made nearer to the
            broker.
""")
class Two(Decoding):
    """Two captures that are compared, and how they are decoded."""

    before: str
    after: str
    reader: Reader = "auto"

    def sides(self) -> tuple[Input, Input]:
        """Each of the two as what other commands read."""
        return self.of([self.before], self.reader), self.of([self.after], self.reader)


@group("""
    Filters:
        --client C: Name, product, address or address:port.
        --user U: User of the connection.
        --vhost V: Virtual host.
        --queue Q: Queue; * stands for any text, as in amq.*.
        --exchange X: Exchange; (default) is the one without name.
        --routing-key K: Routing key.
        --method M: basic.publish, publish, queue.*
        --message-id X: Message id.
        --outcome O: What became of a message: acked, unconfirmed ...
        --errors: Only what failed. Methods that report an error; messages that were returned,
            refused, requeued or cut; connections and channels closed with an error or reset;
            findings that are errors.
        --packet N[-M]: Number of a packet, as in Wireshark.
        --from TIME: Times from 3.5, 1m30s, 12:00:00 on. Since the capture began: seconds as lines
            show them (3.5, +3.5), 500ms, 1m30s, 1h. In UTC or in --tz: 12:00:00 (the day the
            capture began), 2026-01-31T12:00:00. Also: 2026-01-31T12:00:00+01:00, or seconds since
            1970.
        --to TIME: Times before this one, written as --from.
""")
class Names:
    """Filters by name and by time: `amqpsniff.analysis.selection` says what they choose."""

    client: str | None = None
    user: str | None = None
    vhost: str | None = None
    queue: str | None = None
    exchange: str | None = None
    routing_key: str | None = None
    method: Annotated[str | None, offer(words(dict.fromkeys(row.name for row in METHODS)))] = None
    message_id: str | None = None
    outcome: Annotated[str | None, offer(words_of("amqpsniff.session.codes", "OUTCOMES"))] = None
    errors: bool = False
    packet: str | None = None
    from_: str | None = None
    to: str | None = None

    def part(self) -> dict[str, Any]:
        """The filters as arguments of `amqpsniff.Capture`."""
        filters = {name: value for name, value in vars(self).items() if value not in (None, False)}
        filters.pop("limit", None)
        return filters | ({"tz": settings.zone} if settings.zone else {})

    def selection(self) -> Selection:
        """The part as the library has it; raises UsageError for what cannot be."""
        from amqpsniff.analysis.selection import Selection

        return Selection(limit=getattr(self, "limit", None), **self.part())


@group("""
    Filters:
        --connection ID: Id or its beginning, client's address:port, :port.
        --channel N: Number of a channel.
""")
class Scope(Names):
    """Options that select a part of the traffic."""

    connection: str | None = None
    channel: Annotated[int | None, at_least(0, 65535)] = None


@group("""
    Filters:
        --where SQL: A condition over the table's columns. For example "body_size > 1000 AND app_id
            = 'shop'". The table is frames for inspect and follow, messages for messages, trace and
            bodies, findings for diagnose. For cut it is frames, or findings where they choose
            packets.
""")
class Conditions(Scope):
    """Options that select a part of the traffic, by any condition."""

    where: str | None = None


@group("""
    Filters:
        -n --limit N: Stop after this many rows.
""")
class Rows(Conditions):
    """Options that select rows of a table."""

    limit: Annotated[int | None, at_least(0)] = None


@group("""
    Filters:
        --only CODES: Findings with these codes, with commas between.
        --ignore CODES: No findings with these codes.
        --severity SEVERITY: Findings as severe as this (info, warning, error) or more.
""")
class Wanted:
    """Options that choose findings by code and severity."""

    only: Annotated[str | None, offer(listed(codes))] = None
    ignore: Annotated[str | None, offer(listed(codes))] = None
    severity: FailOn = None


@group("""
    Output:
        -o --output FILE: The pcapng file to write. It is replaced once all is written; - for
            standard output.
""")
class NewCapture:
    """The capture that a command writes."""

    output: Path

    def sink(self, captures: list[str]) -> AbstractContextManager[IO[bytes]]:
        """A file that takes its place once all is written, or standard output, but no terminal.

        Raises UsageError where it is one of the captures that are read.
        """
        terminal = "a capture is not text for a terminal; give -o FILE, or a pipe"
        return sink(self.output, captures, terminal)

    def tell(self, subject: str, written_bytes: int) -> None:
        """Report on standard error the amount that was written."""
        name = "standard output" if self.output == STANDARD_OUTPUT else self.output
        complain(f"{subject}, {units.octets(written_bytes)}, in {name}")


@group("""
    Terminal:
        --color WHEN: Colour: {COLOURS}. With auto on a terminal, and where FORCE_COLOR or
            CLICOLOR_FORCE is set; not where NO_COLOR is. [default]
        --width N: Columns of a line. Default: those of the terminal; in a pipe nothing is cut.
        --tz ZONE: Time zone of dates and times of day: Europe/Berlin, +01:00, local. Default: UTC.
        --pager/--no-pager: Page what is longer than the screen. By $AMQPSNIFF_PAGER, $PAGER, or
            less; empty, or cat, for none.
""")
class Terminal:
    """Options of showing text; `amqpsniff.cli.output` does it."""

    color: Annotated[str, one_of(COLOURS, "no colour {}")] = COLOURS[0]
    width: Annotated[int | None, at_least(20)] = None
    tz: str | None = None
    pager: bool = True


def flag_of(name: str) -> str:
    """The option of a parameter: `--rotate-size` of `rotate_size`."""
    return f"--{name.strip('_').replace('_', '-')}"


FILTERS = frozenset(flag_of(field.name) for field in dataclasses.fields(Rows))
"""Options that choose rows."""


def _parameter(
    parameter: inspect.Parameter | dataclasses.Field[Any],
    kind: Any,
    described: dict[str, Any],
    constants: Mapping[str, Any],
) -> inspect.Parameter:
    """A parameter as typer reads it."""

    def constant(match: re.Match[str]) -> str:
        value = constants[match[1]]
        return ", ".join(value) if isinstance(value, tuple | dict) else str(value)

    make, flags, settings = described[parameter.name.strip("_")]
    settings = settings | {"help": _CONSTANT.sub(constant, settings["help"])}
    if parameter.name == "format_":
        settings |= one_of(constants["FORMATS"], "no format {} here")
    plain, *extras = get_args(kind) if hasattr(kind, "__metadata__") else (kind,)
    for extra in extras:
        settings |= extra
    default = (
        inspect.Parameter.empty if parameter.default is dataclasses.MISSING else parameter.default
    )
    annotation: Any = Annotated[plain, make(*flags, **settings)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(parameter.name, keyword, default=default, annotation=annotation)


def _parameters(
    function: Callable[..., Any], described: dict[str, Any]
) -> Iterator[tuple[str, Any, inspect.Parameter]]:
    """Of every parameter that typer is to see: the group it belongs to by name, and itself."""
    constants = ChainMap(vars(sys.modules[function.__module__]), globals())
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind = hints[name]
        if dataclasses.is_dataclass(kind):
            yield from _fields(name, kind, constants)
        else:
            yield name, None, _parameter(parameter, kind, described, constants)


def _fields(
    name: str, kind: Any, constants: Mapping[str, Any]
) -> Iterator[tuple[str, Any, inspect.Parameter]]:
    hints = get_type_hints(kind, include_extras=True)
    described = _SHARED | _HELP[Input]
    for base in reversed(kind.__mro__[:-1]):
        described |= _HELP[base]
    for field in dataclasses.fields(kind):
        yield name, kind, _parameter(field, hints[field.name], described, constants)


def _countable(value: Any) -> Any:
    """The value; of a number that no machine counts to, the highest to which it does."""
    return min(value, sys.maxsize) if isinstance(value, int) else value


def spread(
    text: str = "", *, paged: bool = True
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command with this help of its options the signature that typer reads.

    What it writes on a terminal may be `paged`, unless it comes from standard input, bit by bit.
    """
    return lambda function: _spread(function, _described(text), paged)


def _spread(
    function: Callable[..., int], described: dict[str, Any], paged: bool
) -> Callable[..., int]:
    found = list(_parameters(function, _SHARED | _HELP[Decoding] | _HELP[Input] | described))
    terminal = list(_fields("", Terminal, globals()))

    def call(**values: Any) -> int:
        terminal_values = {parameter.name: values[parameter.name] for _, _, parameter in terminal}
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
        terminal_values["pager"] &= paged and "-" not in (values.get("captures") or ())
        with shown(**terminal_values):
            return function(**arguments)

    seen = [parameter for _, _, parameter in [*found, *terminal]]
    call.__signature__ = inspect.Signature(seen)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in seen}
    for name in ("__module__", "__name__", "__doc__"):
        setattr(call, name, getattr(function, name))
    return call
