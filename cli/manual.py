"""The manual page, made from the help of the commands: `amqpsniff --show-man`.

It is written in the man macros of troff, for `man -l -` or a folder of manual pages. What is not in
a command's help, exit codes and the environment, is here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from amqpsniff import __version__

FOUND = (
    "diagnose, report or diff found what --fail-on or --fail-slower asks for; verify found an "
    "unknown difference; or the captures of diff --same-traffic have no connection in common."
)
EXIT_CODES = (
    ("0", "Success."),
    ("1", FOUND),
    ("2", "An option or an argument is wrong."),
    ("3", "A capture could not be read, or output could not be written."),
    ("130", "Ended by Ctrl-C. Ended by another signal, the process dies of that signal."),
)
ENVIRONMENT = (
    ("NO_COLOR", "When set, nothing is coloured unless --color says so."),
    ("FORCE_COLOR", "When set, as CLICOLOR_FORCE, there are colours in a pipe too."),
    ("AMQPSNIFF_PAGER", "What pages text that is longer than the screen, before PAGER and less."),
    ("COLUMNS", "The width of lines on a terminal, in place of its own; not of the dashboard."),
    ("SSLKEYLOGFILE", "A key log that opens TLS connections, where --tls-keylog gives none."),
    ("AMQPSNIFF_TRACEBACK", "When set, an internal error shows where it came from."),
)
HELP = ("-h, --help", "Show the help of the program, or a screen of that of a command.")
HELP_ALL = ("--help-all", "Show everything about the options of a command.")
COMMON = 5
"""How many commands must share an option for it to be described once, for all of them."""
_LONG = re.compile(r"--[a-z0-9-]+")
SEE_ALSO = (("tshark", 1), ("editcap", 1), ("tcpdump", 8), ("pcap-filter", 7), ("capinfos", 1))


def page(command: Any) -> str:
    """The page of a program, which is typer's command of its application, with every command."""
    overview, *rest = command.help.split("\n\n")
    lines = [
        f'.TH AMQPSNIFF 1 "" "amqpsniff {__version__}" "User Commands"',
        ".SH NAME",
        f"amqpsniff \\- {_text(overview[0].lower() + overview[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        ".B amqpsniff",
        ".I COMMAND",
        "[\\fIoption\\fR ...] [\\fIargument\\fR ...]",
        ".SH DESCRIPTION",
        *_paragraphs(rest),
        ".SH OPTIONS",
        *_items([*named(command.params), HELP, HELP_ALL]),
        ".SH COMMANDS",
    ]
    common = common_options(command)
    for name, subcommand in command.commands.items():
        lines += _command(name, subcommand, common)
    lines += [".SH COMMON OPTIONS", *_items(common)]
    lines += [".SH EXIT STATUS", *_items(EXIT_CODES), ".SH ENVIRONMENT", *_items(ENVIRONMENT)]
    seen = ", ".join(f"\\fB{_text(name)}\\fR({section})" for name, section in SEE_ALSO)
    return "\n".join([*lines, ".SH SEE ALSO", seen, ""])


def common_options(program: Any) -> list[tuple[str, str]]:
    """Options that several commands have, as `named` gives them: they are described once."""
    options = Counter(
        option for subcommand in program.commands.values() for option in named(subcommand.params)
    )
    return [option for option, times in options.items() if times >= COMMON and option[0][0] == "-"]


def _command(name: str, command: Any, common: list[tuple[str, str]]) -> Iterator[str]:
    """A command with its own options, and the names of those that it has in common."""
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    yield f".SS amqpsniff {name} {' '.join(map(_argument, arguments))} [\\fIoption\\fR ...]"
    yield from _paragraphs(command.help.split("\n\n"))
    all_named = list(named(command.params))
    yield from _items(option for option in all_named if option not in common)
    shared = ", ".join(
        _LONG.findall(" ".join(option[0] for option in all_named if option in common))
    )
    if shared:
        yield ".PP"
        yield f"Common options: {_text(shared)}."


def _argument(argument: Any) -> str:
    """An argument in the line of a synopsis."""
    shown = f"\\fI{_text(argument.metavar.strip('[].'))}\\fR"
    shown += " ..." if argument.nargs == -1 else ""
    return shown if argument.required else f"[{shown}]"


def named(parameters: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Arguments, then options: the syntax and the help of each."""
    for parameter in sorted(parameters, key=lambda parameter: parameter.param_type_name):
        about = parameter.help or ""
        if parameter.param_type_name == "argument":
            yield parameter.metavar.strip("[]."), about
            continue
        names = ", ".join(sorted([*parameter.opts, *parameter.secondary_opts], key=len))
        value = f" {parameter.metavar or ''}" if not parameter.is_flag else ""
        default = parameter.default if parameter.show_default and not parameter.is_flag else None
        yield names + value.rstrip(), f"{about} Default: {default}." if default else about


def _items(items: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, about in items:
        names, _, value = name.partition(" ") if "," not in name else _last(name)
        yield ".TP"
        yield f"\\fB{_text(names)}\\fR" + (f" \\fI{_text(value)}\\fR" if value else "")
        yield from _prose(about)


def _last(name: str) -> tuple[str, str, str]:
    """`-n, --limit N` as names and value."""
    names, _, last = name.rpartition(", ")
    option, space, value = last.partition(" ")
    return f"{names}, {option}", space, value


def _paragraphs(paragraphs: Iterable[str]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        if paragraph.startswith("    "):
            yield ".RS 4"
            yield ".nf"
            yield from (_line(line.strip()) for line in paragraph.splitlines())
            yield ".fi"
            yield ".RE"
        else:
            yield from _prose(paragraph)


def _prose(text: str) -> Iterator[str]:
    """One sentence a line, with what stands between backquotes in bold."""
    for sentence in re.split(r"(?<=[.:;]) (?=[A-Z])", " ".join(text.split())):
        yield re.sub(r"`([^`]+)`", r"\\fB\1\\fR", _line(sentence))


def _line(text: str) -> str:
    """A line of text that troff does not take for a request."""
    shown = _text(text)
    return f"\\&{shown}" if shown[:1] in ("'", ".") else shown


def _text(text: str) -> str:
    """Text as troff shows it, letter by letter."""
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    for letter, name in (
        ("'", "\\(aq"),
        ("^", "\\(ha"),
        ("~", "\\(ti"),
        ("→", "\\(->"),
        ("←", "\\(<-"),
    ):
        shown = shown.replace(letter, name)
    return shown
