"""Surveys that are kept, and those that a process remembers."""

import shutil
from pathlib import Path

import pytest

from amqpsniff.archive import surveys
from amqpsniff.archive.listing import list_captures
from amqpsniff.archive.surveys import Surveyed


@pytest.fixture
def capture(samples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(samples / "node.pcap", tmp_path / "node.pcap"))


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of files that are surveyed from now on."""
    names: list[str] = []
    survey = surveys.survey

    def noted(path: str, *more: int | None, **named: object) -> Surveyed:
        names.append(path)
        return survey(path, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(surveys, "survey", noted)
    return names


def test_a_file_is_surveyed_once_as_long_as_it_does_not_change(
    capture: Path, samples: Path, looked: list[str]
) -> None:
    (first,) = surveys.survey_files(list_captures([capture]))
    first.marks = first.marks[:0]  # whoever asked may do with it what he wants
    (again,) = surveys.survey_files(list_captures([capture]))
    assert again.marks
    assert looked == [str(capture)]
    shutil.copy(samples / "php_churn.pcap", capture)
    (other,) = surveys.survey_files(list_captures([capture]))
    assert other.packets != again.packets
    assert looked == [str(capture)] * 2


def test_a_file_is_known_by_the_name_it_was_given(
    capture: Path, looked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(capture.parent)
    names = [capture.name, str(capture)]
    found = [surveys.survey_files(list_captures([name]))[0].path for name in names]
    assert found == looked == names


def test_what_cannot_be_read_is_tried_again(tmp_path: Path, looked: list[str]) -> None:
    path = tmp_path / "notes.pcap"
    path.write_text("nothing")
    for _ in range(2):
        (found,) = surveys.survey_files(list_captures([path]))
        assert found.error
    assert len(looked) == 2


@pytest.mark.parametrize(("less", "count"), [(0, 2), (1, 4)])
def test_so_many_conversations_are_remembered(
    capture: Path, looked: list[str], monkeypatch: pytest.MonkeyPatch, less: int, count: int
) -> None:
    other = Path(shutil.copy(capture, capture.with_name("other.pcap")))
    room = 2 * (len(surveys.survey(*list_captures([capture])[0]).marks) + surveys.MIN_SIZE)
    monkeypatch.setattr(surveys, "MAX_REMEMBERED", room - less)
    looked.clear()
    for _ in range(2):
        for path in (capture, other):
            surveys.survey_files(list_captures([path]))
    assert len(looked) == count


def test_a_survey_that_was_damaged_is_made_again(
    capture: Path, tmp_path: Path, looked: list[str]
) -> None:
    kept = str(tmp_path / "kept")
    listed = list_captures([capture])
    (first,) = surveys.survey_files(listed, folder_name=kept)
    (path,) = Path(kept).rglob("*.survey")
    whole = path.read_bytes()
    for octets in (whole, whole[:-1], b"", whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]):
        path.write_bytes(octets)
        assert surveys.survey_files(listed, folder_name=kept) == [first]
    assert path.read_bytes() == whole
    assert len(looked) == 4
