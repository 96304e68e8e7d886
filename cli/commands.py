"""The commands, and the way to run one of them.

A command's module is imported when it is asked for, so that starting costs what the command needs.
"""

from __future__ import annotations

import os
from copy import copy
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from amqpsniff import __version__
from amqpsniff.errors import UsageError

from .help import Command, painted, program_help
from .installed import warn_once_if_slow
from .options import FILTERS

GROUPS = {
    "What is wrong": {
        "diagnose": "List problems in captures",
        "explain": "Explain the code of a finding",
        "diff": "Show what differs between two captures",
    },
    "What is there": {
        "summary": "Show what is in captures",
        "topology": "Show exchanges, queues, bindings and who uses them",
        "connections": "List connections",
        "channels": "List channels",
        "links": "List links of AMQP 1.0",
        "report": "Write one HTML page about captures",
        "report-table": "Show counts, times and shares as a table",
    },
    "What happened": {
        "inspect": "List methods and messages in the order of time, one a line",
        "messages": "List messages",
        "trace": "Follow messages on their way, over all connections",
        "follow": "Show one conversation, both directions, from top to bottom",
        "live": "Watch traffic as it happens",
    },
    "For programs": {
        "export": "Write the rows of a table, for programs",
        "sql": "Query the tables",
        "bodies": "Write the bodies of messages to files, with a manifest",
        "batch": "Write the tables of an archive as Parquet, with Spark",
    },
    "To hand on, to check": {
        "cut": "Write the packets that matter to a capture of their own",
        "annotate": "Write a capture with findings as packet comments, for Wireshark",
        "extcap": "Give Wireshark an interface",
        "sanitize": "Write a capture that is safe to share",
        "verify": "Compare the decoding of captures with tshark's",
        "spec": "Look up the protocol",
    },
}
"""Commands in the order in which the help lists them, with the beginning of their own help: to list
them none is imported. Each has the name of a function, with `_` for `-`, and its module in this
package that name too, if it is not among `_MODULES`."""

_MODULES = dict.fromkeys(("connections", "channels", "links"), "list_table")

COMMANDS = tuple(name for names in GROUPS.values() for name in names)

USUAL = "summary"
"""The command that is run where a capture is given and no command."""

RENAMED = {
    "--top": ("--limit", ("summary", "topology", "diff")),
    "--rows": ("--limit", ("batch",)),
    "--body": ("--bodies", ("messages",)),
}
"""Old names of options, the new ones, and the commands that had them."""

COMPLETE = "_AMQPSNIFF_COMPLETE"
"""Environment variable by which a shell asks for completions: `complete_bash` and so on."""

_TYPED = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Environment variables with the line as far as it is typed, in bash and in other shells."""

_PLAINER = {
    "is not a valid int range": "is not a whole number",
    "is not a valid float range": "is not a number",
}
"""Messages of typer about numbers -> the same in plain words."""

HELP = ["-h", "--help"]
CONTEXT = {"help_option_names": HELP}


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code. Raises what the command raises, and UsageError."""
    if os.environ.get(COMPLETE):
        _complete()
    if arguments and _is_capture(arguments[0]):
        arguments = [USUAL, *arguments]
    arguments = arguments or ["--help"]
    name = arguments[0]
    # all commands, to suggest one for an unknown name
    program = application(*([name] if name in COMMANDS or name[:1] == "-" else COMMANDS))
    command = typer.main.get_command(program)
    _leave_out_types(command)
    warn_once_if_slow()
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


def _is_capture(word: str) -> bool:
    """True if a word is not a command or option, and names a file, or standard input."""
    if word in COMMANDS or (word.startswith("-") and word != "-"):
        return False
    return word == "-" or any(letter in word for letter in "*?[") or Path(word).exists()


def _complete() -> NoReturn:
    """Answer a shell, and leave; only the command that is typed is imported, if it is one."""
    typed = next((os.environ[name] for name in _TYPED if name in os.environ), "").split()
    names = typed[1:2] if typed[1:2] and typed[1] in COMMANDS else COMMANDS
    program = application(*names, completion=True)
    typer.main.get_command(program).main([], "amqpsniff")
    raise SystemExit


class Program(TyperGroup):
    """The commands that are asked for, and the help of all."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the description of the program and its commands."""
        formatter.write("\n".join(painted(program_help(self.help or "", GROUPS))))


def application(*names: str, completion: bool = False) -> typer.Typer:
    """The program with these commands, as far as there are such."""
    program = typer.Typer(
        add_completion=completion or len(names) != 1 or names[0] not in COMMANDS,
        cls=Program,
        rich_markup_mode=None,
        context_settings=CONTEXT,
        no_args_is_help=False,
    )
    program.callback()(_overview)
    for name in names:
        if name in COMMANDS:
            program.command(name, cls=Command, context_settings=CONTEXT)(function_of(name))
    return program


def function_of(command: str) -> Any:
    """The function of a command; its module is imported."""
    name = command.replace("-", "_")
    return getattr(import_module(f".{_MODULES.get(name, name)}", __package__), name)


def _usage(argument: Any, ctx: Any, *, usage: bool = False) -> str:
    """The name of an argument; in a usage line, with brackets if it is optional."""
    name: str = argument.metavar or argument.name
    return name if argument.required or not usage else f"[{name}]"


def _no_option(text: str, name: str) -> str:
    """The error for an option that was renamed, or a filter that means nothing to a command."""
    option = text.removeprefix("No such option: ").split()[0].rstrip(".")
    now, commands = RENAMED.get(option, ("", ()))
    if name in commands:
        return f"{option} is now {now}"
    if option in FILTERS and name in COMMANDS:
        return (
            f"{option} chooses rows of a capture, which {name} does not; No such option: {option}"
        )
    return text


def _leave_out_types(program: Any) -> None:
    """Keep the help from saying `<str>` of captures and other arguments, as typer does."""
    for command in program.commands.values():
        for param in command.params:
            if param.param_type_name == "argument":
                param.type = copy(param.type)
                param.type.get_metavar = lambda param, ctx: ""
                param.make_metavar = partial(_usage, param)


def _show_version(is_given: bool) -> None:
    if is_given:
        print(f"amqpsniff {__version__}")
        raise typer.Exit


def _show_man(is_given: bool) -> None:
    if is_given:
        from .manual import page

        print(page(typer.main.get_command(application(*COMMANDS))), end="")
        raise typer.Exit


def _overview(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_show_version,
            is_eager=True,
            help="Show the version; with -v also what is installed.",
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
    """Show what happened between RabbitMQ and its clients, from packet captures.

    A capture is a file, a directory or -. `amqpsniff CAPTURE` is a summary of it.
    """


def _usage_errors() -> type[Exception]:
    """The base of typer's errors: typer gives it no name, for it came from click once."""
    names = {base.__name__: base for base in typer.BadParameter.__mro__}
    return names["ClickException"]


def _one_line(error: Any, name: str) -> str:
    """Typer's message about a command line that begins with `name`, in plain words."""
    text = " ".join(error.format_message().split()).rstrip(".")
    if name == "sql" and "'CAPTURE...'" in text:
        # typer takes a single argument for SELECT
        text = "Missing argument 'SELECT', behind the captures"
    for message, plain in _PLAINER.items():
        text = text.replace(message, plain)
    if text.startswith("No such option: "):
        text = _no_option(text, name)
    elif text.startswith("No such command "):
        text += ", and no such file"
    command = f"amqpsniff {name}" if name in COMMANDS else "amqpsniff"
    return f"{text}; see `{command} --help`"
