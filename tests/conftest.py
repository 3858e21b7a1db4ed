"""Every test: its own LOCALRUN_HOME, no network but loopback, one thread; in CI no skip that hides a missing oracle."""

import functools
import gc
import io
import itertools
import logging
import os
import re
import socket
import ssl
import sys
import tempfile
import uuid
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from localrun_testing import shared_folder
from localrun_testing.kept import remove_unused
from localrun_testing.rewritten import rewrite_a_part

if TYPE_CHECKING:
    from localrun.backends.cpu.library import NativeLibrary
    from localrun.backends.interface import Backend
    from localrun.fit.probe import Probed

IN_CI = os.environ.get("CI") == "true"
# A skip in CI is a failure, except for what a machine may lack: sample data, an accelerator, an instruction set, an OS.
SKIPS_ALLOWED_IN_CI = re.compile(r"shared folder|cuda|mps|gpu|instruction set|windows|macos", re.IGNORECASE)
OURS_TO_KEEP = {
    f"LOCALRUN_{name}"
    for name in (
        *(
            "SHARED",
            "PEERS",
            "CLIENTS",
            "LIBRARIES",
            "LLAMA_LIB",
            "REQUIRE_NATIVE",
            "KILLS",
            "FULL_REDRAW",
            "HAMMER_SECONDS",
            "MIRROR",
        ),
        *("TRANSFORMERS", "VLLM", "MLX_LM", "LLAMA_CPP_SERVER", "WRITE_ENGINES"),
    )
}

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"  # workers run side by side; torch reads these
os.environ["OMP_WAIT_POLICY"] = "passive"  # and threads that wait for each other leave the cores to other workers
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# Three workers and hundreds of processes start: none should compile localrun and the tests again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
for _name in [n for n in os.environ if n.startswith("LOCALRUN_") and n not in OURS_TO_KEEP]:
    del os.environ[_name]

if peers := os.environ.get("LOCALRUN_PEERS"):  # a `pip install --target` folder with llama-cpp-python
    sys.path.append(peers)
    os.environ.setdefault("LOCALRUN_LLAMA_LIB", str(Path(peers) / "llama_cpp" / "lib"))

_HOMES = ("HOME", "USERPROFILE", "LOCALRUN_HOME")


def live_at(path: Path) -> None:
    """Have the home of the user and of localrun, and the Hugging Face cache, be at `path`."""
    os.environ.update(dict.fromkeys(_HOMES, str(path)), HF_HOME=str(path / "huggingface"))


# Until the first test there is none: nothing is written while tests are collected.
live_at(Path(tempfile.gettempdir()) / f"localrun-tests-{uuid.uuid4().hex}")


hypothesis.settings.register_profile("localrun", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("localrun")

pytest_plugins = ["localrun_testing.run_again", "localrun_testing.brief_reports"]
_homes = itertools.count()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Tests of processes, terminals and servers wait as long as they compute: half as many workers again as cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + cores // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without looking for garbage, and never look at what is there then: modules and tests, a million objects
    that last as long as the run."""
    gc.disable()
    rewrite_a_part(session.config)
    if not hasattr(session.config, "workerinput"):
        remove_unused()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        gc.set_threshold(50_000, 20)  # apps and models are made and dropped by the thousand: look less often


@pytest.fixture(scope="session", autouse=True)
def home_of_no_test(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a thread of a test that is over still does must not reach the user's own files either. The folder lies where
    pytest itself removes those of older runs, whether these ended or were killed."""
    live_at(tmp_path_factory.getbasetemp() / "home-of-no-test")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """LOCALRUN_HOME of this test; it does not exist yet. The Hugging Face cache and the user's home are empty too."""
    path = tmp_path_factory.getbasetemp() / f"home-{next(_homes)}"
    monkeypatch.setenv("LOCALRUN_HOME", str(path))
    monkeypatch.setenv("HF_HOME", str(path / "huggingface"))
    for name in ("HOME", "USERPROFILE"):  # other programs keep their models there
        monkeypatch.setenv(name, str(path / "user"))
    for name in ("OLLAMA_MODELS", "HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")  # the user's own stays as it is
    _probe_once(monkeypatch)
    return path


@pytest.fixture(autouse=True)
def torch_as_new(request: pytest.FixtureRequest) -> Iterator[None]:
    """torch's numbers are the test's own, whatever ran before in this process: what fails once fails again. A backend
    tells torch how many threads its model has: for all that the process computes, but here for a test."""
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "manual_seed"):
        # For accelerators that are not there, `manual_seed` keeps where it was called: a millisecond a test.
        seed = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
        seed(zlib.crc32(request.node.nodeid.encode()))
    yield
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(1)


@functools.cache
def _probed(backend: "Backend") -> "Probed":
    """Rates of one round: no test depends on how high they are."""
    from localrun.fit import probe as module

    with pytest.MonkeyPatch.context() as once:
        once.setattr(module, "MOST_ROUNDS", 1)
        return module.probe(backend)


@functools.cache
def _of_one_folder(probe: Callable[[Path], float]) -> Callable[[Path], float]:
    """A probe that takes 64 MiB of the disk, for the first folder alone: the others are on the same disk."""
    rates: list[float] = []

    def rate(folder: Path) -> float:
        if not rates:
            rates.append(probe(folder))
        return rates[0]

    return rate


def _probe_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """How fast this machine and its disk are, a process measures once: no home of a test knows it."""
    if (module := sys.modules.get("localrun.fit.machine_rates")) is not None:
        monkeypatch.setattr(module, "probe", _probed)
    if (module := sys.modules.get("localrun.fit.disk_rate")) is not None:
        monkeypatch.setattr(module, "probe", _of_one_folder(module.probe))


@pytest.fixture
def library() -> "Iterator[NativeLibrary]":
    """The native library, its instruction set put back afterwards."""
    from localrun.backends.cpu.library import load_library

    library = load_library()
    assert library is not None
    before = library.isa
    yield library
    library.use_isa(before)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What reaches the root of all loggers, whose level is put back afterwards."""
    text, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(text), root.level
    root.addHandler(handler)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Sample data beside the checkout; a counted skip without it."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared folder: set LOCALRUN_SHARED")
    return folder


def pytest_report_header() -> str:
    """Who ran what: a run says little about an instruction set that nobody ran."""
    from localrun_testing.instruction_sets import said

    return said()


def _guard_network() -> None:
    """Connecting anywhere but this machine raises, so no test can depend on the network."""

    def guarded(name: str) -> None:
        original = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                host = str(address[0])
                if not (host.startswith("127.") or host in ("::1", "localhost")):
                    raise OSError(f"tests may not connect to {host}")
            return original(self, address)

        setattr(socket.socket, name, connect)

    guarded("connect")
    guarded("connect_ex")


_guard_network()


def _read_authorities_once() -> None:
    """Every client of httpx reads the certificates of all authorities, even to speak plain HTTP with this machine: a
    sixth of what the tests of the server compute. Here those that would read the same file share what came of it."""
    create = ssl.create_default_context
    of_file = functools.cache(lambda file: create(cafile=file))

    def shared(*arguments: Any, **named: Any) -> ssl.SSLContext:
        context: ssl.SSLContext = of_file(named["cafile"]) if [*named] == ["cafile"] else create(*arguments, **named)
        return context

    ssl.create_default_context = shared


_read_authorities_once()


def _forbid_skip(report: Any) -> None:
    if not (IN_CI and report.skipped) or hasattr(report, "wasxfail"):
        return
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not SKIPS_ALLOWED_IN_CI.search(reason):
        report.outcome = "failed"
        report.longrepr = f"in CI a skip is a failure: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    _forbid_skip(report)
    return report
