"""Rights: what is said without them, and that they are given up once the socket is open."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import site
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from amqpsniff.capture.live_capture import InterfaceCapture
from amqpsniff.errors import UsageError
from tests.cli.running import environment
from tests.conftest import SAMPLES
from tests.live.broker import free_port
from tests.tls.talk import identity
from tests.waiting import PATIENCE, wait_for

NOBODY = "nobody"
PROGRAM = """
import site, sys
for folder in {folders!r}:
    site.addsitedir(folder)
from amqpsniff.cli.entry import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def program() -> tuple[str, ...]:
    """The program, as a user without rights can run it: with a Python that everybody can read.

    `-S`: the packages of the system, which may be older, are not before those of this environment.
    """
    folders = [*site.getsitepackages(), *sys.path[1:]]
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("becoming another user needs root and setpriv")
    pythons = [f"/usr/bin/python3.{sys.version_info.minor}"]
    if _without_rights("test", "-r", Path(os.__file__).parent).returncode == 0:
        pythons.insert(0, sys.executable)
    for python in filter(shutil.which, pythons):
        command = (python, "-S", "-c", PROGRAM.format(folders=folders))
        if _without_rights(*command, "live", "--help").returncode == 0:
            return command
    pytest.skip(f"{NOBODY} can run no Python of this version, or not read this program")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that nobody may write to."""
    path = Path(tempfile.mkdtemp(prefix="amqpsniff-", dir="/var/tmp"))
    shutil.chown(path, NOBODY)
    yield path
    shutil.rmtree(path)


def _without_rights(*command: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    """A command run by a user without any capability."""
    drop = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={pwd.getpwnam(NOBODY).pw_gid}", *drop)
    return subprocess.run(
        (*become, *command), capture_output=True, text=True, check=False, timeout=PATIENCE,
        cwd="/", env=environment(), **more,
    )  # type: ignore[call-overload, no-any-return]  # fmt: skip


def test_without_the_capability(program: tuple[str, ...]) -> None:
    """One line: which one, how to give it, and that a pipe needs none."""
    done = _without_rights(*program, "live", "-i", "lo", "--duration", "5s")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1
    for words in ("CAP_NET_RAW", "sudo setcap cap_net_raw=ep", "tcpdump -i lo -U -w - | amqpsniff"):
        assert words in done.stderr


def test_a_pipe_needs_no_right(program: tuple[str, ...]) -> None:
    with (SAMPLES / "pika_mix.pcap").open("rb") as file:
        done = _without_rights(*program, "live", "-", "-t", "connections", "-q", stdin=file)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["client_product"]


def test_root_is_given_up(program: tuple[str, ...], folder: Path) -> None:
    """Once it captures, the process is another user without capabilities, and files still turn."""
    command = (*program, "live", "-i", "lo", "-w", "kept.pcapng", "--rotate-size", "100kB")
    entry = pwd.getpwnam(NOBODY)
    with subprocess.Popen(
        (*command, "--keep", "3"), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, env=environment(SUDO_UID=str(entry.pw_uid)),
    ) as running:  # fmt: skip
        assert running.stderr is not None
        first = running.stderr.readline()
        assert "Ctrl-C ends it" in first
        status = dict(
            line.split(":\t", 1)
            for line in Path(f"/proc/{running.pid}/status").read_text().splitlines()
        )
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:

            def turned() -> bool:
                sender.sendto(bytes(1000), ("127.0.0.1", 9))
                return len(list(folder.glob("kept_*"))) == 3 and not list(folder.glob("*_00001_*"))

            wait_for(turned)
        running.terminate()
        assert running.wait(PATIENCE) == 0, running.stderr.read()
    assert status["Uid"].split() == [str(entry.pw_uid)] * 4
    assert status["Gid"].split() == [str(entry.pw_gid)] * 4
    assert {status[name] for name in ("CapPrm", "CapEff", "CapInh")} == {"0" * 16}
    assert {one.stat().st_uid for one in folder.glob("kept_*")} == {entry.pw_uid}


def test_the_home_of_another_user(program: tuple[str, ...], tmp_path: Path) -> None:
    """As under `sudo -E`: nothing is read there."""
    (tmp_path / ".cache").mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    group = pwd.getpwnam(NOBODY).pw_gid
    rights = ("--clear-groups", "--inh-caps=+net_raw", "--ambient-caps=+net_raw")
    done = subprocess.run(
        ("setpriv", f"--reuid={NOBODY}", f"--regid={group}", *rights, *program, "live", "-i", "lo",
         "--port", "5672", "--duration", "100ms", "-q"), cwd="/", check=False,
        capture_output=True, text=True, env=environment(HOME=str(tmp_path)),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_left_in_the_home(program: tuple[str, ...], tmp_path: Path) -> None:
    arguments = (
        "live",
        "-i",
        "lo",
        "--port",
        "5672",
        "--duration",
        "100ms",
        "-q",
        "--run-as",
        "root",
    )
    done = subprocess.run(
        (*program, *arguments), check=False, capture_output=True, text=True,
        env=environment(HOME=str(tmp_path)),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("trouble", ["PermissionError: /x", "ImportError: no scapy", ""])
def test_scapy_that_cannot_be_imported(
    trouble: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only a filter needs it; where there is none it is said how to add it."""
    kind, _, what = trouble.partition(": ")
    (tmp_path / "scapy.py").write_text(f"raise {kind}({what!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    if not trouble:
        monkeypatch.setattr("amqpsniff.capture.filter.find_spec", lambda _: None)
    said = re.escape(trouble) or "pip install"
    with pytest.raises(UsageError, match=rf"needs scapy.*{said}.*tcpdump -U -w -"):
        InterfaceCapture(["lo"], f"port {free_port()}")
    InterfaceCapture(["lo"]).close()


def test_where_the_user_could_not_go_on(program: tuple[str, ...], tmp_path: Path) -> None:
    """It stays root where that user could not write, and says so; asked for, it is an error."""
    tmp_path.chmod(0o700)
    command = (*program, "live", "-i", "lo", "-w", "kept.pcapng", "--duration", "200ms")
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 0
    assert f"stays root: {NOBODY} cannot write to" in done.stderr
    for user, said in ((NOBODY, "cannot write to"), ("no-such-user", "there is no such user")):
        done = subprocess.run(
            (*command, "--run-as", user), cwd=tmp_path, capture_output=True, text=True, check=False,
            env=environment(),
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stderr.startswith(f"amqpsniff: cannot run as {user}: ")
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--tls-keylog", "--tls-key"])
def test_where_the_user_could_not_read_keys(
    program: tuple[str, ...], folder: Path, option: str
) -> None:
    """It stays root: of keys that are not read nothing would be said."""
    keys = folder / "keys"
    keys.write_bytes(identity("rsa").key.read_bytes() if option == "--tls-key" else b"")
    for mode, said in ((0o600, True), (0o644, False)):
        keys.chmod(mode)
        done = subprocess.run(
            (*program, "live", "-i", "lo", "--duration", "100ms", option, "keys"), cwd=folder,
            capture_output=True, text=True, check=False, env=environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (f"stays root: {NOBODY} cannot read keys" in done.stderr) is said, done.stderr


def test_interfaces_that_are_not_there(program: tuple[str, ...]) -> None:
    done = subprocess.run(
        (*program, "live", "-i", "nosuch0"), capture_output=True, text=True, check=False,
        env=environment(),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("amqpsniff: there is no interface `nosuch0`; there are ")
