"""The table of methods: what every row keeps to, and how ids resolve in each dialect."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import amqpsniff
from amqpsniff.spec import DIALECTS, METHODS, Method, methods_for

TYPES = set("ohlLbsSTFC")

# one name stands for one type everywhere, or columns could not be named after arguments
TWO_TYPES = {"result": {"L", "S"}}  # test.integer-ok and test.string-ok

# ids that mean different methods: what each dialect reads first, then its vendors' readings
COLLISIONS = {
    (10, 42): ([], ["connection.redirect"], []),
    (10, 50): (["connection.redirect"], ["connection.close"], ["connection.close"]),
    (10, 51): ([], ["connection.close-ok"], ["connection.close-ok"]),
    (10, 60): (["connection.close"], ["connection.blocked"], ["connection.blocked"]),
    (10, 61): (["connection.close-ok"], ["connection.unblocked"], ["connection.unblocked"]),
    (40, 22): (["exchange.bound"], ["exchange.bound"], ["exchange.bound"]),
    (40, 30): ([], ["exchange.bind", "exchange.query"], ["exchange.bind"]),
    (40, 31): ([], ["exchange.bind-ok", "exchange.query-ok"], ["exchange.bind-ok"]),
    (40, 41): ([], [], []),
    (40, 51): ([], ["exchange.unbind-ok"], ["exchange.unbind-ok"]),
    (50, 50): (["queue.unbind"], ["queue.unbind"] * 2, ["queue.unbind"] * 2),
    (60, 20): (["basic.consume"] * 2, ["basic.consume"], ["basic.consume"]),
    (60, 100): (
        ["basic.recover", "basic.recover-async"],
        ["basic.recover"],
        ["basic.recover-async", "basic.recover"],
    ),
    (60, 101): (["basic.recover-ok"], ["basic.recover-sync-ok"], []),
    (60, 102): ([], ["basic.recover-sync"], []),
    (60, 110): (
        ["basic.recover"],
        ["basic.recover"],
        ["basic.recover", "basic.recover-sync"],
    ),
    (60, 111): (
        ["basic.recover-ok"],
        ["basic.recover-ok"],
        ["basic.recover-ok", "basic.recover-sync-ok"],
    ),
    (120, 10): (["test.integer"], ["message.transfer"] * 2, []),
    (120, 20): (["test.string"], ["message.consume"], []),
    (120, 30): (["test.table"], ["message.cancel"], []),
    (120, 40): (["test.content"], ["message.get"], []),
}

UNDECIDED = {
    (10, 50): ["connection.close", "connection.redirect"],
    (10, 60): ["connection.blocked", "connection.close"],
    (10, 61): ["connection.unblocked", "connection.close-ok"],
    (20, 11): ["channel.open-ok", "channel.open-ok"],
    (40, 30): ["exchange.bind", "exchange.query"],
    (50, 50): ["queue.unbind", "queue.unbind"],
    (60, 20): ["basic.consume", "basic.consume"],
    (60, 40): ["basic.publish"],
    (60, 100): ["basic.recover-async", "basic.recover"],
    (120, 10): ["test.integer", "message.transfer", "message.transfer"],
}


def _types(row: Method) -> str:
    return "".join(argument.type for argument in row.arguments)


def test_rows_are_well_formed() -> None:
    for index, row in enumerate(METHODS):
        assert row.index == index
        assert row.dialects
        assert list(row.dialects) == [dialect for dialect in DIALECTS if dialect in row.dialects]
        assert row.name.startswith(f"{row.class_name}.")
        assert row.sender in {"client", "server", "both"}
        assert row.source in {"spec", "rabbitmq", "qpid", "openamq"}
        assert {argument.type for argument in row.arguments} <= TYPES
        assert len({argument.name for argument in row.arguments}) == len(row.arguments)
        assert row.arguments_known or not row.arguments
        assert row.replies or not row.synchronous, row.name
        assert "\n" not in row.note


def test_rows_are_in_order_of_id() -> None:
    classes = [row.class_id for row in METHODS]
    assert classes == sorted(classes)


def test_no_row_repeats_another() -> None:
    keys = [
        (dialect, row.class_id, row.method_id, row.name, row.arguments, row.arguments_known)
        for row in METHODS
        for dialect in row.dialects
    ]
    assert len(set(keys)) == len(keys)


def test_replies_are_methods_of_the_same_dialect_from_the_other_side() -> None:
    for row in METHODS:
        for dialect in row.dialects:
            for name in row.replies:
                found = [r for r in METHODS if r.name == name and dialect in r.dialects]
                assert found, f"{row.name} in {dialect}: {name}"
                answerer = {"client": "server", "server": "client", "both": "both"}[row.sender]
                assert all(answerer in (r.sender, "both") or r.sender == "both" for r in found)


def test_an_answer_with_no_wait_is_synchronous() -> None:
    for row in METHODS:
        if any(argument.name == "no_wait" for argument in row.arguments):
            assert row.synchronous, row.name


def test_a_name_has_one_type() -> None:
    types: dict[str, set[str]] = {}
    for row in METHODS:
        for argument in row.arguments:
            types.setdefault(argument.name, set()).add(argument.type)
    assert {name: kinds for name, kinds in types.items() if len(kinds) > 1} == TWO_TYPES


def test_names_are_spelled_with_underscores() -> None:
    for row in METHODS:
        for argument in row.arguments:
            assert argument.name.replace("_", "").isalnum()
            assert argument.name == argument.name.lower()
            assert argument.name not in {"nowait", "reserved_1", "reserved_2", "reserved_3"}


def test_secrets() -> None:
    secrets = {(r.name, a.name) for r in METHODS for a in r.arguments if a.secret}
    assert secrets == {
        ("connection.start-ok", "response"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new_secret"),
    }


@pytest.mark.parametrize(
    ("name", "dialect", "sender"),
    [
        ("basic.publish", "0-9-1", "client"),
        ("basic.deliver", "0-9-1", "server"),
        ("basic.ack", "0-8", "client"),
        ("basic.ack", "0-9-1", "both"),
        ("basic.nack", "0-9-1", "both"),
        ("basic.cancel", "0-9-1", "both"),
        ("channel.flow", "0-9-1", "both"),
        ("channel.close", "0-9-1", "both"),
        ("connection.close", "0-9-1", "both"),
        ("connection.update-secret", "0-9-1", "client"),
        ("connection.blocked", "0-9-1", "server"),
    ],
)
def test_senders(name: str, dialect: str, sender: str) -> None:
    assert {r.sender for r in METHODS if r.name == name and dialect in r.dialects} == {sender}


@pytest.mark.parametrize("ids", COLLISIONS)
def test_ids_resolve_by_dialect(ids: tuple[int, int]) -> None:
    for dialect, names in zip(DIALECTS, COLLISIONS[ids], strict=True):
        assert [row.name for row in methods_for(dialect, *ids)] == names, dialect


def test_ids_that_collide_are_all_listed() -> None:
    names: dict[tuple[int, int], set[str]] = {}
    for row in METHODS:
        names.setdefault((row.class_id, row.method_id), set()).add(row.name)
    assert {ids for ids, several in names.items() if len(several) > 1} <= COLLISIONS.keys()


@pytest.mark.parametrize("ids", UNDECIDED)
def test_ids_resolve_without_a_dialect(ids: tuple[int, int]) -> None:
    assert [row.name for row in methods_for(None, *ids)] == UNDECIDED[ids]


def test_layouts_that_differ_by_dialect() -> None:
    assert [_types(row) for row in methods_for("0-8", 20, 11)] == [""]
    assert [_types(row) for row in methods_for("0-9-1", 20, 11)] == ["S"]
    assert [_types(row) for row in methods_for("0-8", 60, 20)] == ["hssbbbb", "hssbbbbF"]
    assert [_types(row) for row in methods_for("0-9-1", 50, 50)] == ["hsssF", "hsssbF"]
    assert [_types(row) for row in methods_for("0-9", 40, 30)] == ["hsssbF", "hs"]


def test_readings_of_one_id_can_be_told_apart_or_mean_the_same() -> None:
    """A decoder takes the first that fits: a later one of the same layout is only another name."""
    for row in METHODS:
        for dialect in row.dialects:
            same = [r for r in methods_for(dialect, row.class_id, row.method_id)
                    if r.arguments_known and _types(r) == _types(row)]  # fmt: skip
            if row.arguments_known and len(same) > 1:
                assert row.class_id in {40, 60}, row.name  # recover's names; bind-ok and query-ok


def test_unknown_arguments_come_last() -> None:
    for row in METHODS:
        for dialect in (*row.dialects, None):
            known = [r.arguments_known for r in methods_for(dialect, row.class_id, row.method_id)]
            assert known == sorted(known, reverse=True)


def test_unknown_ids_and_dialects() -> None:
    assert methods_for("0-9-1", 60, 99) == ()
    assert methods_for(None, 0xFFFF, 0xFFFF) == ()
    assert methods_for("1.0", 60, 40) == ()
    assert methods_for("0-9-1", 70, 10) == ()


def test_rows_do_not_change() -> None:
    with pytest.raises(AttributeError):
        METHODS[0].name = "x"
    with pytest.raises(AttributeError):
        del METHODS[0].name
    with pytest.raises(TypeError):
        Method("too", "few")


def test_rows_compare_by_value() -> None:
    copy = pickle.loads(pickle.dumps(METHODS))
    assert copy == METHODS
    assert hash(copy[0]) == hash(METHODS[0])
    assert METHODS[0] != METHODS[1]
    assert METHODS[0] != METHODS[0].arguments[0]
    assert "name='connection.start'" in repr(METHODS[0])


def test_import_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules);"
        "import amqpsniff.spec; print(*sorted(set(sys.modules) - before))"
    )
    # Without `site`: an editable installation loads `re` and others before this code does.
    root = str(Path(amqpsniff.__file__).parents[1])
    run = subprocess.run(
        [sys.executable, "-S", "-c", code, root], capture_output=True, text=True, check=True
    )
    light = ("amqpsniff", "cython.cimports.amqpsniff", "__future__", "types", "_types")
    assert [name for name in run.stdout.split() if not name.startswith(light)] == []
