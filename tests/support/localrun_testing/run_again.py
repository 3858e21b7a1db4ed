"""A pytest plugin: a failed test of processes or screens is run once more, alone. One that passes then is FLAKY.

Such tests share the machine with all others, so that a busy moment can break one. Any other test fails at once, and so
does a run with more flaky tests than a busy machine explains.
"""

import subprocess
import sys
from collections.abc import Generator, Iterable
from typing import Any

import pytest

MARKERS = {"process", "screen"}
MOST_FLAKY = 2  # of a run that passes
MOST_RUN_AGAIN = 5  # where more fail, it is not the machine

Reports = list[pytest.TestReport]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--never-again", action="store_true", help="run no failed test once more")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if not is_worker and not config.getoption("never_again"):
        config.pluginmanager.register(RunAgain(config))


class RunAgain:
    """Holds back failures of marked tests until all others are done, in the process that reports for all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.held: dict[str, Reports] = {}
        self.flaky: dict[str, Reports] = {}
        self.is_holding = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.is_holding and report.failed and MARKERS & set(report.keywords):
            self.held.setdefault(report.nodeid, []).append(report)
            report.outcome = "rerun"  # type: ignore[assignment]  # not a failure yet, for whoever counts them

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return ("", "R", "AGAIN") if report.outcome == "rerun" else None  # type: ignore[comparison-overlap]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        try:
            result = yield
        except BaseException:  # the run was given up
            self._fail(self.held)
            raise
        if len(self.held) <= MOST_RUN_AGAIN:
            self.flaky = {nodeid: reports for nodeid, reports in self.held.items() if self._passes_alone(nodeid)}
        self._fail(nodeid for nodeid in self.held if nodeid not in self.flaky or len(self.flaky) > MOST_FLAKY)
        return result

    def _passes_alone(self, nodeid: str) -> bool:
        plugins = [f"-p{plugin}" for plugin in self.config.getoption("plugins")]
        command = [
            sys.executable,
            "-m",
            "pytest",
            *plugins,
            "-pno:xdist",
            "-pno:cacheprovider",
            "--never-again",
            nodeid,
        ]
        done = subprocess.run(command, cwd=self.config.rootpath, stdin=subprocess.DEVNULL, capture_output=True)
        return done.returncode == 0

    def _fail(self, nodeids: Iterable[str]) -> None:
        """Report the first failures of these tests, as pytest does it."""
        self.is_holding = False
        for nodeid in nodeids:
            for report in self.held[nodeid]:
                report.outcome = "failed"
                self.config.hook.pytest_runtest_logreport(report=report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for nodeid, reports in self.flaky.items():
            terminalreporter.write_sep("_", f"FLAKY: {nodeid} passes when it is run once more, alone. First it failed:")
            for report in reports:
                report.toterminal(terminalreporter._tw)
        if len(self.flaky) > MOST_FLAKY:
            terminalreporter.write_sep("=", f"{len(self.flaky)} flaky tests are too many: at most {MOST_FLAKY} may be")
        terminalreporter.stats["flaky"] = [reports[0] for reports in self.flaky.values()]
