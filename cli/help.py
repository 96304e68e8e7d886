"""The help of commands: a screen of it for `--help`, everything for `--help-all`.

The short help has one line an option, the first sentence of its text, filters first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from typer.core import TyperCommand, TyperOption

WIDTH = 80
MAX_WIDTH = 100
"""Columns of the help: those of the terminal, between these."""

NAMES_WIDTH = 24
"""Columns of the names of options, at most."""

FIRST = ("Filters", "Capturing", "Output", None)
"""Panels in the order in which they are shown, before others."""

RARE = ("Recording", "Input", "Terminal")
"""Panels whose options the short help only names."""

MAX_LINES = 38
"""Lines of a short help: examples are left out where there would be more."""

ALL = "--help-all"


def _help_all(context: Any, option: Any, is_given: bool) -> None:
    """Write everything, paged where that is longer than the screen."""
    if is_given:
        from .output import Output, shown

        with shown():
            Output().lines(painted(command_help(context, full=True)))
        context.exit()


class Command(TyperCommand):
    """A command with a short and a whole help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its own, and the two of the help."""
        *own, short = super().get_params(ctx)
        help_all = TyperOption(
            param_decls=[ALL], is_flag=True, is_eager=True, expose_value=False, callback=_help_all,
            help="Show all that is to be said of every option.", type=bool, default=False,
        )  # fmt: skip
        return [*own, short, help_all]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the short help."""
        formatter.write("\n".join(painted(command_help(ctx, full=False))))


def painted(lines: Iterable[str]) -> Iterator[str]:
    """Lines with their headings coloured where output is."""
    from .output import Output

    paint = Output().paint
    for line in lines:
        heading = line and not line.startswith((" ", "Usage", "More"))
        yield paint("heading", line) if heading else line


def _columns() -> int:
    from .output import Output

    return min(max(Output().width or WIDTH, WIDTH), MAX_WIDTH)


def program_help(text: str, groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """The lines of the help of the program: its own text, and commands by group."""
    yield "Usage: amqpsniff COMMAND [OPTIONS] CAPTURE..."
    yield ""
    yield from _paragraphs(text)
    for group, commands in groups.items():
        yield ""
        yield group
        for name, about in commands.items():
            yield from _item(name, about, full=False, width=12)
    yield ""
    yield f"More: `amqpsniff COMMAND --help`, {ALL}; --version, --install-completion"


def command_help(context: Any, *, full: bool) -> Iterator[str]:
    """The lines of the help of a command."""
    command = context.command
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    shown = " ".join(
        argument.metavar if argument.required else f"[{argument.metavar}]" for argument in arguments
    )
    yield f"Usage: amqpsniff {command.name} [OPTIONS] {shown}".rstrip()
    yield ""
    text, _, examples = command.help.partition("Examples:")
    lines = list(_paragraphs(text.rstrip() if full else text.split("\n\n", maxsplit=1)[0]))
    if full:
        for argument in arguments:
            lines += ["", *_item(argument.metavar, argument.help, full=True)]
    panels: dict[str | None, list[Any]] = {name: [] for name in FIRST}
    for option in command.params:
        if option.param_type_name == "option":
            panels.setdefault(option.rich_help_panel, []).append(option)
    for panel, options in panels.items():
        if options and (full or panel not in RARE):
            lines += ["", panel or "Options"]
            width = min(max(len(_written(option)) for option in options), NAMES_WIDTH)
            for option in options:
                lines += _item(_written(option), _about(option), full=full, width=width)
    rare = [_written(option).split()[-1 if option.is_flag else -2]
            for name in RARE for option in panels.get(name, ())]  # fmt: skip
    if rare and not full:
        lines += ["", *_folded(f"More, by {ALL}: {', '.join(rare)}")]
    example_lines = [f"  {line.strip()}" for line in examples.strip().splitlines()]
    if example_lines and (full or len(lines) + len(example_lines) + 2 <= MAX_LINES):
        lines += ["", "Examples", *example_lines]
    yield from lines


def _written(option: Any) -> str:
    """An option as it is typed."""
    names = sorted(option.opts, key=len)
    if option.secondary_opts and option.default:
        names = option.secondary_opts  # the way to turn it off
    return ", ".join(names) + ("" if option.is_flag else f" {option.metavar}")


def _about(option: Any) -> str:
    shown = option.show_default and not option.is_flag and option.default not in (None, "")
    return f"{option.help} Default: {option.default}." if shown else option.help


def _item(name: str, about: str, *, full: bool, width: int = NAMES_WIDTH) -> Iterator[str]:
    """A name and what it is: on one line, or as many as it takes."""
    from .render.text import cut

    if not full:
        first, *rest = re.split(r"(?<=[^. ]\.) (?=[A-Z0-9`$])", about)
        default = next((sentence for sentence in rest if sentence.startswith("Default: ")), "")
        room = _columns() - width - 4
        text = first if first.endswith("...") else first.rstrip(".")
        text = text if len(text) <= room else text.partition("; ")[0]
        text += f" [{default[9:].rstrip('.')}]" if default and len(text + default) < room else ""
        yield f"  {name.ljust(width)}  {cut(text, room)}"
        return
    yield f"  {name}"
    yield from _folded(about, indent=6)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        yield from _folded(" ".join(paragraph.split()), indent=2)


def _folded(text: str, indent: int = 0) -> Iterator[str]:
    from .render.text import folded

    for line in folded(text, _columns() - indent):
        yield " " * indent + line
