"""Who is asked for the rows of a script."""

from collections.abc import Callable

import pytest

from tests.session.comparing import ENGINES
from tests.session.events import Rows
from tests.session.script import Script

Ask = Callable[[Script], Rows]


@pytest.fixture(params=ENGINES)
def ask(request: pytest.FixtureRequest) -> Ask:
    """One of the engines."""
    return ENGINES[request.param]
