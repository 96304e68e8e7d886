"""How runs end: exit codes, one line of what went wrong, streams that are closed or full."""

from __future__ import annotations

import gzip
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff import __version__
from amqpsniff.cli.commands import COMMANDS
from tests.cli.running import PROGRAM, environment, on_terminal, process, run
from tests.conftest import SAMPLES
from tests.thorough import some
from tests.waiting import PATIENCE

CAPTURE = "bunny.pcapng"

USAGE = {
    "a command that is not there": "inspct x",
    "an option that is not there": f"inspect {CAPTURE} --colour",
    "no capture": "inspect",
    "no output": f"bodies {CAPTURE}",
    "no table": f"export {CAPTURE}",
    "a table that is not there": f"export {CAPTURE} -t connection",
    "a column that is not there": f"export {CAPTURE} -t frames --columns channel,size,colour",
    "a format that is not there": f"inspect {CAPTURE} --format xml",
    "a format of another command": f"messages {CAPTURE} --format json",
    "a connection that is no UTF-8": f"messages {CAPTURE} --connection \udcff",
    "a client that is no UTF-8": f"messages {CAPTURE} --connection \udcff:",
    "bytes of rows": f"inspect {CAPTURE} --hex --format ndjson",
    "a column twice": f"export {CAPTURE} -t frames --columns method,size,method",
    "an ending that names no format": f"export {CAPTURE} -t frames -o x.xlsx",
    "a dialect that is not there": f"inspect {CAPTURE} --dialect 1.0",
    "a reading that is not there": f"inspect {CAPTURE} --table-dialect qpid",
    "a port that cannot be": f"inspect {CAPTURE} --port 65536",
    "a port that is no number": f"inspect {CAPTURE} --port amqp",
    "a time that is none": f"inspect {CAPTURE} --from yesterday",
    "a time before the other": f"inspect {CAPTURE} --from +10s --to +5s",
    "the same time twice": f"summary {CAPTURE} --from 12:00 --to 12:00:00",
    "a day before the other": f"report {CAPTURE} --from 2026-01-02T00:00Z --to 1700000000",
    "a form of time that is not there": f"inspect {CAPTURE} --time ago",
    "an unknown column": f"inspect {CAPTURE} --where colour=1",
    "no expression": f"messages {CAPTURE} --where method=",
    "an expression that is no condition": f"inspect {CAPTURE} --where method",
    "an expression that fails on a value": f"inspect {CAPTURE} --where cast(method\tas\tint)=1",
    "a method that is not there": "spec basic.pubish",
    "a code that is not there": "explain frame-end",
    "a format that explain has not": "explain frame-end-wrong --format sarif",
    "a severity that is not there": f"diagnose {CAPTURE} --fail-on critical",
    "a code among others that is not there": f"diagnose {CAPTURE} --only not-amqp,x",
    "a format of diagnoses that is not there": f"diagnose {CAPTURE} --format xml",
    "a dialect without the method": "spec confirm --dialect 0-8",
    "a directory as file": f"export {CAPTURE} -t frames -o . --format csv",
    "a directory that is not empty": f"bodies {CAPTURE} -o .",
    "a format of connections that is not there": f"connections {CAPTURE} --format parquet",
    "no statement": f"sql {CAPTURE}",
    "a statement that is none": f"sql {CAPTURE} SELECT\t1+",
    "a statement of a table that is not there": f"sql {CAPTURE} SELECT\t*\tFROM\tmethods",
    "a statement that gives no rows": f"sql {CAPTURE} CREATE\tTABLE\tt(a\tint)",
    "a connection that is not there": "follow pika_mix.pcap --connection 77",
    "several connections of that name": "follow pika_mix.pcap --connection f",
    "several connections": "follow pika_mix.pcap",
    "a format that follow has not": f"follow {CAPTURE} --format csv",
    "standard input twice": "follow -",
    "no message to trace": f"trace {CAPTURE}",
    "a header without value": f"trace {CAPTURE} --header x",
    "a format that trace has not": f"trace {CAPTURE} --message-id m --format arrow",
    "a digest that is none": f"trace {CAPTURE} --body-sha256 abc",
    "a buffer for what is not captured": f"live {CAPTURE} --buffer 8MiB",
    "a user to capture what is a file": f"live {CAPTURE} --user nobody",
    "text in a file": f"sql {CAPTURE} SELECT\t1 --format text -o x.txt",
}


def one_line(text: str) -> str:
    """The only line of an error."""
    assert text.startswith("amqpsniff: ")
    assert text.count("\n") == 1
    assert text.endswith("\n")
    return text


@pytest.mark.parametrize("words", USAGE.values(), ids=USAGE)
def test_usage(words: str) -> None:
    result = run(*(word.replace("\t", " ") for word in words.split(" ")))
    assert result.code == 2
    one_line(result.err)
    assert result.out == ""


def test_errors_say_what_to_do() -> None:
    assert "basic.publish" in run("spec", "basic.pubish").err
    assert "did you mean frame-end-wrong, " in run("explain", "frame-ned-wrong").err
    assert "prefetch-unlimited" in run("diagnose", CAPTURE, "--only", "prefetch").err
    assert "amqpsniff explain" in run("explain", "qqqq").err
    assert "amqpsniff spec 404" in run("explain", "404").err
    assert "argument 'SELECT', behind the captures" in run("sql", CAPTURE).err
    assert "--frames" in run("inspect", CAPTURE, "--frame").err
    assert "routing_key" in run("inspect", CAPTURE, "--where", "routing = 'a'").err
    assert "amqpsniff inspect --help" in run("inspect").err
    assert "amqpsniff inspect --help" in run("inspect", CAPTURE, "--port").err
    assert "amqpsniff inspect --help" in run("inspect", CAPTURE, "--quiet=1").err
    assert "'amqp' is not a whole number" in run("inspect", CAPTURE, "--port", "amqp").err
    assert "'x' is not a number" in run("diff", CAPTURE, CAPTURE, "--fail-slower", "x").err
    assert "`amqpsniff --help`" in one_line(run("--colour").err)
    assert "ndjson, csv" in run("messages", CAPTURE, "--format", "x").err
    err = run("follow", "pika_mix.pcap", "--connection", "F").err
    assert "f6bf17b3 (10.77.0.2:43720), fed1a26c (order-service-1 10.77.0.2:43706)" in err
    assert "7f298e1b" not in err
    assert "7f298e1b (order-service-1 10.77.0.2:43700)" in run("follow", "pika_mix.pcap").err
    assert "and 25 more" in run("follow", "php_churn.pcap").err
    assert "--message-id" in run("trace", CAPTURE).err


@pytest.mark.parametrize(
    "words",
    [
        "inspect --limit",
        "export -t frames --limit",
        "diagnose --places",
        "summary --limit",
        "messages --body-limit",
        "follow --body-limit",
        "trace --routing-key hx --limit",
    ],
)
def test_a_number_without_end(words: str) -> None:
    """More than any machine counts to leaves nothing out."""
    command, *options = words.split(" ")
    most = run(command, CAPTURE, *options, str(10**6))
    assert most.code == 0
    assert run(command, CAPTURE, *options, str(10**20)) == most


READS = [name for name in COMMANDS if name not in ("spec", "explain", "batch", "extcap")]
"""Commands that read captures here."""


@pytest.mark.parametrize("command", READS)
def test_what_is_no_capture(command: str, tmp_path: Path) -> None:
    more = {
        "export": ["-t", "frames"],
        "bodies": ["-o", str(tmp_path / "new")],
        "cut": ["-o", str(tmp_path / "new")],
        "annotate": ["-o", str(tmp_path / "new")],
        "sanitize": ["-o", str(tmp_path / "new")],
        "report": ["-o", str(tmp_path / "new")],
        "diff": [CAPTURE],
    }.get(command, [])
    more = {"sql": ["SELECT 1 FROM frames"], "trace": ["--message-id", "m"]}.get(command, more)
    report = ["traffic"] if command == "report-table" else []
    unknown = ("README.md",) if command in some(READS) else ()  # tshark is asked too
    for name in (*unknown, "nowhere.pcap"):
        result = run(command, *report, name, *more)
        assert result.code == 3
        assert name in one_line(result.err)
        assert result.out == ""
    assert not (tmp_path / "new").exists()


def test_one_of_several_that_is_no_capture() -> None:
    result = run("inspect", CAPTURE, "README.md")
    assert result.code == 3
    assert len(result.out.splitlines()) > 50
    assert "README.md" in one_line(result.err)


def test_a_cut_capture_is_a_warning(samples: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes((samples / CAPTURE).read_bytes()[:9000])
    result = run("inspect", cut)
    assert result.code == 0
    assert "cut.pcapng" in one_line(result.err)
    assert run("inspect", cut, "--quiet") == (0, result.out, "")


def test_nothing_to_show_is_said() -> None:
    assert "--port" in one_line(run("inspect", CAPTURE, "--port", "1").err)
    assert "matches" in one_line(run("messages", CAPTURE, "--channel", "77").err)
    assert run("messages", CAPTURE, "--channel", "77", "-q") == (0, "", "")
    for more in (("inspect", "--hex"), ("export", "-t", "frames"), ("messages", "--format", "csv")):
        command, *options = more
        assert "matches" in one_line(run(command, CAPTURE, *options, "--channel", "77").err)
    assert run("inspect", CAPTURE, "--limit", "0") == (0, "", "")
    assert run("export", CAPTURE, "-t", "findings").err == ""


@pytest.mark.parametrize(
    "words",
    [
        "inspect",
        "messages",
        "summary",
        "diagnose",
        "export -t frames",
        "connections",
        "follow",
        "trace --routing-key=",
        'sql SELECT*FROM"frames"',
    ],
)
def test_a_full_disk(words: str) -> None:
    command, *more = words.split()
    result = process(command, CAPTURE, *more, stdout_file="/dev/full")
    assert result.code == 3
    assert "No space left" in one_line(result.err)


def test_a_full_disk_at_the_very_end() -> None:
    """What the interpreter writes as it ends is not lost in silence either."""
    result = process("spec", "basic.publish", shell="> /dev/full")
    assert result.code == 3
    assert "No space left" in one_line(result.err)


def test_no_folder_for_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose file system is read only."""
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: ["/nowhere"])
    result = run("sql", CAPTURE, "SELECT method FROM frames")
    assert result.code == 3
    assert "No usable temporary directory" in one_line(result.err)
    assert "set TMPDIR" in result.err


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    result = run("export", CAPTURE, "-t", "frames", "-o", tmp_path / "no" / "x.csv")
    assert result.code == 3
    assert f"x.csv: there is no folder {tmp_path / 'no'}; make it first" in one_line(result.err)
    (tmp_path / "file").write_text("")
    assert run("bodies", CAPTURE, "-o", tmp_path / "file").code == 2
    assert run("bodies", CAPTURE, "-o", tmp_path / "file" / "below").code == 3


@pytest.mark.parametrize(
    "words", ["inspect", "messages", "export -t frames", 'sql SELECT*FROM"frames"']
)
def test_a_closed_pipe_is_no_error(words: str) -> None:
    command, *more = words.split()
    result = process(command, "node.pcap", *more, shell="| head -1; exit ${PIPESTATUS[0]}")
    assert result.code == 0
    assert result.err == ""
    assert len(result.out.splitlines()) == 1


def test_streams_that_are_closed() -> None:
    assert process("inspect", CAPTURE, shell=">&-").code == 0
    assert process("inspect", "nowhere.pcap", shell="2>&-").code == 3


def test_standard_input(samples: Path) -> None:
    octets = (samples / CAPTURE).read_bytes()
    assert process("inspect", "-", octets=octets).out == run("inspect", CAPTURE).out
    assert process("inspect", "-", octets=b"").code == 3
    assert "terminal" not in process("summary", "-", octets=octets).err


def test_control_c_ends_quietly(samples: Path) -> None:
    """While it waits for the rest of a capture, of which it has shown what there was."""
    with subprocess.Popen(
        (*PROGRAM, "inspect", "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write((samples / CAPTURE).read_bytes()[:4096])
        assert b"protocol-header" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (130, b"")


def test_text_in_a_stream_that_is_not_utf8() -> None:
    assert "→" in process("inspect", "bunny.pcapng", "-n", "1").out
    shell = '; env PYTHONIOENCODING=ascii LC_ALL=C PYTHONUTF8=0 "$@"'
    assert "\\u2192" in process("inspect", "bunny.pcapng", "-n", "1", shell=shell).out


@pytest.mark.parametrize("words", ["topology --format dot", "report -q -o -"])
def test_what_programs_read_is_utf8(words: str) -> None:
    """Also where text for people is written in something else."""
    command, *more = words.split()
    shell = '> /dev/null; env PYTHONIOENCODING=latin-1 "$@"'
    assert process(command, CAPTURE, *more, shell=shell).out == run(command, CAPTURE, *more).out


def test_version_and_help() -> None:
    assert run("--version") == (0, f"amqpsniff {__version__}\n", "")
    assert run("-V").out == run("--version").out
    overview = run("--help").out
    assert run().out == overview
    for command in COMMANDS:
        assert command in overview
        text = run(command, "--help").out
        assert f"amqpsniff {command} " in text
        assert "Examples" in run(command, "--help-all").out
        assert "<bool>" not in text
        assert "<str>" not in text
        assert "[str]" not in text


def test_as_a_module() -> None:
    """`python -m amqpsniff` is the program too, with its exit codes."""
    for arguments in (["--version"], ["summary", "nothere.pcap"]):
        done = subprocess.run(
            (sys.executable, "-m", "amqpsniff", *arguments), capture_output=True, text=True,
            check=False, cwd=SAMPLES, env=environment(),
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == run(*arguments)


def test_a_bug_is_one_line_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import amqpsniff.reader

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("[red]oops[/red]\nsecond line")

    monkeypatch.setattr(amqpsniff, "open", broken, raising=False)
    result = run("inspect", CAPTURE)
    assert result.code == 3
    assert "[red]oops[/red]\\nsecond line" in one_line(result.err)
    monkeypatch.setenv("AMQPSNIFF_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="oops"):
        run("inspect", CAPTURE)


def test_binary_formats_are_not_for_terminals() -> None:
    result = on_terminal("export", CAPTURE, "-t", "frames", "--format", "parquet", columns=80)
    assert result.code == 2
    assert "-o FILE" in " ".join(result.out.split())


def test_where_no_packet_has_the_port() -> None:
    said = run("summary", str(SAMPLES / "pika_mix.pcap"), "--port", "1234").err
    assert ": 568 packets, 568 of them TCP, none with such a port; leave out --port" in said


def test_where_no_tcp_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may find some is said: tshark, and why it cannot be used."""
    octets = bytearray((SAMPLES / "blocked.pcap").read_bytes())
    octets[20] = 105
    link = tmp_path / "wireless.pcap"
    link.write_bytes(octets)
    if shutil.which("tshark"):
        said = run("summary", str(link)).err
        assert "no AMQP in " in said
        assert "none of them TCP" in said
        assert "--reader" not in said, "tshark has read it"
    monkeypatch.setenv("PATH", str(tmp_path))
    said = run("summary", str(link)).err
    assert "none of them TCP; link type 105 is not read here; reading it by tshark:" in said
    squeezed = tmp_path / "wireless.pcap.gz"
    squeezed.write_bytes(gzip.compress(octets))
    for command in ("inspect", "messages"):
        assert "; link type 105 is not read here" in run(command, str(squeezed)).err
    octets[20] = 1
    octets[24 + 16 + 12 : 24 + 16 + 14] = b"\x88\xb5"
    tunnel = tmp_path / "tunnel.pcap"
    tunnel.write_bytes(octets[: 24 + 16 + int.from_bytes(octets[32:36], "little")])
    said = run("summary", str(tunnel)).err
    assert "--reader tshark may find it" in said
    assert "--reader" not in run("summary", str(tunnel), "--reader", "own").err


@pytest.mark.parametrize("command", ["export -t frames --format csv", "report"])
def test_a_capture_in_the_folder_read_is_not_written_over(command: str, tmp_path: Path) -> None:
    capture = tmp_path / "a" / "trace.pcap"
    capture.parent.mkdir()
    octets = (SAMPLES / "php_churn.pcap").read_bytes()
    capture.write_bytes(octets)
    for given in (str(tmp_path), str(tmp_path / "*" / "*.pcap")):
        result = run(*command.split(), given, "-o", str(capture))
        assert result.code == 2
        assert "is the capture itself" in result.err
    assert capture.read_bytes() == octets


@pytest.mark.parametrize(
    ("import_fails", "code", "said"),
    [
        ("ModuleNotFoundError(\"No module named 'pyspark'\")", 2, "pip install 'amqpsniff[spark]'"),
        ("RuntimeError('out of luck')", 3, "out of luck"),
    ],
)
def test_a_job_that_does_not_start(import_fails: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text(f"raise {import_fails}\n")
    done = subprocess.run(
        [*PROGRAM, "batch", CAPTURE, "-o", tmp_path / "out"],
        cwd=SAMPLES, env=environment(PYTHONPATH=str(tmp_path)), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert said in done.stderr


def test_a_package_compiled_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AttributeError("module 'amqpsniff.tcp.half_stream' has no attribute '__pyx_capi__'")

    monkeypatch.setattr(amqpsniff, "open", broken, raising=False)
    result = run("inspect", CAPTURE)
    assert result.code == 3
    assert "compiled only in part: install it again" in one_line(result.err)


def test_where_there_is_no_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS: interfaces are refused with what to do, and all else goes on."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(socket, "AF_PACKET")
    for words in (["live"], ["live", "--interface", "any"]):
        result = run(*words)
        assert result.code == 3
        assert "needs Linux; use `tcpdump -U -w - | amqpsniff live -`" in one_line(result.err)
    for words in (
        ["summary", CAPTURE],
        ["diagnose", CAPTURE],
        ["sql", CAPTURE, "SELECT count(*) FROM frames"],
    ):
        assert run(*words).code == 0, words
    assert next(iter(amqpsniff.watch(capture=str(SAMPLES / CAPTURE), table="frames")))
