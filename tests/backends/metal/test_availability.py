"""Each reason why Apple's GPU cannot be used, told before torch is imported; what is known of a chip by its name."""

import importlib.metadata
import platform
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from localrun.backends.metal import availability, system
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.metal.memory import usual_limit
from localrun.base import macos
from localrun.base.machine import Memory


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A Mac with Apple silicon, as macOS tells it."""
    answers: dict[str, Any] = {"machdep.cpu.brand_string": b"Apple M3 Pro\0", "hw.optional.arm64": b"\1\0\0\0"}
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(macos, "_sysctl", lambda name: answers.get(name, b""))
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(platform, "mac_ver", lambda: ("15.3.1", ("", "", ""), "arm64"))
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "2.13.0")
    system.chip.cache_clear()
    monkeypatch.delenv(availability.EMULATE, raising=False)
    return monkeypatch


@pytest.mark.parametrize("exact", [True, False])
def test_a_gpu_whose_matrices_are_not_used_says_so(exact: bool, mac: pytest.MonkeyPatch) -> None:
    backend = MetalBackend()
    assert "slower" not in backend.summary(), "nobody has tried yet"
    backend.__dict__["kernel_device"] = SimpleNamespace(exact_matrices=exact)
    assert ("prompts are read slower" in backend.summary()) == (not exact)


@pytest.fixture(autouse=True)
def forget() -> Any:
    yield
    system.chip.cache_clear()


def test_a_mac_of_today_can(mac: pytest.MonkeyPatch) -> None:
    backend = MetalBackend()
    assert backend.why_unavailable() == ""
    assert backend.degraded_reason() == ""
    assert backend.details() == {"device": "Apple M3 Pro", "family": "Apple9", "macos": "15.3.1"}


@pytest.mark.parametrize(
    ("module", "name", "answer", "says", "is_a_fault"),
    [
        (platform, "machine", "x86_64", "Python for x86_64", True),
        (platform, "mac_ver", ("13.6", ("", "", ""), "arm64"), "macOS 13.6 is older than 14", True),
        (importlib.metadata, "version", "2.6.0+x", "PyTorch 2.6.0.x cannot compile", True),
        (macos, "_sysctl", b"", "no Apple GPU", False),
    ],
)
def test_what_is_in_the_way_is_named(
    module: Any, name: str, answer: Any, says: str, is_a_fault: bool, mac: pytest.MonkeyPatch
) -> None:
    mac.setattr(module, name, lambda *_: answer)
    backend = MetalBackend()
    assert says.replace(".x", "+x") in backend.why_unavailable()
    assert bool(backend.degraded_reason()) == is_a_fault


def test_fast_math_of_torch_is_refused(mac: pytest.MonkeyPatch) -> None:
    identity = MetalBackend().identity
    mac.setenv(availability.FAST_MATH, "0")
    assert MetalBackend().why_unavailable() == ""
    mac.setenv(availability.FAST_MATH, "1")
    assert "PYTORCH_MPS_FAST_MATH is set" in MetalBackend().why_unavailable()
    assert MetalBackend().degraded_reason() != ""
    assert MetalBackend().identity != identity


def test_memory_is_told_before_torch_has_found_the_gpu(mac: pytest.MonkeyPatch) -> None:
    """By the limit that somebody set, else by the one that macOS has."""
    main = Memory(16 << 30, 15 << 30)
    assert MetalBackend().memory(main).total == usual_limit(16 << 30)
    mac.setattr(macos, "_sysctl", lambda name: (8192).to_bytes(4, "little") if name == "iogpu.wired_limit_mb" else b"")
    assert MetalBackend().memory(main) == Memory(8 << 30, 8 << 30)


def test_elsewhere_there_is_no_apple_gpu_and_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(availability.EMULATE, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert "no Apple GPU" in MetalBackend().why_unavailable()
    assert MetalBackend().degraded_reason() == ""
    assert MetalBackend().details() == {"device": None, "family": None, "macos": None}


@pytest.mark.parametrize(
    ("chip", "family"),
    [("Apple M1", 7), ("Apple M2 Max", 8), ("Apple M3", 9), ("Apple M4 Pro", 9), ("Apple M5", 10), ("Apple M12", 10)],
)
def test_chips_have_families(chip: str, family: int) -> None:
    assert system.family(chip) == family


def test_a_chip_of_no_known_name_can_what_all_can() -> None:
    assert system.family("Apple processor") == 7
