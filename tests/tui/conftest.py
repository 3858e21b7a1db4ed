"""A module that drives the app or a terminal holds tests of screens (`localrun_testing.run_again`)."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRIVERS = {"drive", "Terminal"}  # of localrun_testing.pilots and localrun_testing.terminal


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(HERE) and isinstance(item, pytest.Function) and DRIVERS & set(vars(item.module)):
        item.add_marker(pytest.mark.screen)
