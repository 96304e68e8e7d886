# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False, cdivision=True
"""Methods: class and method numbers and the arguments after them.

`MethodDecoder.decode` finds the rows that the numbers may mean in a dialect, reads the payload by
the first of them, and writes the arguments as one JSON object. Rows that share their numbers (other
dialects, vendors) are tried in order until one fits the payload exactly. If none fits, the first is
used and the returned code names the fault. Values that later stages need (exchange, delivery tag,
…) are attributes of a `DecodedMethod`.
"""

from __future__ import annotations

import json

import cython
from cython.cimports.amqpsniff.columns import Octets, Texts
from cython.cimports.amqpsniff.decode.codes import EXACT, TOO_SHORT, TRAILING, UNKNOWN
from cython.cimports.amqpsniff.decode.method_layout import (
    BIT,
    BYTE,
    CLASS_ID,
    CONTENT,
    DELIVERY_TAG,
    FLAG_ROLES,
    FRAME_MAX,
    LONG,
    LONGLONG,
    LONGSTR,
    METHOD_ID,
    REPLY_CODE,
    REPLY_TEXT,
    SECRET,
    SENDER_CLIENT,
    SENDER_SERVER,
    SHORT,
    SHORTSTR,
    TABLE,
    TIMESTAMP,
    VERSION_MAJOR,
    VERSION_MINOR,
)
from cython.cimports.amqpsniff.decode.values import TableCache
from cython.cimports.amqpsniff.null import NULL

from amqpsniff.decode import method_layout
from amqpsniff.decode.redaction import REDACTED, adds_up, is_in_place, redact_quote, without_secrets
from amqpsniff.decode.values import OUT_OF_RANGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from amqpsniff.decode.values import ValueReader

_LESS_THAN = cython.declare(cython.int, 60)
_OUT_OF_RANGE = cython.declare(cython.int, OUT_OF_RANGE)


@cython.cclass
class DecodedMethod:
    """Values of a method for later stages, besides its arguments as JSON.

    `starts` and `lengths` are the positions of its texts by role (`method_layout.roles`), from the
    first byte of its payload, -1 for none. Texts are not copied, so that they need no objects.
    `safe_text`: a reply text without its secrets, None if the text has none. `has_json`: the JSON
    was written. Absent values are -1, `NULL` or 0.
    """

    has_json: cython.bint

    starts: cython.longlong[6]
    lengths: cython.longlong[6]
    method: cython.int
    class_id: cython.int
    method_id: cython.int
    reply_code: cython.int
    flags: cython.int
    about_class: cython.int
    about_method: cython.int
    version_major: cython.int
    version_minor: cython.int
    delivery_tag: cython.longlong
    frame_max: cython.longlong
    safe_text: bytes

    def __init__(self) -> None:
        if not cython.compiled:
            self.starts = [-1] * 6
            self.lengths = [0] * 6
        self.has_json = False
        self.clear()

    def clear(self) -> cython.int:
        """Reset all values."""
        role: cython.int
        for role in range(6):
            self.starts[role] = -1
            self.lengths[role] = 0
        self.method = -1
        self.delivery_tag = NULL
        self.reply_code = -1
        self.flags = 0
        self.frame_max = -1
        self.about_class = -1
        self.about_method = -1
        self.version_major = -1
        self.version_minor = -1
        self.safe_text = None
        return 0

    def copy(self, facts: DecodedMethod) -> cython.int:
        """Copy the values of another method."""
        role: cython.int
        for role in range(6):
            self.starts[role] = facts.starts[role]
            self.lengths[role] = facts.lengths[role]
        self.method = facts.method
        self.class_id = facts.class_id
        self.method_id = facts.method_id
        self.delivery_tag = facts.delivery_tag
        self.reply_code = facts.reply_code
        self.flags = facts.flags
        self.frame_max = facts.frame_max
        self.about_class = facts.about_class
        self.about_method = facts.about_method
        self.version_major = facts.version_major
        self.version_minor = facts.version_minor
        self.safe_text = facts.safe_text
        self.has_json = facts.has_json
        return 0


@cython.cclass
class MethodDecoder(DecodedMethod):
    """Reads method payloads; as a `DecodedMethod`, it has the values of the last one.

    Args:
        show_secrets: Write secrets as they are instead of `[redacted]`.
        quiet: Write no JSON for the methods that come with every message; only find the values for
            later stages.

    The result depends on the payload and on `past_login`, `channel_zero`, the `sender` (a bit of
    `method_layout.senders`, 0 if unknown) and `sent_secrets`: secrets sent on the connection
    before, or None.

    `quoted`: the last method's reply text quotes bytes or a secret, and earlier frames decide
    whether they may be shown. `tells_secret`: a text or table of a method on channel 0 contains a
    secret that was sent before. `secret_anywhere`: any argument of the last decoded method may be a
    secret.
    """

    show_secrets: cython.bint
    quiet: cython.bint
    past_login: cython.bint
    channel_zero: cython.bint
    sender: cython.int
    base: cython.longlong

    quoted: cython.bint
    secret_anywhere: cython.bint
    tells_secret: cython.bint
    sent_secrets: tuple[Any, ...]
    first_argument: cython.int[::1]
    key_starts: cython.int[::1]
    key_lengths: cython.int[::1]
    lookup: cython.int[::1]
    choices: cython.int[::1]
    arguments_known: cython.const[cython.uchar][::1]
    secrets: cython.const[cython.uchar][::1]
    senders: cython.const[cython.uchar][::1]
    types: cython.const[cython.uchar][::1]
    roles: cython.const[cython.uchar][::1]
    frequent: cython.const[cython.uchar][::1]
    keys: Octets
    tables: TableCache
    far: dict[Any, Any]
    far_classes: cython.const[cython.uchar][::1]

    def __init__(self, show_secrets: Any = False, quiet: Any = False) -> None:
        DecodedMethod.__init__(self)
        self.show_secrets = show_secrets
        self.quiet = quiet
        self.base = 0
        self.past_login = self.channel_zero = False
        self.sender = 0
        self.sent_secrets = None
        self.senders = bytes(method_layout.senders)
        self.first_argument = method_layout.first_argument
        self.arguments_known = bytes(method_layout.arguments_known)
        self.frequent = bytes(method_layout.frequent)
        self.secrets = bytes(method_layout.secrets)
        self.types = bytes(method_layout.types)
        self.roles = bytes(method_layout.roles)
        self.key_starts = method_layout.key_starts
        self.key_lengths = method_layout.key_lengths
        self.keys = Octets()
        self.keys.put_bytes(bytes(method_layout.keys))
        self.tables = TableCache()
        self.lookup = method_layout.lookup
        self.choices = method_layout.choices
        self.far = method_layout.far
        self.far_classes = method_layout.far_classes

    @cython.exceptval(-2)
    def find(self, dialect: cython.int, class_id: cython.int, method_id: cython.int) -> cython.int:
        """Index of the first choice for these numbers; -1 if no method has them."""
        if class_id < 128 and method_id < 256:
            return self.lookup[(dialect * 128 + class_id) * 256 + method_id]
        if not self.far_classes[class_id]:
            return -1
        return self.far.get((dialect, class_id, method_id), -1)

    def decode(
        self,
        reader: ValueReader,
        dialect: cython.int,
        at: cython.longlong,
        end: cython.longlong,
        size: cython.longlong,
    ) -> cython.int:
        """Read the payload `at`..`end`; a longer payload was captured only that far.

        Writes the arguments' JSON to the reader's text column (the row is left open) and answers
        `EXACT`, `UNKNOWN`, `TOO_SHORT` or `TRAILING`.
        """
        out: Texts = reader.out
        is_whole: cython.bint = end - at >= size
        self.base = at
        self.has_json = True
        self.secret_anywhere = self.tells_secret = False
        if end - at < 4:
            self._forget()
            return TOO_SHORT
        self.class_id = reader.u16(at)
        self.method_id = reader.u16(at + 2)
        choice: cython.int = self.find(dialect, self.class_id, self.method_id)
        if choice < 0:
            self._forget()
            self.secret_anywhere = (
                self.channel_zero or self.class_id in method_layout.secret_classes
            )
            if self.secret_anywhere and not self.show_secrets:
                out.put_bytes(b'{"base64":' + REDACTED + b"}")
            else:
                reader._bytes(at + 4, end - at - 4)
            return UNKNOWN
        if self.channel_zero and self.sent_secrets is not None and self.sender != SENDER_CLIENT:
            self.tells_secret = (
                not self.show_secrets and self._without_secrets(reader, at, end) is not None
            )
        mark: cython.longlong = out.used
        first: cython.int = choice
        answer: cython.int = self._arguments(reader, self.choices[choice], at + 4, end)
        while answer != EXACT and is_whole and self.choices[choice + 1] >= 0:
            choice += 1
            out.used = mark
            answer = self._arguments(reader, self.choices[choice], at + 4, end)
        if answer != EXACT and choice != first:
            out.used = mark
            answer = self._arguments(reader, self.choices[first], at + 4, end)
        if answer == TOO_SHORT and not is_whole:
            self.flags |= method_layout.CUT
        if answer != EXACT and self.secrets[self.method]:
            octets: bytes = reader.bytes_at(at, end - at)
            odd: cython.bint = is_whole or reader.oddities != 0
            self.secret_anywhere = odd or not is_in_place(self.method, octets, size)
        elif self.channel_zero:
            self.secret_anywhere = self._is_doubtful()
            if (
                answer != EXACT
                and self.sender != SENDER_SERVER
                and self.senders[self.method] & SENDER_CLIENT
            ):
                octets = reader.bytes_at(at, end - at)
                self.secret_anywhere |= is_whole or not adds_up(self.method, octets, size)
        if self.secret_anywhere and not self.show_secrets:
            out.used = mark
            out.put_bytes(b"{}")
            self.starts[REPLY_TEXT] = -1
            self.safe_text = None
        return answer

    def _is_doubtful(self) -> cython.bint:
        """True if a method on channel 0 may be another that was damaged; see `redaction`."""
        if not self.arguments_known[self.method]:
            return True
        return self.sender != 0 and self.senders[self.method] & self.sender == 0

    def _forget(self) -> cython.int:
        self.quoted = False
        return self.clear()

    def _arguments(
        self, reader: ValueReader, method: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Read the arguments of one row of the plan."""
        out: Texts = reader.out
        self._forget()
        self.method = method
        self.has_json = True
        reader.oddities = 0
        if not self.arguments_known[method]:
            reader._bytes(at, end - at)
            return EXACT
        if self.quiet and self.frequent[method]:
            self.has_json = False
            return self._skim(reader, at, end)
        out.put_byte(123)
        answer: cython.int = EXACT
        bit: cython.int = 0
        mark: cython.longlong
        i: cython.int
        for i in range(self.first_argument[method], self.first_argument[method + 1]):
            mark = out.used
            out.put_from(self.keys, self.key_starts[i], self.key_lengths[i])
            if self.types[i] == BIT:
                if bit == 0:
                    at += 1
                if at > end:
                    out.used = mark
                    answer = self._cut(i)
                    break
                self._bit(reader, i, (reader.data[at - 1] >> bit) & 1)
                bit = (bit + 1) & 7
                continue
            bit = 0
            at = self._value(reader, i, at, end)
            if at < 0:
                if at == -2:
                    out.used = mark
                answer = self._cut(i)
                break
        out.put_byte(125)
        if answer == EXACT and at < end:
            return TRAILING
        return answer

    def _cut(self, i: Any) -> Any:
        """The payload ends in argument `i`: bits from there on are unknown."""
        later: cython.int
        for later in range(i, self.first_argument[self.method + 1]):
            if self.types[later] == BIT:
                self.flags |= method_layout.FLAGS_CUT
        return TOO_SHORT

    def _skim(self, reader: ValueReader, at: cython.longlong, end: cython.longlong) -> cython.int:
        """Go over the arguments of `method` without writing them."""
        bit: cython.int = 0
        kind: cython.int
        role: cython.int
        width: cython.longlong
        i: cython.int
        for i in range(self.first_argument[self.method], self.first_argument[self.method + 1]):
            kind = self.types[i]
            role = self.roles[i]
            if kind == BIT:
                if bit == 0:
                    at += 1
                if at > end:
                    return self._cut(i)
                if role >= FLAG_ROLES and (reader.data[at - 1] >> bit) & 1:
                    self.flags |= 1 << (role - FLAG_ROLES)
                bit = (bit + 1) & 7
                continue
            bit = 0
            width = self._width(reader, kind, at, end)
            if width < 0 or at + width > end:
                return self._cut(i)
            if kind == SHORTSTR:
                if role == REPLY_TEXT:
                    self._redact(reader, i, at, end)
                if 0 < role <= REPLY_TEXT:
                    self.starts[role] = at + 1 - self.base
                    self.lengths[role] = width - 1
            elif kind == LONGLONG:
                self._tag(reader, role, reader.i64(at))
            elif kind == SHORT:
                self._number(role, reader.u16(at))
            elif kind == LONG:
                self._number(role, reader.u32(at))
            elif kind == BYTE:
                self._number(role, reader.data[at])
            at += width
        return TRAILING if at < end else EXACT

    def fits(
        self, reader: ValueReader, method: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """True if the bytes `at`..`end` can be the arguments of a row, to the last one."""
        if not self.arguments_known[method]:
            return True
        bits: cython.int = 0
        width: cython.longlong
        i: cython.int
        for i in range(self.first_argument[method], self.first_argument[method + 1]):
            if self.types[i] == BIT:
                width = 1 if bits & 7 == 0 else 0
                bits += 1
            else:
                bits = 0
                width = self._width(reader, self.types[i], at, end)
            if width < 0 or at + width > end:
                return False
            at += width
        return at == end

    def _width(
        self, reader: ValueReader, kind: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Bytes of the value at `at`; -2 if not even its length is complete."""
        if kind == SHORTSTR:
            return -2 if at + 1 > end else 1 + reader.data[at]
        if kind == TABLE or kind == LONGSTR:
            return -2 if at + 4 > end else 4 + reader.u32(at)
        if kind == CONTENT:
            return -2 if at + 5 > end else 5 + reader.u32(at + 1)
        if kind == SHORT:
            return 2
        if kind == LONG:
            return 4
        return 1 if kind == BYTE else 8

    def _bit(self, reader: ValueReader, i: cython.int, value: cython.int) -> cython.int:
        role: cython.int = self.roles[i]
        if value and role >= FLAG_ROLES:
            self.flags |= 1 << (role - FLAG_ROLES)
        return reader.out.put_bool(value)

    def _value(
        self, reader: ValueReader, i: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Write argument `i`; position after it, -2 when cut, -3 when cut inside a container."""
        kind: cython.int = self.types[i]
        role: cython.int = self.roles[i]
        if kind == SHORTSTR:
            if at + 1 > end or at + 1 + reader.data[at] > end:
                return -2
            if role == SECRET and not self.show_secrets:
                reader.out.put_bytes(REDACTED)
            elif role == REPLY_TEXT:
                self._reply_text(reader, i, at, end)
            elif self.tells_secret and self._without_secrets(
                reader, at + 1, at + 1 + reader.data[at]
            ):
                self._put_redacted(reader, at + 1, at + 1 + reader.data[at])
            else:
                reader.put_shortstr(at, end)
            if 0 < role <= REPLY_TEXT:
                self.starts[role] = at + 1 - self.base
                self.lengths[role] = reader.data[at]
            return at + 1 + reader.data[at]
        if kind == SHORT:
            if reader.put_short(at, end):
                return -2
            self._number(role, reader.u16(at))
            return at + 2
        if kind == LONGLONG:
            if reader.put_longlong(at, end):
                return -2
            self._tag(reader, role, reader.i64(at))
            return at + 8
        if kind == LONG:
            if reader.put_long(at, end):
                return -2
            self._number(role, reader.u32(at))
            return at + 4
        if kind == BYTE:
            if reader.put_byte(at, end):
                return -2
            self._number(role, reader.data[at])
            return at + 1
        if kind == TIMESTAMP:
            return -2 if reader.put_timestamp(at, end) else at + 8
        if kind == CONTENT:
            return self._inline_content(reader, at, end)
        return self._long_value(reader, kind, role, at, end)

    def _long_value(
        self,
        reader: ValueReader,
        kind: cython.int,
        role: cython.int,
        at: cython.longlong,
        end: cython.longlong,
    ) -> cython.longlong:
        """Write a table or a long string."""
        answer: cython.int
        if at + 4 > end:
            return -2
        after: cython.longlong = at + 4 + reader.u32(at)
        if self.tells_secret and self._without_secrets(reader, at + 4, min(after, end)) is not None:
            if kind == TABLE:
                reader.out.put_bytes(b"{}")
            else:
                self._put_redacted(reader, at + 4, min(after, end))
            if after > end:
                return -3
        elif kind == TABLE:
            if after <= end:
                answer = self.tables.put_table(reader, at, after)
            else:
                answer = reader.put_table(at, end)
            if answer:
                return -2 if answer == 1 else -3
        elif role == SECRET and not self.show_secrets:
            reader.out.put_bytes(REDACTED)
            if after > end:
                return -3
        elif reader.put_longstr(at, end):
            return -2
        return after

    def _inline_content(
        self, reader: ValueReader, at: cython.longlong, end: cython.longlong
    ) -> cython.longlong:
        """Write the `content` domain of 0-9's message class: 0 inline or 1 reference, longstr."""
        if at + 5 > end or at + 5 + reader.u32(at + 1) > end:
            return -2
        reader.out.put_bytes(b'{"reference":' if reader.data[at] else b'{"inline":')
        reader.put_longstr(at + 1, end)
        reader.out.put_byte(125)
        return at + 5 + reader.u32(at + 1)

    def _reply_text(
        self, reader: ValueReader, i: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Write a reply text, without the secret that a broker may quote in it."""
        self._redact(reader, i, at, end)
        if self.safe_text is not None:
            safe: str = self.safe_text.decode(errors="replace")
            return reader.out.put_bytes(json.dumps(safe, ensure_ascii=False).encode())
        return reader.put_shortstr(at, end)

    def _redact(
        self, reader: ValueReader, i: cython.int, at: cython.longlong, end: cython.longlong
    ) -> cython.int:
        """Leave what may be shown of argument `i`, a reply text, in `safe_text` if not all may."""
        after: cython.longlong = at + 1 + reader.data[at]
        if self.show_secrets:
            return 0
        if self.sent_secrets is not None:
            self.safe_text = self._without_secrets(reader, at + 1, after)
            self.quoted = self.safe_text is not None
        if not reader.has_twice(_LESS_THAN, at + 1, after):
            return 0
        self.quoted = True
        text: bytes = self.safe_text or reader.bytes_at(at + 1, after - at - 1)
        at = after
        blamed = (0, 0)
        last: cython.int = self.first_argument[self.method + 1]
        if i + 1 < last and self.roles[i + 1] == CLASS_ID and at + 4 <= end:
            blamed = (reader.u16(at), reader.u16(at + 2))
        safe: Any = redact_quote(text, blamed, self.past_login)
        if safe is not None:
            self.safe_text = safe
        return 0

    @cython.cfunc
    def _without_secrets(
        self, reader: ValueReader, start: cython.longlong, stop: cython.longlong
    ) -> Any:
        """These bytes without the secrets that were sent before; None if they contain none."""
        return without_secrets(reader.bytes_at(start, stop - start), self.sent_secrets)

    def _put_redacted(
        self, reader: ValueReader, start: cython.longlong, stop: cython.longlong
    ) -> cython.int:
        """Write a text that has a secret in it, without that."""
        text: str = self._without_secrets(reader, start, stop).decode(errors="replace")
        return reader.out.put_bytes(json.dumps(text, ensure_ascii=False).encode())

    def _tag(self, reader: ValueReader, role: cython.int, value: cython.longlong) -> cython.int:
        if role == DELIVERY_TAG:
            if value >= 0:
                self.delivery_tag = value
            else:
                reader.oddities |= _OUT_OF_RANGE
        return 0

    def _number(self, role: cython.int, value: cython.longlong) -> cython.int:
        if role == REPLY_CODE:
            self.reply_code = value
        elif role == FRAME_MAX:
            self.frame_max = value
        elif role == CLASS_ID:
            self.about_class = value
        elif role == METHOD_ID:
            self.about_method = value
        elif role == VERSION_MAJOR:
            self.version_major = value
        elif role == VERSION_MINOR:
            self.version_minor = value
        return 0
