"""A step waits for the device once, when its result is read: copies and launches of a whole model in their order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from localrun_testing.emulated_cuda import CudaStepper
from localrun_testing.emulator.cuda import EmulatedDevice, EmulatedKernel
from torch.utils._python_dispatch import TorchDispatchMode

from localrun.backends.gpu.logits import AdjustTensors
from localrun.backends.gpu.staging import Staging
from localrun.base.resources import resource
from localrun.ops.interface import LogitAdjust, StepInput
from localrun.ops.program import Handle
from localrun.ops.token_counts import TokenCounts

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
COPIES = ("aten::copy_", "aten::_to_copy", "aten::_local_scalar_dense", "aten::nonzero")  # on a GPU these may wait


class Told(TorchDispatchMode):
    """Notes what torch is asked for that copies; others note launches and what is sent without a wait."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.order: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name in COPIES:
            self.order.append("copy")
        return func(*args, **(kwargs or {}))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    mode, bind, send = Told(), EmulatedKernel.bind, Staging.send

    def bind_and_tell(kernel: EmulatedKernel, *given: Any, **named: Any) -> Callable[[], None]:
        launch = bind(kernel, *given, **named)

        def run() -> None:
            mode.order.append("launch")
            launch()

        return run

    def send_and_tell(memory: Staging, n: int) -> None:
        send(memory, n)
        mode.order.append("sent")

    monkeypatch.setattr(EmulatedKernel, "bind", bind_and_tell)
    monkeypatch.setattr(Staging, "send", send_and_tell)
    return mode


class Adjusting(CudaStepper):
    """The built-in model, whose rows of logits are changed."""

    def __init__(self) -> None:
        super().__init__(BUILTIN)
        self.change: LogitAdjust | None = None
        run = self.executor.run

        def adjusted(step: StepInput) -> Handle:
            return run(replace(step, adjust=[self.change] * len(step.logits_rows)))

        self.executor.run = adjusted  # type: ignore[method-assign]

    def order(self, told: Told, ids: Sequence[int], start: int) -> list[str]:
        """What a step does."""
        told.order.clear()
        with told:
            self.step(ids, start)
        return told.order


def penalty(*seen: int) -> LogitAdjust:
    counts = TokenCounts(seen)
    return LogitAdjust(counts, counts, repeat=1.5, presence=0.5)


def test_nothing_is_copied_between_the_first_launch_and_the_read(told: Told) -> None:
    model = Adjusting()
    model.step([3] * 32, 0)  # makes room
    for n, start, change in ((20, 0, None), (1, 20, None), (1, 21, penalty(5)), (1, 22, penalty(5, 7))):
        model.change = change
        order = model.order(told, [3] * n, start)
        first, last = order.index("launch"), len(order) - order[::-1].index("launch")
        assert set(order[first:last]) == {"launch"}
        assert order[:first].count("sent") == 1 + (change is not None)


def test_changes_of_logits_are_sent_only_where_they_differ(told: Told) -> None:
    model = Adjusting()
    model.step([3], 0)
    sent = []
    for start, change in enumerate((None, None, penalty(5), penalty(5), penalty(6), None, None)):
        model.change = change
        sent.append(model.order(told, [3], start).count("sent") - 1)
    assert sent == [0, 0, 1, 0, 1, 1, 0]


def test_more_entries_than_there_is_room_for_are_sent_to_a_larger_place() -> None:
    tensors = AdjustTensors(2, EmulatedDevice())
    many = penalty(*range(4000))
    assert tensors.fill((None, many), 2)
    assert not tensors.fill((None, many), 2)
    assert tensors.entries[:4000].tolist() == list(range(4000))
    assert not tensors.fill((penalty(9), None), 2)
    assert tensors.entries[0] == 9
