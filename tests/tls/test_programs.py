"""What Python's ssl cannot do: renegotiation, early data, ciphers that OpenSSL no longer has."""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.tcp import Reassembler
from amqpsniff.tls import Secrets, TlsStage
from tests.tcp.wire import Packet, Talk, batch
from tests.tls import talk as tls
from tests.tls.programs import Relay, listening, program, running
from tests.waiting import free_port, wait_for

pytest.importorskip("cryptography")

TABLES = ("frames", "messages", "connections", "channels")
TAKEN = {b"K\n": b"KEYUPDATE", b"k\n": b"KEYUPDATE", b"R\n": b"RENEGOTIATING"}
"""What OpenSSL's client prints when it has taken a command from its standard input.

What it is given before that may be read along with the command, and dropped. The server says it
too late; but nothing else makes it send while nobody speaks.
"""

ASKS_FOR_HANDSHAKE = (b"R\n", b"r\n")
"""Commands of the client and of the server after which a handshake comes."""

HANDS = (b"SSL handshake has read", b"CIPHER is ")
"""What OpenSSL's client and its server print when a handshake is over."""

END_OF_SESSION = b"-----END SSL SESSION PARAMETERS-----"

Said = list[tuple[int, bytes]]


def spoken(
    server: list[str],
    client: list[str],
    said: Said,
    commands: dict[int, list[tuple[int, bytes]]] | None = None,
    before: list[str] | None = None,
    session: Path | None = None,
) -> Talk:
    """The packets of two programs that say something; before some of it they get commands.

    With `before` another client was there first, until it had written the file `session`.
    """
    commands = commands or {}
    port = int(server.pop())
    relay = Relay(port)
    with running(*server) as one:
        listening(port)
        if before is not None and session is not None:
            with running(*before, f"127.0.0.1:{relay.port}"):
                wait_for(lambda: END_OF_SESSION in read(session), "no session")
            relay.forget()
        ready = one.hears(HANDS[1])
        with running(*client, f"127.0.0.1:{relay.port}") as other:
            wait_for(lambda: ready() and HANDS[0] in other.heard, "no handshake")
            programs = (other, one)
            for at, (side, octets) in enumerate(said):
                for whom, command in commands.get(at, ()):
                    before_it, made = relay.passed[whom], relay.handshakes()
                    taken = programs[whom].hears(b"" if whom else TAKEN[command])
                    programs[whom].say(command)
                    wait_for(taken, "a command")
                    wait_for(lambda: relay.passed[whom] > before_it, "a handshake")  # noqa: B023
                    if command in ASKS_FOR_HANDSHAKE:
                        wait_for(lambda: relay.handshakes() > made, "its end")  # noqa: B023
                heard = programs[1 - side].hears(octets)
                programs[side].say(octets)
                wait_for(heard, "octets")
    relay.close()
    return max(relay.talks, key=lambda talk: len(talk.packets)).goodbye()


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def clear(said: Said, folder: Path) -> Path:
    talk = tls.in_clear(Talk(ports=(40000, 5671)).hands(), said).goodbye()
    return tls.write(folder / "clear.pcap", talk.packets)


def openssl(
    keylog: Path, *options: str, kind: str = "rsa", reneg: bool = False
) -> tuple[list[str], list[str]]:
    """The commands of OpenSSL's server and client; the server's port is its last word."""
    path = program("openssl")
    found = tls.identity(kind)
    port = free_port()
    server = [path, "s_server", "-accept", f"127.0.0.1:{port}"]
    server += ["-cert", str(found.certificate), "-key", str(found.key), *options]
    if reneg:
        server.append("-client_renegotiation")
    client = [path, "s_client", "-keylogfile", str(keylog), *options, "-connect"]
    return [*server, str(port)], client


SECURITY = "@SECLEVEL=0"


@pytest.mark.parametrize(
    "cipher", ["ECDHE-RSA-AES256-GCM-SHA384", "AES128-SHA", "ECDHE-RSA-CHACHA20-POLY1305"]
)
@pytest.mark.parametrize("who", [0, 1])
def test_renegotiation(cipher: str, who: int, tmp_path: Path) -> None:
    """Either side asks for other keys twice."""
    said = tls.conversation()[:60]
    keylog = tmp_path / "keys"
    server, client = openssl(keylog, "-tls1_2", "-cipher", f"{cipher}:{SECURITY}", reneg=True)
    command = (who, b"R\n" if who == 0 else b"r\n")
    talk = spoken(server, client, said, {20: [command], 41: [command]})
    assert keylog.read_text().count("CLIENT_RANDOM") == 3
    path = tls.write(tmp_path / "x.pcap", talk.packets)
    expected = tls.rows(clear(said, tmp_path), *TABLES)
    assert tls.rows(path, *TABLES, tls_keylog=keylog) == expected
    if cipher == "AES128-SHA":
        assert tls.rows(path, *TABLES, tls_key=tls.identity("rsa").key) == expected


def test_key_updates_of_openssl(tmp_path: Path) -> None:
    said = tls.conversation()[:60]
    keylog = tmp_path / "keys"
    server, client = openssl(keylog, "-tls1_3")
    commands = {20: [(0, b"K\n")], 30: [(1, b"k\n")], 41: [(1, b"K\n"), (0, b"k\n")]}
    talk = spoken(server, client, said, commands)
    path = tls.write(tmp_path / "x.pcap", talk.packets)
    assert tls.rows(path, *TABLES, tls_keylog=keylog) == tls.rows(clear(said, tmp_path), *TABLES)


def early(tmp_path: Path, server_options: tuple[str, ...], taken: int) -> tuple[Path, Path, Path]:
    """A capture in which a client sends early data, its key log, and the same in clear.

    Of what is said the first `taken` are what the server took early.
    """
    said = tls.conversation()[:60]
    keylog, session, first = (tmp_path / name for name in ("keys", "session", "first"))
    first.write_bytes(said[0][1])
    # of these groups a ClientHello is one packet
    server, client = openssl(keylog, "-tls1_3", "-groups", "X25519:P-384")
    # with each ticket the client writes its session anew: it may be killed when there is one
    server[-1:-1] = ["-early_data", "-num_tickets", "1", *server_options]
    before = [*client[:-1], "-sess_out", str(session), "-connect"]
    again = [*client[:-1], "-sess_in", str(session), "-early_data", str(first), "-connect"]
    talk = spoken(server, again, said[taken:], before=before, session=session)
    path = tls.write(tmp_path / "x.pcap", talk.packets)
    return path, keylog, clear(said, tmp_path)


def test_early_data(tmp_path: Path) -> None:
    path, keylog, in_clear = early(tmp_path, ("-no_anti_replay",), 1)
    assert "CLIENT_EARLY_TRAFFIC_SECRET" in keylog.read_text()
    expected = tls.rows(in_clear, *TABLES)
    assert tls.rows(path, *TABLES, tls_keylog=keylog) == expected
    rows = amqpsniff.open(path, tls_keylog=keylog).table("frames").to_pylist()
    assert rows[0]["method"] is None
    assert rows[0]["packet_number"] == 4  # in the packet of the ClientHello
    # without its secret these bytes are missing, and all that follows stands at its place
    lines = [line for line in keylog.read_text().splitlines() if "EARLY" not in line]
    keylog.write_text("\n".join(lines) + "\n")
    places = [
        {(row["sender"], row["stream_offset"], row["arguments"]) for row in rows["frames"]}
        for rows in (tls.rows(path, "frames", tls_keylog=keylog), expected)
    ]
    assert len(places[1] - places[0]) == 1  # the protocol header


@pytest.mark.parametrize("options", [("-groups", "P-384"), ()])
def test_early_data_that_is_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    """By a HelloRetryRequest; and with a session that was used before."""
    path, keylog, in_clear = early(tmp_path, options, 0)
    assert tls.rows(path, *TABLES, tls_keylog=keylog) == tls.rows(in_clear, *TABLES)


def bytes_inside(packets: list[Packet], keylog: Path) -> list[bytes]:
    """What the two sides said, TLS taken off."""
    secrets = Secrets(keylog)
    reassembler, stage = Reassembler(), TlsStage(secrets, lambda octets: 0)
    found = [b"", b""]
    batches = [stage.feed(reassembler.feed(batch(packets, 1))), stage.finish(reassembler.finish())]
    for events in batches:
        for kind, _, direction, _, _, payload in events.events():
            if kind == "data":
                found[direction] += bytes(payload)
    return found


@pytest.mark.parametrize(
    ("version", "cipher", "mac", "exchange"),
    [
        ("1.2", "3DES-CBC", "SHA1", "ECDHE-RSA"),
        ("1.0", "3DES-CBC", "SHA1", "RSA"),
        ("1.0", "ARCFOUR-128", "MD5", "RSA"),
    ],
)
def test_ciphers_of_old(
    version: str,
    cipher: str,
    mac: str,
    exchange: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """GnuTLS still has them; its server says each line again."""
    keylog, found, port = tmp_path / "keys", tls.identity("rsa"), free_port()
    wanted = f"NORMAL:-VERS-ALL:+VERS-TLS{version}:-CIPHER-ALL:+{cipher}:-MAC-ALL:+{mac}:-KX-ALL"
    wanted += f":+{exchange}"
    server = [program("gnutls-serv"), "--echo", "-p", str(port), f"--priority={wanted}"]
    server += [f"--x509certfile={found.certificate}", f"--x509keyfile={found.key}", str(port)]
    client = [program("gnutls-cli"), "--insecure", f"--priority={wanted}"]
    monkeypatch.setenv("SSLKEYLOGFILE", str(keylog))
    relay = Relay(port)
    with running(*server[:-1]):
        listening(port)
        with running(*client, "-p", str(relay.port), "127.0.0.1") as one:
            wait_for(lambda: b"Handshake was completed" in one.heard, "no handshake")
            for line in (b"one line\n", b"another one\n" * 50, b"the last\n"):
                echoed = one.hears(line)
                one.say(line)
                wait_for(echoed, "an echo")
    relay.close()
    packets = max(relay.talks, key=lambda talk: len(talk.packets)).goodbye().packets
    said, answered = bytes_inside(packets, keylog)
    assert said == b"one line\n" + b"another one\n" * 50 + b"the last\n"
    assert answered.startswith(b"one line")
    assert answered.endswith(b"the last\n")
