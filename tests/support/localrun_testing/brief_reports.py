"""A plugin for pytest's workers: of a test that passes one message goes to the process that reports, not six."""

import pytest
from _pytest.runner import runtestprotocol  # plugins that run tests again call it, too

SHOWN = 0.1  # seconds: fixtures that take as long are told, for --durations


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > SHOWN:
            item.ihook.pytest_runtest_logreport(report=report)
    return True
