"""The commands there are, and how one of them is run.

A command's module is imported when it is asked for, so that starting costs what the command needs.
"""

from __future__ import annotations

import os
from copy import copy
from functools import partial
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from amqpsniff import __version__

COMMANDS = (
    "live", "inspect", "summary", "connections", "channels", "messages", "trace", "follow",
    "topology", "diagnose", "report", "report-table", "diff", "export", "sql", "bodies", "batch",
    "verify", "sanitize", "explain", "spec",
)  # fmt: skip
"""Every command has the name of its module in this package and of the function in it, with `_` for
`-`, in the order in which the help lists them."""

COMPLETE = "_AMQPSNIFF_COMPLETE"
"""Environment variable by which a shell asks for completions: `complete_bash` and so on."""

_TYPED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Environment variables with the line as far as it is typed, in bash and in other shells."""

_PLAINER = {
    "is not a valid int range": "is not a whole number",
    "is not a valid float range": "is not a number",
}
"""What typer says of numbers -> the same for those who use no typer."""

HELP = ["-h", "--help"]
CONTEXT = {"help_option_names": HELP}


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code. Raises what the command raises, and UsageError."""
    from amqpsniff.errors import UsageError

    if os.environ.get(COMPLETE):
        _complete()
    name = arguments[0] if arguments else ""
    application = _application(name)
    command = typer.main.get_command(application)
    _leave_out_types(command)
    if not arguments:
        arguments = ["--help"]
    try:
        # not command.main(): it takes a closed pipe for an error
        with command.make_context("amqpsniff", arguments) as context:
            code = command.invoke(context)
    except typer.Exit as leave:
        return leave.exit_code
    except _usage_errors() as error:
        raise UsageError(_one_line(error, name)) from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    return code if isinstance(code, int) else 0


def _complete() -> NoReturn:
    """Answer a shell, and leave; only the command that is typed is imported, if it is one."""
    typed = next((os.environ[name] for name in _TYPED if name in os.environ), "").split()
    application = _application(typed[1] if len(typed) > 1 else "", completion=True)
    typer.main.get_command(application).main([], "amqpsniff")
    raise SystemExit


def _application(name: str, *, completion: bool = False) -> typer.Typer:
    """The named command, or all of them when there is none of that name."""
    application = typer.Typer(
        add_completion=completion or name not in COMMANDS,
        rich_markup_mode="markdown",
        context_settings=CONTEXT,
        no_args_is_help=False,
    )
    application.callback()(_overview)
    for one in (name,) if name in COMMANDS else COMMANDS:
        application.command(one, context_settings=CONTEXT)(function_of(one))
    return application


def function_of(command: str) -> Any:
    """The function of a command; its module is imported."""
    name = command.replace("-", "_")
    return getattr(import_module(f".{name}", __package__), name)


def _usage(argument: Any, ctx: Any, *, usage: bool = False) -> str:
    """How an argument is named; in a usage line, with brackets where it may be left out."""
    name: str = argument.metavar or argument.name
    return name if argument.required or not usage else f"[{name}]"


def _leave_out_types(program: Any) -> None:
    """Keep the help from saying `<str>` of captures and other arguments, as typer does."""
    for command in program.commands.values():
        for one in command.params:
            if one.param_type_name == "argument":
                one.type = copy(one.type)
                one.type.get_metavar = lambda param, ctx: ""
                one.make_metavar = partial(_usage, one)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"amqpsniff {__version__}")
        raise typer.Exit


def _show_man(wanted: bool) -> None:
    if wanted:
        from .manual import page

        print(page(typer.main.get_command(_application(""))), end="")
        raise typer.Exit


def _overview(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
    show_man: Annotated[
        bool,
        typer.Option(
            "--show-man",
            callback=_show_man,
            is_eager=True,
            help="Show the manual page as troff, for `man -l -`.",
        ),
    ] = False,
) -> None:
    """Show what happened on an AMQP wire, from packet captures.

    Captures are files (pcap, pcapng, also compressed), directories, patterns, or - for standard
    input. AMQP is found on any port, by content.
    """


def _usage_errors() -> type[Exception]:
    """The base of typer's errors: typer gives it no name, for it came from click once."""
    names = {base.__name__: base for base in typer.BadParameter.__mro__}
    return names["ClickException"]


def _one_line(error: Any, name: str) -> str:
    """What typer says of a command line that begins with `name`, in words for anybody."""
    text = " ".join(error.format_message().split()).rstrip(".")
    if name == "sql" and "'CAPTURE...'" in text:
        # where there is only one argument typer takes it for SELECT
        text = "Missing argument 'SELECT', behind the captures"
    for said, meant in _PLAINER.items():
        text = text.replace(said, meant)
    where = f"amqpsniff {name}" if name in COMMANDS else "amqpsniff"
    return f"{text}; see `{where} --help`"
