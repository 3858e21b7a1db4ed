"""The parts of a decode step on a GPU: its launches by kind, each kind timed by itself, and the step as it is."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.gpu_kernels import Timer
from benchmarks.gpu_models import Shape, Text, read_weights
from benchmarks.gpu_platforms import Platform
from localrun.backends.gpu.device import Argument, Device, Dim, Kernel, Launch
from localrun.engine.runner import RowSpan
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import max_rows

MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class DecodePart:
    """The launches of one kind in a step: kernel, grid, and the size of the weights each reads."""

    kind: str
    count: int
    seconds: float  # of all
    weight_bytes: int  # that all of them read


@dataclass(frozen=True, slots=True)
class DecodeStep:
    """Seconds of a token: as it is, until the host has asked for everything, and with all kernels in one graph."""

    seconds: float
    asked: float
    graph: float
    n_launches: int
    weight_bytes: int
    parts: tuple[DecodePart, ...]  # the longest first


@dataclass(frozen=True, slots=True)
class NamedLaunch:
    kind: str
    weight_bytes: int
    launch: Launch


class WatchedDevice:
    """A device that writes down in `asked` every launch that it is asked for by itself."""

    def __init__(self, device: Device) -> None:
        self.device, self.asked = device, list[NamedLaunch]()
        self.is_recording = False

    def __getattr__(self, name: str) -> object:
        return getattr(self.device, name)

    def record(self, launches: Sequence[Launch]) -> Launch | None:
        self.is_recording = True
        try:
            return self.device.record(launches)
        finally:
            self.is_recording = False

    def kernel(self, file: str, name: str, **defines: int) -> WatchedKernel:
        return WatchedKernel(self, self.device.kernel(file, name, **defines), name)


class WatchedKernel:
    def __init__(self, device: WatchedDevice, kernel: Kernel, name: str) -> None:
        self.device, self.kernel, self.name = device, kernel, name

    def bind(self, grid: Dim, block: Dim, *arguments: Argument, shared: int = 0) -> Launch:
        launch = self.kernel.bind(grid, block, *arguments, shared=shared)
        blobs = sum(x.nbytes for x in arguments if isinstance(x, Tensor) and x.dtype == torch.uint8)
        size = f" {blobs / MEGABYTE:.1f} MiB" if blobs else ""
        named = NamedLaunch(f"{self.name} {'×'.join(map(str, grid))}{size}", blobs, launch)

        def run() -> None:
            if not self.device.is_recording:
                self.device.asked.append(named)
            launch()

        return run


@torch.inference_mode()
def decode_step(platform: Platform, timer: Timer, shape: Shape, n_prompt: int, n_tokens: int) -> DecodeStep:
    """Measure the step of one token after a prompt, the median of n_tokens."""
    device = WatchedDevice(platform.device)
    text = Text(platform.translator, device, shape, n_prompt + n_tokens + BLOCK_TOKENS, platform.bulk_span)  # type: ignore[arg-type]  # it passes on what it has not
    rows = max_rows(platform.bulk_span)
    for first in range(0, n_prompt, rows):
        text.step(min(rows, n_prompt - first))
    for _ in range(2):
        text.step(1)
    times = sorted(token_times(text, platform.wait) for _ in range(n_tokens))
    text.forget_graphs()
    device.asked.clear()
    text.step(1)
    launches = list(device.asked)
    return DecodeStep(
        *times[len(times) // 2],
        graph=timer.seconds([each.launch for each in launches]) * len(launches),
        n_launches=len(launches),
        weight_bytes=sum(packed.nbytes for packed in read_weights(text.model)),
        parts=parts_of(launches, timer),
    )


def token_times(text: Text, wait: Callable[[], None]) -> tuple[float, float]:
    """Seconds of one token, and of those until all of it is asked for."""
    end = text.length + 1
    view = text.view(end, tuple(range(-(-end // BLOCK_TOKENS))), 0)
    wait()
    started = time.perf_counter()
    handle = text.runner.begin(text.runner.step_input([RowSpan([7], text.length)], [view], [0]))
    asked = time.perf_counter() - started
    handle.result()
    text.length = end
    return time.perf_counter() - started, asked


def parts_of(launches: Sequence[NamedLaunch], timer: Timer) -> tuple[DecodePart, ...]:
    """Launches by kind, timed kind by kind; the longest first."""
    kinds: dict[str, list[NamedLaunch]] = defaultdict(list)
    for each in launches:
        kinds[each.kind].append(each)
    parts = [
        DecodePart(
            kind,
            len(members),
            timer.seconds([each.launch for each in members]) * len(members),
            sum(each.weight_bytes for each in members),
        )
        for kind, members in kinds.items()
    ]
    return tuple(sorted(parts, key=lambda part: -part.seconds))
