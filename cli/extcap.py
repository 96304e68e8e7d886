"""`amqpsniff extcap`: live traffic as an interface in Wireshark's list."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

from amqpsniff import __version__
from amqpsniff.errors import UsageError

from .completions import interfaces as network_interfaces
from .entry import complain
from .interrupts import stopping
from .options import offer, spread
from .reading import keylog as known

FOLDER = Path("~/.local/lib/wireshark/extcap")
"""The extcap folder of a person, for Wireshark 4.2 and newer; `tshark -G folders` names all."""


@spread("""
    Output:
        --install: Put a script that runs this command into Wireshark's folder.
        --folder FOLDER: The folder for --install. Default: {FOLDER}

    Given by Wireshark:
        --extcap-interfaces: List the interfaces.
        --extcap-version V: Version of Wireshark.
        --extcap-dlts: List the link types.
        --extcap-config: List the options.
        --extcap-interface NAME: The interface that is meant.
        --extcap-reload-option NAME: An option to list anew.
        --capture: Capture now.
        --fifo FILE: Where the packets are written.
        --extcap-capture-filter BPF: Capture only what this lets through.
        --interface IFACE: Network interface to capture on.
        --port N,N: Only these TCP ports.
""")
def extcap(
    install: bool = False,
    folder: Path = FOLDER,
    extcap_interfaces: bool = False,
    extcap_version: str | None = None,
    extcap_dlts: bool = False,
    extcap_config: bool = False,
    extcap_interface: str | None = None,
    extcap_reload_option: str | None = None,
    capture: bool = False,
    fifo: Path | None = None,
    extcap_capture_filter: str = "",
    interface: Annotated[str | None, offer(network_interfaces)] = None,
    port: str = "",
    tls_keylog: str | None = None,
) -> int:
    """Give Wireshark an interface: live traffic with findings as packet comments.

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
    if extcap_interfaces:
        print(sentences.interfaces(__version__), end="")
        return 0
    if extcap_interface is None or not (extcap_dlts or extcap_config or capture):
        raise UsageError("Wireshark runs this; `amqpsniff extcap --install` puts it in its folder")
    if extcap_interface != sentences.INTERFACE:
        raise UsageError(f"no interface {extcap_interface}; there is {sentences.INTERFACE}")
    if extcap_dlts:
        print(sentences.link_types(), end="")
    elif extcap_config:
        print(sentences.arguments(available()), end="")
    elif fifo is None:
        raise UsageError("--capture writes to a FIFO; give --fifo FILE")
    else:
        _capture(fifo, interface, _ports(port), extcap_capture_filter, tls_keylog)
    return 0


def _install(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "amqpsniff"
    command = shlex.join([sys.executable, "-m", "amqpsniff", "extcap"])
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    complain(f"{script} is there; start Wireshark anew, or run `tshark -D`")
    return 0


def _ports(text: str) -> list[int]:
    """Ports of a list with commas; raises UsageError if one is invalid."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if not (word.isdecimal() and 0 < int(word) < 65_536):
            raise UsageError(f"--port {word!r} is not a port; write 5672 or 5672,5673")
    return [int(word) for word in words]


def _capture(
    fifo: Path, interface: str | None, ports: list[int], expression: str, keylog: str | None
) -> None:
    """Write packets until Wireshark reads no more or sends a signal."""
    from amqpsniff.capture.filter import ports_expression
    from amqpsniff.capture.live_capture import InterfaceCapture
    from amqpsniff.live.event_loop import Steps
    from amqpsniff.live.watch import Watch
    from amqpsniff.options import Options
    from amqpsniff.wireshark.extcap import CommentingWriter

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
            steps = Steps(watch, out=sink.fileno())
            with stopping(steps):
                for _ in steps:
                    for _, findings in watch.rows():
                        writer.comment(findings)
                    writer.flush()
            for _, findings in watch.finish():
                writer.comment(findings)
        finally:
            watch.close()
