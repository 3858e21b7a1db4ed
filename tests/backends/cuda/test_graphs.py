"""Steps of few rows as one launch: the same bits as launch by launch, whatever changes between two of them."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from localrun_testing import tiny_models
from localrun_testing.emulated_cuda import CudaStepper
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.kv_cases import nmse
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.stepper import Stepper

from localrun.backends.gpu import graphs, program
from localrun.base.resources import resource
from localrun.ops.interface import LogitAdjust, StepCancelled, StepInput
from localrun.ops.token_counts import TokenCounts

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
IDS = torch.randint(0, 256, (200,), generator=torch.Generator().manual_seed(7)).tolist()


class Asked:
    """Counts what the emulated device records, and how often it replays."""

    recorded = replayed = 0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    counts, record = Asked(), EmulatedDevice.record

    def counted(device: EmulatedDevice, launches: Any) -> Callable[[], None]:
        recorded = record(device, launches)
        counts.recorded += 1

        def run() -> None:
            counts.replayed += 1
            recorded()

        return run

    monkeypatch.setattr(EmulatedDevice, "record", counted)
    return counts


def one_by_one(monkeypatch: pytest.MonkeyPatch, compute: Callable[[CudaStepper], list[torch.Tensor]]) -> None:
    """Compare steps with those of a device that records nothing."""
    found = compute(CudaStepper(BUILTIN, ctx=1024))
    with monkeypatch.context() as without:
        without.setattr(graphs.Graphs, "add", lambda *_: None)
        expected = compute(CudaStepper(BUILTIN, ctx=1024))
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert not all(torch.equal(found[0], other) for other in found[1:])


def test_an_answer_is_one_launch_a_token(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Across the end of a block: positions, slots and tables are each token's own."""

    def answer(model: CudaStepper) -> list[torch.Tensor]:
        model.step(IDS[:61], 0)
        return [model.step(IDS[at : at + 1], at) for at in range(61, 67)]

    one_by_one(monkeypatch, answer)
    assert (asked.recorded, asked.replayed) == (1, 5)


def test_longer_texts_and_more_rows_have_graphs_of_their_own(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of two units beside one of a unit; 1 to 8 rows, with few and with many rows of logits."""

    def mixed(model: CudaStepper) -> list[torch.Tensor]:
        found = []
        for _ in range(2):
            found += [model.step(IDS[:1], 40), model.step(IDS[:1], 600), model.step(IDS[1:2], 41)]
            found += [model.step(IDS[:n], 50) for n in (2, 3, 4, 7, 8)]
            found += [last_of(model, IDS[:4], 60), last_of(model, IDS[4:12], 60)]
        return found

    one_by_one(monkeypatch, mixed)
    assert (asked.recorded, asked.replayed) == (8, 12)


def last_of(model: CudaStepper, ids: list[int], start: int) -> torch.Tensor:
    """Logits after the last of some tokens alone."""
    end = start + len(ids)
    tables = [(block,) * len(model.runner.groups) for block in model.blocks[: -(-end // 64)]]
    view = sequence_input(tables, end, len(model.runner.groups))
    found = model.runner.compute([(ids, start)], [view], [len(ids) - 1])
    return torch.as_tensor(found.rows).clone()


def test_what_moves_takes_graphs_with_it(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Block tables that outgrow their room, more rows of logits than before, and more entries that change them."""
    monkeypatch.setattr(program, "LEAST_TABLE", 1)

    def growing(model: CudaStepper) -> list[torch.Tensor]:
        run, changes = model.executor.run, list[LogitAdjust]()

        def adjusted(step: StepInput) -> Any:
            return run(replace(step, adjust=changes * len(step.logits_rows)))

        model.executor.run = adjusted  # type: ignore[method-assign]
        found = [model.step(IDS[:1], at) for at in (0, 1, 200, 201, 400, 401)]
        model.step(IDS[:12], 402)
        found += [model.step(IDS[:1], at) for at in (414, 415)]
        changes.append(LogitAdjust(seen=TokenCounts(range(1500)), repeat=1.7))
        return found + [model.step(IDS[:1], at) for at in (416, 417)]

    one_by_one(monkeypatch, growing)
    assert asked.replayed


def test_no_more_graphs_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MOST_GRAPHS", 2)
    model = CudaStepper(BUILTIN)
    for n in (1, 2, 4, 1):
        model.step(IDS[:n], 0)
    assert [key.bucket.rows for key in model.executor.program.graphs.kept] == [4, 1]


def test_a_step_that_is_cancelled_is_neither_launched_nor_recorded(asked: Asked) -> None:
    model = CudaStepper(BUILTIN)
    run = model.executor.run

    def cancelled(step: StepInput) -> Any:
        step.cancel.set()
        return run(step)

    for n_replayed in (0, 1):
        model.executor.run = cancelled  # type: ignore[method-assign]
        with pytest.raises(StepCancelled):
            model.step(IDS[:1], 0)
        model.executor.run = run  # type: ignore[method-assign]
        model.step(IDS[:1], 0)
        assert (asked.recorded, asked.replayed) == (1, n_replayed)


def test_steps_without_room_for_their_graph_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """And recorded when memory has moved."""
    tried = 0

    def refuse(device: EmulatedDevice, launches: Any) -> None:
        nonlocal tried
        tried += 1

    def answer(model: CudaStepper) -> list[torch.Tensor]:
        return [model.step(IDS[at : at + 1], at) for at in range(6)]

    expected, short = answer(CudaStepper(BUILTIN)), CudaStepper(BUILTIN)
    with monkeypatch.context() as patch:
        patch.setattr(EmulatedDevice, "record", refuse)
        assert all(torch.equal(a, b) for a, b in zip(answer(short), expected, strict=True))
    assert (tried, short.executor.device_steps.steps_without_room) == (1, 6)
    short.executor.program.forget()
    answer(short)
    assert short.executor.device_steps.steps_without_room == 6


def test_a_device_without_graphs_lacks_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatedDevice, "has_graphs", False)
    model = CudaStepper(BUILTIN)
    model.step(IDS[:1], 0)
    assert not model.executor.device_steps.steps_without_room


def test_tables_that_stay_in_their_file_are_read_before_the_graph(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = tiny_models.TINY_MODELS["gemma4-e2b"]
    heads = replace(usual, config={**usual.config, "head_dim": 32})  # of a size that has kernels
    monkeypatch.setitem(tiny_models.TINY_MODELS, "gemma4-e2b", heads)
    path = tiny_models.save("gemma4-e2b", tmp_path / "model")

    def answer(model: Stepper | CudaStepper) -> torch.Tensor:
        return torch.cat([model.step(IDS[at : at + 1], at) for at in range(4)])

    model = CudaStepper(path, codec="f32")
    assert (len(model.executor.program.tables), model.executor.program.by_torch) == (1, set())
    assert nmse(answer(model), answer(Stepper(path, codec="f32"))) < 1e-9
    assert (asked.recorded, asked.replayed) == (1, 3)
