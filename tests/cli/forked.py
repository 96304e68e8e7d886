"""The command line in processes that are forked from one that has imported all of it.

Each run is a process of its own with its own descriptors, environment and folder, as if it had been
started by a shell, but for the half second of imports. How the program starts, and what it imports,
is for tests that run the real one (`running.PROGRAM`).
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import reduction
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tests.cli.forked_modules"])

DEFAULT_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Who runs the tests in the background has them ignored, by children too."""


class _Descriptor:
    """A descriptor that is handed to the process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __reduce__(self) -> Any:
        return _received, (reduction.DupFd(self._number),)


def _received(sent: Any) -> int:
    number: int = sent.detach()
    return number


def start(
    arguments: Sequence[str],
    streams: Sequence[int],
    environment: Mapping[str, str],
    folder: Path,
    patient: bool = False,
) -> BaseProcess:
    """A process that runs a command line with these three standard streams.

    With `patient` it never says how far it is, however slow the machine.
    """
    given = (arguments, [_Descriptor(one) for one in streams], dict(environment), folder, patient)
    process = SERVER.Process(target=_run, args=given)
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")  # the child would import that of the tests
    try:
        process.start()
    finally:
        sys.modules["__main__"] = main
    return process


def _run(
    arguments: Sequence[str],
    streams: Sequence[int],
    environment: Mapping[str, str],
    folder: Path,
    patient: bool,
) -> None:
    for place, number in enumerate(streams):
        os.dup2(number, place)
        os.close(number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in DEFAULT_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["amqpsniff", *arguments]
    from amqpsniff.cli import progress
    from amqpsniff.cli.entry import main

    if patient:
        progress.PATIENCE_SECONDS = 1e9
    sys.exit(main())
