"""`amqpsniff extcap`: live traffic as an interface in Wireshark's list."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from amqpsniff import __version__
from amqpsniff.errors import UsageError

from .completions import interfaces as network_interfaces
from .options import TlsKeylog, option, spread

PANEL = "Given by Wireshark"
FOLDER = Path("~/.local/lib/wireshark/extcap")
"""The extcap folder of a person, for Wireshark 4.2 and newer; `tshark -G folders` names all."""


@spread
def extcap(
    install: Annotated[
        bool, option("--install", "Put a script that runs this command into Wireshark's folder.")
    ] = False,
    folder: Annotated[
        Path, option("--folder FOLDER", f"The folder for --install. Default: {FOLDER}")
    ] = FOLDER,
    interfaces: Annotated[
        bool, option("--extcap-interfaces", "List the interfaces.", PANEL)
    ] = False,
    version: Annotated[
        str | None, option("--extcap-version V", "Version of Wireshark.", PANEL)
    ] = None,
    dlts: Annotated[bool, option("--extcap-dlts", "List the link types.", PANEL)] = False,
    config: Annotated[bool, option("--extcap-config", "List the options.", PANEL)] = False,
    of: Annotated[
        str | None, option("--extcap-interface NAME", "The interface that is meant.", PANEL)
    ] = None,
    reload: Annotated[
        str | None, option("--extcap-reload-option NAME", "An option to list anew.", PANEL)
    ] = None,
    capture: Annotated[bool, option("--capture", "Capture now.", PANEL)] = False,
    fifo: Annotated[
        Path | None, option("--fifo FILE", "Where the packets are written.", PANEL)
    ] = None,
    filter_: Annotated[
        str, option("--extcap-capture-filter BPF", "Capture only what this lets through.", PANEL)
    ] = "",
    interface: Annotated[
        str | None,
        option(
            "--interface IFACE",
            "Network interface to capture on.",
            PANEL,
            autocompletion=network_interfaces,
        ),
    ] = None,
    port: Annotated[str, option("--port N,N", "Only these TCP ports.", PANEL)] = "",
    tls_keylog: TlsKeylog = None,
) -> int:
    """Be an interface of Wireshark: live traffic with findings as packet comments.

    `amqpsniff extcap --install` once, then choose `AMQP, with findings as packet comments` in
    Wireshark's list. Its options are the network interface, ports and a key log for TLS. Capturing
    needs the rights of `amqpsniff live`.

    Examples:

        amqpsniff extcap --install
        tshark -i amqpsniff -Y frame.comment
    """
    from amqpsniff.capture.live_capture import available
    from amqpsniff.wireshark import extcap as sentences

    if install:
        return _install(folder.expanduser())
    if interfaces:
        print(sentences.interfaces(__version__), end="")
        return 0
    if of is None or not (dlts or config or capture):
        raise UsageError("Wireshark runs this; `amqpsniff extcap --install` puts it in its folder")
    if of != sentences.INTERFACE:
        raise UsageError(f"no interface {of}; there is {sentences.INTERFACE}")
    if dlts:
        print(sentences.link_types(), end="")
    elif config:
        print(sentences.arguments(available()), end="")
    elif fifo is None:
        raise UsageError("--capture writes to a FIFO; give --fifo FILE")
    else:
        _capture(fifo, interface, _ports(port), filter_, tls_keylog)
    return 0


def _install(folder: Path) -> int:
    """Write the script that Wireshark runs."""
    from .entry import complain

    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "amqpsniff"
    command = shlex.join([sys.executable, "-m", "amqpsniff", "extcap"])
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    complain(f"{script} is there; start Wireshark anew, or run `tshark -D`")
    return 0


def _ports(text: str) -> list[int]:
    """Ports of a list with commas; raises UsageError for what is none."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if not (word.isdecimal() and 0 < int(word) < 65_536):
            raise UsageError(f"--port {word!r} is no port; write 5672 or 5672,5673")
    return [int(word) for word in words]


def _capture(
    fifo: Path, interface: str | None, ports: list[int], expression: str, keylog: str | None
) -> None:
    """Write packets until Wireshark reads no more or sends a signal."""
    from amqpsniff.capture.filter import ports_expression
    from amqpsniff.capture.live_capture import InterfaceCapture
    from amqpsniff.live.watch import Watch
    from amqpsniff.options import Options
    from amqpsniff.wireshark.extcap import CommentingWriter

    from .event_loop import Steps
    from .reading import keylog as known

    options = Options(
        ports=frozenset(ports), tls_keylog=known(keylog, exists=False), tls_keylog_later=True
    )
    source = InterfaceCapture(
        [interface] if interface else (), expression or ports_expression(ports)
    )
    with fifo.open("wb") as sink:
        writer = CommentingWriter(sink, source.name_of)
        watch = Watch(source, options, ("findings",), writer=writer)
        try:
            with Steps(watch, out=sink.fileno()) as steps:
                for _ in steps:
                    for _, findings in watch.rows():
                        writer.comment(findings)
                    writer.flush()
            for _, findings in watch.finish():
                writer.comment(findings)
        finally:
            watch.close()
