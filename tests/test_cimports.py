"""A cimport gives what an import gives, compiled and uncompiled."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tests.plain import copied, lines_of

SCRIPT = """
import amqpsniff.decode.framer
import amqpsniff.decode.state
from cython.cimports.amqpsniff.decode.state import Half

print(amqpsniff.decode.state.__file__.endswith(".py"))
print(Half is amqpsniff.decode.state.Half is amqpsniff.decode.framer.Half)
"""


def test_a_module_is_not_loaded_twice() -> None:
    name = "amqpsniff.decode.state"
    module = import_module(name)
    assert import_module(f"cython.cimports.{name}") is module


def test_a_class_is_the_same_uncompiled(tmp_path: Path) -> None:
    assert lines_of(copied(tmp_path), SCRIPT) == ["True", "True"]


def test_the_package_alone_imports_no_cython() -> None:
    script = "import sys, amqpsniff; print('cython' in sys.modules, 'Cython' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.split() == [b"False", b"False"]
