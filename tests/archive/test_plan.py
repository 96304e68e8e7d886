"""Who reads what: every conversation in one task, files read no oftener than allowed."""

import random
from array import array

import pytest

from amqpsniff.archive import Surveyed, Task, make_plan, plan
from tests.thorough import rounds


def surveyed(name: str, first_ns: int, marks: dict[int, int]) -> Surveyed:
    return Surveyed(
        name,
        size=1,
        modified_ns=1,
        packets=1,
        octets=sum(marks.values()),
        first_ns=first_ns,
        least_ns=first_ns,
        last_ns=first_ns + 9,
        marks=array("q", marks),
        mark_bytes=array("q", marks.values()),
    )


def takes(task: Task, mark: int) -> bool:
    if task.marks is None:
        return True
    return (mark in task.marks) != task.inverted


@pytest.mark.parametrize("seed", range(rounds(30)))
def test_every_conversation_is_in_one_task_with_all_its_files(seed: int) -> None:
    chance = random.Random(seed)
    files = [
        surveyed(
            f"{at}.pcap",
            at * 10,
            {chance.randrange(1, 60): chance.randrange(1, 500) for _ in range(chance.randrange(9))},
        )
        for at in range(chance.randrange(1, 25))
    ]
    chance.shuffle(files)
    reads = chance.choice([1, 2, 4, 8])
    made = make_plan(files, task_bytes=chance.choice([100, 1_000, 10_000]), max_reads=reads)
    for mark in {mark for one in files for mark in one.marks}:
        where = {one.path for one in files if mark in one.marks}
        readers = [
            task
            for task in made.tasks
            if takes(task, mark) and where & {source.path for source in task.sources}
        ]
        assert len(readers) == 1
        assert where <= {source.path for source in readers[0].sources}


def test_the_listing_order_changes_nothing() -> None:
    files = [surveyed(f"{at}.pcap", at * 10, {at: 100, at + 1: 100}) for at in range(9)]
    keys = [task.key() for task in make_plan(files, task_bytes=300).tasks]
    assert keys == [task.key() for task in make_plan(files[::-1], task_bytes=300).tasks]


def test_files_are_looked_up_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        surveyed(f"{at}.pcap", at * 10, {at % 7: 300, at // 3 + 10: 200, at + 50: 100})
        for at in range(30)
    ]
    whole = make_plan(files, task_bytes=400, deals=True)
    assert whole.buckets
    monkeypatch.setattr(plan, "LOOKED_UP", 1)
    parts = make_plan(files, task_bytes=400, deals=True)
    assert parts == whole


def test_long_connections_do_not_read_files_too_often() -> None:
    marks = dict.fromkeys(range(1, 200), 1000)
    files = [surveyed(f"{at:02d}.pcap", at * 10, marks) for at in range(50)]
    plan = make_plan(files, task_bytes=100_000, max_reads=4)
    readers = [
        sum(one.path in {source.path for source in task.sources} for task in plan.tasks)
        for one in files
    ]
    assert max(readers) <= 4
    assert plan.read_bytes <= 4 * plan.octets


def test_new_files_leave_tasks_alone_that_they_do_not_touch() -> None:
    files = [
        surveyed(f"{at:02d}.pcap", at * 10, {at * 10 + one: 100 for one in range(5)})
        for at in range(20)
    ]
    before = {task.key() for task in make_plan(files, task_bytes=1_000).tasks}
    more = [*files, surveyed("99.pcap", 990, {1: 50, 999: 50})]
    after = make_plan(more, task_bytes=1_000).tasks
    changed = [task for task in after if task.key() not in before]
    assert 0 < len(changed) <= 3
    touched = {source.path for task in changed for source in task.sources}
    assert touched == {"00.pcap", "01.pcap", "99.pcap"}


def test_bytes_that_are_passed_over_are_known() -> None:
    files = [
        surveyed(f"{at}.pcap", at * 10, {1 if at in (0, 3) else 2 + at: 100}) for at in range(4)
    ]
    plan = make_plan(files, task_bytes=100)
    (crossing,) = [task for task in plan.tasks if len(task.sources) == 2]
    assert crossing.skipped.tolist() == [0, 200]


def test_small_tasks_are_there_for_the_end() -> None:
    files = [surveyed(f"{at:02d}.pcap", at * 10, {at: 100}) for at in range(40)]
    octets = [task.octets for task in make_plan(files, task_bytes=1_000).tasks]
    assert octets == sorted(octets, reverse=True)
    assert octets[0] == 1_000
    assert octets[-1] <= 300
    cores = [0, 0, 0]
    for one in octets:  # whoever is free takes the next
        cores[cores.index(min(cores))] += one
    assert max(cores) - min(cores) <= 300


def test_few_bytes_from_pack_to_pack_are_one_task() -> None:
    marks = [{-1 - at: 990, at: 2, at + 1: 2} for at in range(9)]
    files = [surveyed(f"{at:02d}.pcap", at * 10, marks[at]) for at in range(9)]
    tasks = make_plan(files, task_bytes=1_000).tasks
    crossing = [task for task in tasks if len(task.sources) > 1]
    assert len(tasks) == len(files) + len(crossing)
    assert [task.octets for task in crossing] == [28, 4]


def test_one_large_file_is_shared_evenly() -> None:
    chance = random.Random(1)
    marks = {mark: chance.randrange(1, 60) for mark in range(200)}
    (one, other) = make_plan([surveyed("0.pcap", 0, marks)], task_bytes=1_000).tasks
    assert one.octets - other.octets in (0, 1)
    assert one.octets + other.octets == sum(marks.values())


@pytest.mark.parametrize(("beside", "tasks"), [(0, 1), (40, 1), (50, 2)])
def test_a_file_is_read_again_where_there_is_enough_beside_a_large_connection(
    beside: int, tasks: int
) -> None:
    marks = {1: 1_000, **dict.fromkeys(range(2, 2 + beside), 1)}
    plan = make_plan([surveyed("0.pcap", 0, marks)], task_bytes=200)
    assert len(plan.tasks) == tasks
    assert plan.tasks[0].octets == 1_000 + (beside if tasks == 1 else 0)
    assert sum(task.octets for task in plan.tasks) == 1_000 + beside


def test_what_files_would_be_read_too_often_for_is_dealt_out() -> None:
    marks = dict.fromkeys(range(1, 200), 1_000)
    files = [surveyed(f"{at:02d}.pcap", at * 10, marks) for at in range(50)]
    plan = make_plan(files, task_bytes=400_000, deals=True)
    assert plan.buckets == len(plan.tasks) > 4
    assert plan.why.startswith("dealt out")
    assert plan.read_bytes == plan.octets == sum(task.octets for task in plan.tasks)
    dealt = {mark: set[int]() for mark in marks}
    for pack in plan.packs:
        for path, own in pack.marks.items():
            for mark, bucket in zip(own, pack.buckets[path], strict=True):
                dealt[mark].add(bucket)
    for mark, buckets in dealt.items():
        (bucket,) = buckets
        (task,) = (one for one in plan.tasks if one.bucket == bucket)
        assert task.marks is not None
        assert mark in task.marks


def test_few_connections_from_pack_to_pack_are_read_straight() -> None:
    files = [surveyed(f"{at}.pcap", at * 10, {at * 10 + 1: 900, 5: 90}) for at in range(3)]
    plan = make_plan(files, task_bytes=1_000, deals=True)
    assert not plan.buckets
    assert plan.why.startswith("read straight")


def test_long_connections_do_not_make_tasks_that_read_everything() -> None:
    """Fewer parts come before larger families."""
    files = [
        surveyed(f"{at:03d}.pcap", at, dict.fromkeys(range(at * 4, at * 4 + 24), 300))
        for at in range(100)
    ]
    plan = make_plan(files, task_bytes=1_000)
    assert max(task.read_bytes for task in plan.tasks) < plan.octets // 4
