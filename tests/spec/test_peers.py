"""Names that say who a client is."""

import pytest

from amqpsniff.spec import given_name


@pytest.mark.parametrize("name", ["billing", "celery@3f2504e0-4f89-11d3-9a0c-0305e82c3301", "7"])
def test_names(name: str) -> None:
    assert given_name(name) == name


def test_the_first_that_says_something() -> None:
    assert given_name("", None, "billing", "other") == "billing"


@pytest.mark.parametrize(
    "name",
    [None, "", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "3F2504E04F8911D39A0C0305E82C3301"],
)
def test_what_says_nothing(name: str | None) -> None:
    assert given_name(name) is None
