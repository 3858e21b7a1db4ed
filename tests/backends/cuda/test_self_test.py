"""The self-test passes on the emulated device, is not run twice, and says what differs where something does."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from localrun_testing.emulator.cuda import EmulatedDevice

from localrun.backends.cuda.self_test import CASES, replays, why_not
from localrun.backends.cuda.source import folder
from localrun.backends.gpu.device import Device, Launch, NoEvent


class Untouched:
    """A device that nobody may ask for a kernel."""

    torch_device: Any = EmulatedDevice().torch_device
    arch = 80
    ending = ".cu"
    shared_bytes = 99 << 10
    processors = 1
    has_graphs = True

    steps = staticmethod(nullcontext)

    def event(self) -> NoEvent:
        return NoEvent()

    def upload(self, *_: Any) -> None: ...
    def read(self, *_: Any) -> None: ...
    def record(self, launches: Sequence[Launch]) -> Launch | None: ...
    def commit(self) -> None: ...
    def finish(self) -> None: ...

    def kernel(self, file: str, name: str, **_: int) -> Any:
        raise RuntimeError(f"asked for {name}\nand more")


def another_rounding() -> Device:
    text = (folder() / "intrinsics.cu").read_text()
    return EmulatedDevice(replace={"intrinsics.cu": text.replace("lr_exp2(x[i])", "lr_exp2(x[i] * 1.0000002f)")})


@pytest.mark.parametrize("arch", [75, 80])
def test_a_device_that_passes_is_asked_once(arch: int) -> None:
    assert why_not(EmulatedDevice(arch), "a device") == ""
    assert why_not(Untouched(), "a device") == ""
    assert "asked for" in why_not(Untouched(), "a device with another driver")


def test_a_device_that_computes_something_else_is_not_trusted() -> None:
    for _ in range(2):
        assert "intrinsics: numbers gives" in why_not(another_rounding(), "a device")
    assert why_not(EmulatedDevice(), "a device") == ""


def test_what_a_device_raises_is_the_reason() -> None:
    reason = why_not(Untouched(), "a device")
    assert reason.endswith("failed: intrinsics: RuntimeError: asked for check_mma_s8")


def test_where_nothing_can_be_kept_every_start_tries_again(home: Path) -> None:
    home.write_text("a file where the folder should be")
    assert why_not(EmulatedDevice(), "a device") == ""
    assert why_not(Untouched(), "a device") != ""


def test_other_kernels_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_not(EmulatedDevice(), "a device") == ""
    monkeypatch.setattr("localrun.backends.cuda.self_test.kernels_hash", lambda: "changed")
    assert why_not(Untouched(), "a device") != ""


class Lazy(EmulatedDevice):
    """Like a GPU, which compiles files in other threads until a launch waits for one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[object] = []

    def kernel(self, file: str, name: str, **defines: int) -> Any:
        self.asked.append((file, defines))
        found = super().kernel(file, name, **defines)

        def bind(*arguments: Any, **rest: Any) -> Launch:
            launch = found.bind(*arguments, **rest)

            def run() -> None:
                self.asked.append("a launch")
                launch()

            return run

        return SimpleNamespace(bind=bind)


def test_every_file_is_asked_for_before_the_first_is_waited_for() -> None:
    device = Lazy()
    assert why_not(device, "a device") == ""
    first = device.asked.index("a launch")
    assert [asked for asked in device.asked[first:] if asked not in device.asked[: first + 1]] == []


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("arch", "extra_bits"),
    [
        *((75, None), (75, 0), (80, None)),
        *(pytest.param(*generation, marks=pytest.mark.slow) for generation in ((80, 1), (90, 2))),
    ],
)
def test_a_case_passes_for_every_generation(case: str, arch: int, extra_bits: int | None) -> None:
    """Their instructions, and how many bits of a sum they keep."""
    assert CASES[case](EmulatedDevice(arch, extra_bits=extra_bits)) == ""


class Replaying(EmulatedDevice):
    """A device that records in another way."""

    def __init__(self, record: Callable[[Sequence[Launch]], Launch | None]) -> None:
        super().__init__()
        self.record = record  # type: ignore[method-assign, assignment]


def refuses(_: Sequence[Launch]) -> Launch:
    raise RuntimeError("CUDA error: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")


def test_graphs_are_used_where_they_do_what_their_launches_do() -> None:
    device = EmulatedDevice()
    device.has_graphs = False
    assert why_not(device, "a device") == ""
    assert device.has_graphs
    ways: tuple[Callable[[Sequence[Launch]], Launch | None], ...] = (
        *(refuses, lambda _: None, lambda _: lambda: None, lambda launches: launches[-1]),
        lambda launches: launches[0],
    )
    assert not any(replays(Replaying(way)) for way in ways)
