"""Credentials are in no row and no finding unless they are asked for."""

from __future__ import annotations

import base64
import struct

import pytest

from amqpsniff.decode.redaction import login_name, with_secrets, without_properties
from amqpsniff.spec import METHODS
from tests import encoder
from tests.conftest import own_capture
from tests.decode.feeding import CLIENT, SERVER, Decoded, Feeder, Row, Talk, decode, run_file
from tests.decode.script import OPENING, frames, method, sent
from tests.decode.strategies import parsed
from tests.encoder import PROTOCOL_HEADERS, Field, header
from tests.thorough import some

SECRET = b"s3cret-Pw"
PLAIN = b"\0app\0" + SECRET
AMQPLAIN = b"\5LOGINS\0\0\0\3app" + b"\x08PASSWORDS\0\0\0\x09" + SECRET

WHOLE_LOGIN = method(
    "connection.start-ok", 0, mechanism=b"PLAIN", response=PLAIN, locale=b"en_US",
    client_properties=[(b"product", Field("S", b"x"))],
)  # fmt: skip


def everything(done: Decoded) -> str:
    """All that anybody gets to see."""
    return repr(done.findings) + repr(done.frames()) + repr(done.messages())


def test_the_rows_say_what_is_secret() -> None:
    found = {(row.name, each.name) for row in METHODS for each in row.arguments if each.secret}
    assert found >= {
        ("connection.start-ok", "response"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new_secret"),
    }


@pytest.mark.parametrize("response", [PLAIN, AMQPLAIN, SECRET, b""])
@pytest.mark.parametrize(
    ("name", "argument"),
    [
        ("connection.start-ok", "response"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new_secret"),
    ],
)
def test_secret_arguments(name: str, argument: str, response: bytes) -> None:
    octets = method(name, 0, **{argument: response})
    (row,) = frames(sent(octets))
    assert parsed(row["arguments"])[argument] == "[redacted]"
    (row,) = frames(sent(octets, show_secrets=True))
    assert parsed(row["arguments"])[argument] == response.decode()


@pytest.mark.parametrize("cut", range(1, 60, 3))
def test_cut_and_broken_credentials(cut: int) -> None:
    """Neither a frame that ends too early nor one with the wrong end gives them away."""
    octets, payload = WHOLE_LOGIN, WHOLE_LOGIN[7:-1]
    kept = payload[:-cut] if cut < len(payload) - 4 else payload
    short = octets[:3] + len(kept).to_bytes(4, "big") + kept
    for broken in (short + b"\xce", short + b"\0", octets[:-cut]):
        text = everything(sent(broken + b"\x08\0\0\0\0\0\0\xce" * 4))
        for part in (SECRET, SECRET[:5]):
            assert part.decode() not in text
            assert base64.b64encode(part).decode()[:6] not in text


@pytest.mark.parametrize("value", [0, 1, 3, 7, 13, 14, 20, 30, 45, 60, 255])
def test_credentials_beside_wrong_lengths(value: int) -> None:
    """Where a length is wrong the secret stands in another argument, or in a table before it."""
    for at in some(range(11 + value % 2, len(WHOLE_LOGIN) - 1), 2):
        broken = WHOLE_LOGIN[:at] + bytes([value]) + WHOLE_LOGIN[at + 1 :]
        assert SECRET[2:7].decode() not in everything(sent(broken)), at


@pytest.mark.parametrize("value", [0, 1, 3, 7, 13, 14, 20, 30, 45, 60, 255])
def test_cut_credentials_beside_wrong_lengths(value: int) -> None:
    """Nor where the end of the frame is not there to show that a length is wrong."""
    for cut in (3, 9):
        for at in some(range(11 + value % 2, len(WHOLE_LOGIN) - cut), 2):
            broken = WHOLE_LOGIN[:at] + bytes([value]) + WHOLE_LOGIN[at + 1 : -cut]
            done = Feeder().data(CLIENT, OPENING + broken).gap(CLIENT, cut).finish()
            assert SECRET[2:5].decode() not in everything(done), (at, cut)


@pytest.mark.parametrize(
    ("cut", "names"),
    [
        (40, ["client_properties"]),
        (32, ["client_properties"]),
        (31, []),  # a text may be a secret, and the table before it too long, while the length of
        (22, []),  # the secret is not there
        (21, ["client_properties", "mechanism", "response"]),
        (7, ["client_properties", "mechanism", "response"]),
        (6, []),  # behind the secret
    ],
)
def test_what_is_shown_of_a_cut_login(cut: int, names: list[str]) -> None:
    """What is sure to be no secret, for that is where it belongs."""
    feeder = Feeder().data(CLIENT, OPENING + WHOLE_LOGIN[:-cut]).gap(CLIENT, cut)
    (row,) = frames(feeder.finish())
    assert list(parsed(row["arguments"])) == names


@pytest.mark.parametrize("dialect", ["0-8", "0-9", "0-9-1"])
@pytest.mark.parametrize("number", [70, 99])
def test_methods_that_the_dialect_lacks(dialect: str, number: int) -> None:
    """One of the class that logs in may be a later dialect's, or anybody's, with a secret in it."""
    payload = struct.pack(">HHI", 10, number, len(SECRET)) + SECRET + b"\0"
    octets = encoder.frame(1, 0, payload)
    for cut in (0, 3):
        feeder = Feeder().data(CLIENT, PROTOCOL_HEADERS[dialect] + octets[: len(octets) - cut])
        (row,) = frames(feeder.gap(CLIENT, cut).finish())
        assert "[redacted]" in row["arguments"]
        assert SECRET[:4].decode() not in row["arguments"]
    feeder = Feeder(show_secrets=True).data(CLIENT, PROTOCOL_HEADERS[dialect] + octets)
    assert "[redacted]" not in everything(feeder.finish())


def test_unknown_methods_of_other_classes_are_shown() -> None:
    (row,) = frames(sent(encoder.frame(1, 1, b"\0\x3c\0\x63abc")))
    assert parsed(row["arguments"]) == {"base64": base64.b64encode(b"abc").decode()}


@pytest.mark.parametrize(
    ("mechanism", "response", "user"),
    [
        (b"PLAIN", PLAIN, "app"),
        (b"PLAIN", b"admin" + PLAIN, "app"),
        (b"PLAIN", b"app\0" + SECRET, None),
        (b"PLAIN", SECRET, None),
        (b"PLAIN", b"\0\0app\0" + SECRET, None),
        (b"AMQPLAIN", AMQPLAIN, "app"),
        (b"AMQPLAIN", AMQPLAIN.replace(b"\3app", b"\xffapp"), None),
        (b"AMQPLAIN", AMQPLAIN.replace(b"\3app", b"\x19app"), None),
        (b"AMQPLAIN", AMQPLAIN[:12], None),
        (b"EXTERNAL", PLAIN, None),
    ],
)
def test_the_user_is_no_password(mechanism: bytes, response: bytes, user: str | None) -> None:
    """A login that is not as its mechanism has it may have the password in the name's place."""
    octets = method("connection.start-ok", 0, mechanism=mechanism, response=response)
    assert login_name(octets[7:-1]) == user


def test_properties_of_a_client_are_no_part_of_its_login() -> None:
    """Wherever it is cut, so that connections with names of their own have one login."""
    start_ok = next(at for at, one in enumerate(METHODS) if one.name == "connection.start-ok")
    payload = WHOLE_LOGIN[7:-1]
    for end in range(len(payload) + 1):
        whole, login = payload[:end], without_properties(payload[:end])
        assert login_name(login) == login_name(whole)
        assert with_secrets(None, start_ok, login) == with_secrets(None, start_ok, whole)
    assert (login_name(login), with_secrets(None, start_ok, login)) == ("app", (SECRET,))


@pytest.mark.parametrize("name", ["pika_mix", "bunny", "kombu", "php_churn", "amqplib08", "node"])
def test_captures(name: str) -> None:
    """The users' passwords are known; they are in no row."""
    path = own_capture(name)
    assert SECRET.decode() not in everything(run_file(path))
    assert SECRET.decode() in everything(run_file(path, show_secrets=True))


def test_client_alone() -> None:
    """A login whose connection is not seen from its begin."""
    octets = method("connection.start-ok", 0, mechanism=b"PLAIN", response=PLAIN, locale=b"en_US")
    assert SECRET.decode() not in everything(decode(octets * 3, CLIENT, syn_seen=False))


def numbers(octets: bytes) -> str:
    """Bytes as the broker quotes them."""
    return ",".join(map(str, octets))


LOGIN = method("connection.start-ok", 0, mechanism=b"PLAIN", response=PLAIN, locale=b"en_US")[7:-1]
UPDATE = method("connection.update-secret", 0, new_secret=SECRET, reason=b"r")
NONE, DECLARE, START_OK, NOBODY = (0, 0), (50, 10), (10, 11), (99, 10)
BEFORE, AFTER = b"", method("connection.tune", 0, channel_max=2047, frame_max=131072, heartbeat=60)

# (what the server sent before, text as RabbitMQ 3.10.8 writes it, blamed method, the text shown)
KEPT = [
    (BEFORE, "FRAME_ERROR - cannot decode <<0,0,5,97,98>>", DECLARE),
    (AFTER, "FRAME_ERROR - cannot decode <<0,0,0,0,0,1,0,122,122>>", (60, 10)),
    (AFTER, "FRAME_ERROR - cannot decode <<\"abc\">>", (10, 40)),
    (BEFORE, "UNEXPECTED_FRAME - type 8, all octets = <<>>", NONE),
    (BEFORE, "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}", NONE),
    (AFTER, "UNEXPECTED_FRAME - type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,0,0,0,0>>", NONE),
    (AFTER, "FRAME_ERROR - type 1, all octets = <<0,60,0,10,0,0>>: {invalid_frame_end_marker,0}",
     NONE),
    (BEFORE, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.", NONE),
    (BEFORE, "NOT_ALLOWED - vhost /nope not found", (10, 40)),
]  # fmt: skip
SHOWN = "[redacted]"
TAKEN_OUT = [
    (AFTER, "FRAME_ERROR - cannot decode <<{}>>", numbers(PLAIN), START_OK, ">>"),
    (BEFORE, "FRAME_ERROR - cannot decode <<{}>>", numbers(PLAIN), NONE, ">>"),
    (AFTER, "FRAME_ERROR - cannot decode <<{}>>", numbers(PLAIN), NOBODY, ">>"),
    (AFTER, "FRAME_ERROR - cannot decode <<{}>>", '"app s3cret-Pw"', (10, 21), ">>"),
    (AFTER, "FRAME_ERROR - cannot decode <<{}>>", '"s3cret-Pw>>"', (10, 70), ">>"),
    (BEFORE, "FRAME_ERROR - type 1, all octets = <<{}>>: unknown_frame", numbers(LOGIN), NONE,
     ">>: unknown_frame"),
    (BEFORE, "FRAME_ERROR - type 1, all octets = <<{}>>: {{invalid_frame_end_marker,0}}",
     numbers(LOGIN[12:]), NONE, ">>: {invalid_frame_end_marker,0}"),
    (BEFORE, "FRAME_ERROR - type 65, all octets = <<{}>>: unknown_frame", '"PLAIN s3cret-Pw"', NONE,
     ">>: unknown_frame"),
    (BEFORE, "FRAME_ERROR - type 1, all octets = <<{}>>: unknown_frame", "0,60,0,10,0,0", NONE,
     ">>: unknown_frame"),
    (AFTER, "FRAME_ERROR - type 1, all octets = <<{}>>: unknown_frame", numbers(UPDATE[7:-1]), NONE,
     ">>: unknown_frame"),
    (AFTER, "FRAME_ERROR - type 1, all octets = <<{}>>: {{invalid_frame_end_marker,10}}",
     numbers(b"\0\x3c\0\x0a\0\0" + UPDATE), NONE, ">>: {invalid_frame_end_marker,10}"),
    (AFTER, "UNEXPECTED_FRAME - type 2, all octets = <<{}>>",
     numbers(header(1, 60, 0)[7:-1] + UPDATE), NONE, ">>"),
    (AFTER, "FRAME_ERROR - type 3, all octets = <<{}>>: unknown_frame", numbers(SECRET), NONE,
     ">>: unknown_frame"),
    (AFTER, "FRAME_ERROR - type 0, all octets = <<{}>>: unknown_frame", '"s3cret-Pw"', NONE,
     ">>: unknown_frame"),
    (AFTER, "FRAME_ERROR - type 0, all octets = <<{}", '"a>>s3cret-Pw', NONE, ""),
    (AFTER, "FRAME_ERROR - type 0, all octets = <<{}>>: s3cret", '"' + "a" * 214, NONE, ""),
    (AFTER, "FRAME_ERROR - type 0, all octets = <<>><<{}>>", '"s3cret-Pw"', NONE, ">>"),
    (BEFORE, "FRAME_ERROR - type 1, all octets = <<{}", numbers(LOGIN) + "," * 255, NONE, ""),
]  # fmt: skip


def closed(before: bytes, text: str, blamed: tuple[int, int], **options: bool) -> Row:
    """The row of a connection.close with this text."""
    class_id, method_id = blamed
    octets = method(
        "connection.close", 0, reply_code=501, reply_text=text.encode()[:255],
        class_id=class_id, method_id=method_id,
    )  # fmt: skip
    feeder = Feeder(**options).data(CLIENT, OPENING).data(SERVER, before + octets)
    done = feeder.finish()
    assert SECRET.decode() not in repr(done.findings)
    return done.frames()[-1]


@pytest.mark.parametrize(("before", "text", "blamed"), KEPT)
def test_texts_that_are_kept(before: bytes, text: str, blamed: tuple[int, int]) -> None:
    """What quotes nothing, nothing of a login or nothing of a method with a secret is readable."""
    row = closed(before, text, blamed)
    assert row["reply_text"] == parsed(row["arguments"])["reply_text"] == text


@pytest.mark.parametrize(("before", "text", "quote", "blamed", "tail"), TAKEN_OUT)
def test_quotes_that_are_taken_out(
    before: bytes, text: str, quote: str, blamed: tuple[int, int], tail: str
) -> None:
    """What may be a login, or be any bytes at all, is not shown; what the broker says of it is."""
    whole = text.format(quote)
    row = closed(before, whole, blamed)
    shown = row["reply_text"]
    assert shown == parsed(row["arguments"])["reply_text"]
    assert shown == text[: text.index("<<") + 2] + SHOWN + tail
    assert closed(before, whole, blamed, show_secrets=True)["reply_text"] == whole[:255]


@pytest.mark.parametrize("cut", range(0, 250, 7))
def test_a_quote_cut_anywhere(cut: int) -> None:
    """The text ends in the quote, or the frame in the text."""
    text = f"FRAME_ERROR - type 1, all octets = <<{numbers(LOGIN)}>>: unknown_frame"
    for octets in (numbers(SECRET), numbers(SECRET)[:12]):
        row = closed(BEFORE, text[:cut], NONE)
        assert octets not in repr(row)
    frame = method("connection.close", 0, reply_code=501, reply_text=text.encode()[:255])
    kept = frame[7 : max(11, len(frame) - 1 - cut)]
    broken = frame[:3] + len(kept).to_bytes(4, "big") + kept + b"\xce"
    done = Feeder().data(CLIENT, OPENING).data(SERVER, broken).finish()
    assert numbers(SECRET)[:12] not in everything(done)


@pytest.mark.parametrize("dialect", ["0-8", "0-9", "0-9-1"])
def test_quotes_in_other_dialects_and_methods(dialect: str) -> None:
    text = f"FRAME_ERROR - cannot decode <<{numbers(PLAIN)}>>".encode()
    octets = b""
    for name, values in {
        "connection.close": {"class_id": 10, "method_id": 11},
        "channel.close": {},
        "basic.return": {"exchange": b"\0\x32\0\x0a"},
    }.items():
        channel = 0 if name == "connection.close" else 1
        octets += method(name, channel, dialect, reply_code=501, reply_text=text, **values)
    feeder = Feeder(Talk()).data(CLIENT, PROTOCOL_HEADERS[dialect]).data(SERVER, octets)
    done = feeder.finish()
    rows = done.frames()[1:] + done.messages()
    assert {row["reply_text"] for row in rows} == {"FRAME_ERROR - cannot decode <<[redacted]>>"}
    assert numbers(SECRET) not in repr(rows)


def test_quotes_without_the_frames_table() -> None:
    """The messages are the same when nothing else is asked for."""
    text = f"FRAME_ERROR - cannot decode <<{numbers(PLAIN)}>>".encode()
    octets = method("basic.return", 1, reply_code=501, reply_text=text)
    feeder = Feeder(tables=("messages",)).data(CLIENT, OPENING).data(SERVER, octets)
    (row,) = feeder.finish().messages()
    assert row["reply_text"] == "FRAME_ERROR - cannot decode <<[redacted]>>"


TOKEN = b"eyJhbGciOi" + b"J9.eyJzY" * 40
DOTS = "." * 31
WORDS = [
    (SECRET, "ACCESS_REFUSED - password 's3cret-Pw' refused", "password '[redacted]' refused"),
    (SECRET, "ACCESS_REFUSED - {badmatch,app:s3cret-Pw}", "{badmatch,app:[redacted]}"),
    (b"queue", "NOT_FOUND - no queue 'queue' in vhost '/'", "no queue '[redacted]' in vhost '/'"),
    (b"queue", "ACCESS_REFUSED - queue refused", None),
    (b"app", "ACCESS_REFUSED - access refused for user 'app'", None),
    (b"abc", "ACCESS_REFUSED - password 'abc' refused", None),
    (TOKEN, f"ACCESS_REFUSED - token '{TOKEN[:200].decode()}{DOTS}", f"token '[redacted]{DOTS}"),
]  # fmt: skip
"""What was sent, what the broker says, and what is shown behind the name of its code."""


@pytest.mark.parametrize(("secret", "text", "shown"), WORDS)
@pytest.mark.parametrize("before", ["start-ok", "secure-ok", "update-secret"])
def test_secrets_in_the_words_of_a_broker(
    secret: bytes, text: str, shown: str | None, before: str
) -> None:
    """What was sent as a secret is taken out; ordinary words only between quotation marks."""
    frame = {
        "start-ok": method(
            "connection.start-ok", 0, mechanism=b"PLAIN", response=b"\0app\0" + secret
        ),
        "secure-ok": method("connection.secure-ok", 0, response=secret),
        "update-secret": method("connection.update-secret", 0, new_secret=secret),
    }[before]
    if secret == b"app" and before != "start-ok":
        return  # whose name it is too is not known
    code = text.partition(" - ")[0]
    want = text if shown is None else f"{code} - {shown}"
    close = method("channel.close", 1, reply_code=403, reply_text=text.encode())
    feeder = Feeder(Talk(), Talk()).data(CLIENT, OPENING, slot=1).data(CLIENT, OPENING)
    feeder.data(SERVER, AFTER + close * 2, slot=1)  # nothing was sent there
    feeder.data(CLIENT, frame).data(SERVER, AFTER + close * 2)
    rows = [row for row in feeder.finish().frames() if row["method"] == "channel.close"]
    assert [row["reply_text"] for row in rows] == [text, text, want, want]
    assert [parsed(row["arguments"])["reply_text"] for row in rows] == [text, text, want, want]


def test_secrets_in_other_texts_of_a_broker() -> None:
    octets = method("connection.blocked", 0, reason=b"blocks " + SECRET)
    octets += method("connection.secure", 0, challenge=b"not " + SECRET)
    octets += method("connection.start", 0, server_properties=[(b"p", Field("S", SECRET))])
    for options in ({}, {"show_secrets": True}):
        feeder = Feeder(**options).data(CLIENT, OPENING + WHOLE_LOGIN).data(SERVER, octets)
        rows = [parsed(row["arguments"]) for row in frames(feeder.finish())[1:]]
        told = [rows[0]["reason"], rows[1]["challenge"], rows[2]["server_properties"]]
        if options:
            assert told == [
                f"blocks {SECRET.decode()}",
                f"not {SECRET.decode()}",
                {"p": SECRET.decode()},
            ]
        else:
            assert told == ["blocks [redacted]", "not [redacted]", {}]
