"""A test with `isa` runs on every instruction set there is a way to run here."""

from collections.abc import Iterator

import pytest
from localrun_testing.instruction_sets import all_here, using


@pytest.fixture(params=all_here() or ("generic",))
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """The instruction set in use."""
    with using(request.param):
        yield request.param
