"""Methods as rows, and the lookup that keeps the dialects apart.

One class/method id means different methods in different dialects and at different brokers, so a
lookup gives candidates in order of preference: a decoder takes the first one whose arguments fit
the payload exactly.
"""

from .method_table import METHOD_TABLE
from .rows import Row, columns, dialects_of

_UNDECIDED = ("0-9-1", "0-8", "0-9")
"""Order of candidates while the dialect is unknown: the most common on the wire first."""


class Argument(Row):
    """One argument of a method.

    `type` is one letter: o octet, h short, l long, L longlong, b bit, s short string, S long
    string, T timestamp, F field table, C the 0-9 `content` domain (discriminator octet and long
    string). Consecutive bits share octets, low bit first. `secret` marks credentials.
    """

    __slots__ = columns("name type secret")
    name: str
    type: str
    secret: bool


class Method(Row):
    """One method as one or more dialects define it.

    `index` is its position in `METHODS`. `name` is `class.method`, `replies` are such names, of
    the same dialects. `sender` is `client`, `server` or `both`. `synchronous`: the sender expects
    one of the replies, unless `no_wait` is set; replies of a method that is not synchronous may
    come late, out of order or never. `content`: a content header frame follows. With
    `arguments_known` false `arguments` is empty and the payload stays raw. `source` is `spec`,
    `rabbitmq`, `qpid` or `openamq`; `note` is one line for a person or empty.
    """

    __slots__ = columns(
        "index dialects class_id method_id class_name name arguments arguments_known sender "
        "synchronous replies content source note"
    )
    index: int
    dialects: tuple[str, ...]
    class_id: int
    method_id: int
    class_name: str
    name: str
    arguments: tuple[Argument, ...]
    arguments_known: bool
    sender: str
    synchronous: bool
    replies: tuple[str, ...]
    content: bool
    source: str
    note: str

    @property
    def has_secret(self) -> bool:
        """True if an argument is a credential."""
        return any(argument.secret for argument in self.arguments)


def _argument(word: str) -> Argument:
    name, _, kind = word.partition(":")
    return Argument(name, kind[0], kind.endswith("!"))


def _parse(text: str) -> list[Method]:
    methods: list[Method] = []
    arguments: dict[str, Argument] = {}  # rows share equal arguments
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        row, _, note = line.partition("#")
        row, _, replies = row.partition(">")
        letters, source, ids, sender, kind, name, *words = row.split()
        class_id, _, method_id = ids.partition("/")
        class_name = name.partition(".")[0]
        are_known = words != ["?"]
        for word in words if are_known else ():
            if word not in arguments:
                arguments[word] = _argument(word)
        method = Method(
            len(methods), dialects_of(letters), int(class_id), int(method_id), class_name, name,
            tuple([arguments[word] for word in words]) if are_known else (), are_known, sender,
            "sync" in kind, tuple([f"{class_name}.{reply}" for reply in replies.split()]),
            "content" in kind, source, note.strip(),
        )  # fmt: skip
        methods.append(method)
    return methods


METHODS: tuple[Method, ...] = tuple(_parse(METHOD_TABLE))
"""All rows, ordered by id and then by preference."""


def _same(first: Method, second: Method) -> bool:
    return first is second or (
        first.name == second.name
        and first.arguments_known == second.arguments_known
        and first.arguments == second.arguments
    )


def _undecided(class_id: int, method_id: int) -> tuple[Method, ...]:
    """All dialects' candidates, without those of the same layout and meaning as an earlier one."""
    chosen: list[Method] = []
    for dialect in _UNDECIDED:
        for method in _BY_ID.get((dialect, class_id, method_id), ()):
            if not any(_same(method, earlier) for earlier in chosen):
                chosen.append(method)
    return tuple(chosen)


_BY_ID: dict[tuple[str | None, int, int], tuple[Method, ...]] = {}

for _method in METHODS:
    for _dialect in _method.dialects:
        _key = (_dialect, _method.class_id, _method.method_id)
        _BY_ID[_key] = (*_BY_ID.get(_key, ()), _method)
for _class_id, _method_id in {(_method.class_id, _method.method_id) for _method in METHODS}:
    _BY_ID[None, _class_id, _method_id] = _undecided(_class_id, _method_id)


def methods_for(dialect: str | None, class_id: int, method_id: int) -> tuple[Method, ...]:
    """The readings of a class/method id, the preferred one first; `()` when the id is unknown.

    In a dialect: what its usual broker reads (RabbitMQ first), then vendors' variants of the id.
    `None`, unknown: the candidates of 0-9-1, then those of 0-8 and 0-9 that differ in layout
    or meaning.
    """
    return _BY_ID.get((dialect, class_id, method_id), ())


PUBLISHES = frozenset(("basic.publish", "stream.publish", "send"))
"""Methods of messages that a client sends to the broker; `send` is a delivery of AMQP 1.0."""

DELIVERIES = frozenset(("basic.deliver", "basic.get-ok", "stream.deliver", "receive"))
"""Methods of messages that the broker sends to a client; `receive` is a delivery of AMQP 1.0."""
