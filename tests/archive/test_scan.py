"""Work that is shared through a folder: all of it is done, whoever stops, and on one core too."""

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from amqpsniff.archive import make_plan, survey
from amqpsniff.archive.filesystem import Folder
from amqpsniff.archive.plan import Task
from amqpsniff.archive.scan import TURNS, Scan, do_together
from amqpsniff.archive.task_io import TaskSpec
from amqpsniff.options import Options
from amqpsniff.tables.batches import finding_batch

from .broker import ACROSS, traffic
from .splits import by_one_engine, deal, rows_of


@pytest.mark.parametrize("last_first", [False, True])
def test_findings_of_all_tasks(tmp_path: Path, last_first: bool) -> None:
    paths = deal(traffic(random.Random(1), 400), tmp_path, random.Random(2), 7)
    plan = make_plan([survey(str(path)) for path in paths], task_bytes=2_000)
    count = len(plan.tasks)
    assert count > 3
    folder = Folder(str(tmp_path / "scratch"))
    made = Scan(TaskSpec(Task([]), "", "", Options(), ("findings",), folder))
    made.begin(plan.tasks)
    told = [made.findings(at, plan.files) for at in range(count)[:: -1 if last_first else 1]]
    (found,) = [one for one in told if one is not None]
    rows = rows_of(pa.Table.from_batches([finding_batch(found)]))
    assert rows == by_one_engine(paths, ("findings",))["findings"]
    assert {value for row in rows for value in row} >= ACROSS


def counting(done: Counter[str], keys: str) -> dict[str, Callable[[], None]]:
    return {key: partial(done.update, (key,)) for key in keys}


def test_work_of_several(tmp_path: Path) -> None:
    done: Counter[str] = Counter()
    with ThreadPoolExecutor(4) as pool:
        for key in "adgj":
            pool.submit(do_together, Folder(str(tmp_path)), counting(done, "abcdefghij"), key)
    assert set(done) == set("abcdefghij")
    do_together(Folder(str(tmp_path)), counting(done, "ab"), "a")
    again = done.copy()
    do_together(Folder(str(tmp_path)), counting(done, "ab"), "b")
    assert done == again


def test_work_of_one_that_was_killed(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    process = os.fork()
    if not process:
        do_together(folder, {"b": lambda: os.kill(os.getpid(), signal.SIGKILL)}, "b")
    os.waitpid(process, 0)
    assert folder.names(f"{TURNS}/b")
    done: Counter[str] = Counter()
    do_together(folder, counting(done, "abc"), "a")
    assert done == Counter("abc")


def test_work_that_fails_is_tried_by_the_next(tmp_path: Path) -> None:
    folder = Folder(str(tmp_path))
    done: Counter[str] = Counter()
    with pytest.raises(ZeroDivisionError):
        do_together(folder, {"a": lambda: 1 // 0, **counting(done, "b")}, "a")
    do_together(folder, counting(done, "ab"), "b")
    assert done == Counter("ab")
