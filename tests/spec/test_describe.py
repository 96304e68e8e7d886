"""Finding methods by what a person types."""

import pytest

from amqpsniff.errors import UsageError
from amqpsniff.spec.describe import describe


def _names(wanted: str) -> list[str]:
    return [row.name for row in describe(wanted)]


@pytest.mark.parametrize("wanted", ["basic.publish", " Basic.Publish ", "60/40", "60,40"])
def test_one_method(wanted: str) -> None:
    assert _names(wanted) == ["basic.publish"]


def test_a_method_of_several_classes() -> None:
    assert _names("publish") == ["basic.publish", "file.publish", "stream.publish"]


def test_an_id_that_means_several_methods() -> None:
    assert _names("10/60") == ["connection.close", "connection.blocked"]


def test_a_class_by_name_and_id() -> None:
    assert describe("confirm") == describe("85")
    assert _names("confirm") == ["confirm.select", "confirm.select-ok"]


def test_underscores() -> None:
    assert _names("get_ok") == ["basic.get-ok", "direct.get-ok"]


def test_near_names_are_offered() -> None:
    with pytest.raises(UsageError, match=r"did you mean basic\.publish"):
        describe("basic.pubish")


@pytest.mark.parametrize("wanted", ["", "60/999", "§§§", "1/2/3", "9" * 5000, "²/²"])
def test_nothing_is_called_that(wanted: str) -> None:
    with pytest.raises(UsageError, match="no method or class"):
        describe(wanted)
