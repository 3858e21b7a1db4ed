"""Prompts that are read in bulk on the emulated GPU: the same bits however they are cut, and no less exact."""

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from localrun_testing.cuda_linear import run
from localrun_testing.emulated_cuda import CudaStepper, emulated_device
from localrun_testing.emulator.cuda import EmulatedDevice
from localrun_testing.gpu_weights import packed, random_rows
from localrun_testing.kv_cases import nmse
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.stepper import Stepper

from localrun.backends.cuda import bulk, bulk_linears
from localrun.backends.cuda.availability import EMULATE
from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.cuda.bulk_linears import BulkMemory
from localrun.backends.gpu.passes import passes
from localrun.backends.registry import BACKENDS
from localrun.base.events import Completion, Done
from localrun.base.request import LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.ops.instructions import LinearWeight
from localrun.ops.interface import SequenceInput, StepInput
from localrun.ops.layouts import Packed

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
SPAN, N_TOKENS, N_BULK = 64, 150, 128
TEXTS = st.lists(st.tuples(st.integers(0, 300), st.integers(1, 90), st.integers(0, 5)), min_size=1, max_size=6)


def token_ids(seed: int = 0, n: int = N_TOKENS) -> list[int]:
    return random.Random(seed).choices(range(256), k=n)


def stepper(n_bulk: int = N_BULK) -> CudaStepper:
    one = CudaStepper(BUILTIN, span=SPAN)
    one.n_bulk = n_bulk
    return one


@settings(deadline=None)
@given(TEXTS, st.randoms(use_true_random=False))
def test_a_step_is_cut_into_passes(texts: list[tuple[int, int, int]], dice: random.Random) -> None:
    """Each of (first position, rows, spans in bulk): every row is in one pass, rows in bulk where they have to be."""
    positions = [first + i for first, n, _ in texts for i in range(n)]
    row_sequence = [index for index, (_, n, _) in enumerate(texts) for _ in range(n)]
    wanted = dice.sample(range(len(positions)), dice.randint(0, len(positions)))
    angles = np.arange(len(positions), dtype=np.float32)[:, None]
    sequences = [SequenceInput(first + n, (), (), n_bulk=n_bulk * SPAN) for first, n, n_bulk in texts]
    step = StepInput(
        list(range(len(positions))), positions, row_sequence, sequences, wanted, cos_sin=[(angles, -angles)]
    )
    done, logits = list[int](), dict[int, int]()
    for one in passes(step, SPAN, 4 * SPAN):
        part = one.step
        assert list(part.cos_sin[0][0][:, 0]) == part.token_ids  # ids are numbers of rows here
        places = np.arange(one.rows)[one.places].tolist()
        assert len({*places}) == part.n_rows
        for row, place in zip(part.token_ids, places, strict=True):
            assert (positions[row] < sequences[row_sequence[row]].n_bulk) == bool(one.span)
            assert not one.span or (place % SPAN == positions[row] % SPAN and one.rows <= 4 * SPAN)
        done += part.token_ids
        logits |= {int(index): part.token_ids[row] for index, row in zip(one.wanted, part.logits_rows, strict=True)}
    assert sorted(done) == list(range(len(positions)))
    assert [logits[index] for index in range(len(wanted))] == wanted
    for index in range(len(texts)):  # what rows of a text read is there
        of_text = [positions[row] for row in done if row_sequence[row] == index]
        assert of_text == sorted(of_text)


def kept(one: CudaStepper) -> bytes:
    """Keys and values of all blocks of the text."""
    return b"".join(one.executor.read_block(0, block) for block in one.blocks[: -(-N_TOKENS // 64)])


def test_steps_do_not_show_in_a_result() -> None:
    """Whole, and in chunks that begin and end anywhere: the same bits of logits, keys and values."""
    whole = stepper()
    logits = whole.logits(token_ids())
    for chunks in ([60, 1, 1, 1, 1, 1, 70, 15], [7, 130, 1, 12]):
        other = stepper()
        assert torch.equal(other.logits(token_ids(), chunks), logits)
        assert kept(other) == kept(whole)
    few = stepper(0).logits(token_ids())
    assert not torch.equal(few[:N_BULK], logits[:N_BULK]), "it is another arithmetic"
    reference = Stepper(BUILTIN, codec="f16").logits(token_ids())
    assert nmse(logits, reference) < nmse(few, reference)


def test_two_prompts_and_a_chat_in_one_step() -> None:
    """Rows in bulk of two texts at the same positions, and one that decodes: as each by itself."""
    texts = [token_ids(0, 100), token_ids(1, 90), token_ids(2, 40)]
    n_bulk, alone = [64, 64, 0], list[torch.Tensor]()
    for ids, n in zip(texts, n_bulk, strict=True):
        alone.append(stepper(n).logits(ids))
    together = stepper(0)
    tables = [[(block,) for block in together.blocks[2 * i : 2 * i + 2]] for i in range(3)]

    def view(index: int, length: int) -> SequenceInput:
        made = sequence_input(tables[index], length, 1)
        return replace(made, n_bulk=n_bulk[index])

    together.runner.compute([(texts[2][:-1], 0)], [view(2, 39)], [0])
    spans: Sequence[tuple[list[int], int]] = [(texts[2][-1:], 39), (texts[0], 0), (texts[1], 0)]
    found = together.runner.compute(spans, [view(2, 40), view(0, 100), view(1, 90)], range(191))
    assert torch.equal(torch.as_tensor(found.rows), torch.cat((alone[2][-1:], alone[0], alone[1])))
    assert {bucket.span for bucket in together.executor.program.launches} >= {0, SPAN}


def in_bulk(x: torch.Tensor, weight: Packed, span: int) -> torch.Tensor:
    """A linear without anything besides, of whole spans of rows."""
    n_out, n_in, out = weight.n_rows, weight.n_cols, torch.full((len(x), weight.n_rows), torch.nan)
    sizes = (len(x) * n_in, n_out * n_in, span * n_out)
    memory = BulkMemory(*(torch.zeros(size, dtype=torch.bfloat16) for size in sizes))
    for launch in bulk_linears.linear(emulated_device(90), memory, x, [LinearWeight(weight)], [out], span):
        launch()
    return out


@pytest.mark.parametrize(
    ("n_out", "n_in"), [(40, 768), pytest.param(14_336, 4096, marks=pytest.mark.slow)], ids=["small", "real"]
)
@pytest.mark.parametrize("qtype", ["Q4_K", "Q6_K", "Q8_0"])
def test_errors_are_no_larger(qtype: str, n_out: int, n_in: int) -> None:
    """Against fp64 sums of what was to be multiplied, beside the kernel that quantises rows to 8 bits."""
    weight, x = packed(qtype, n_out, n_in), random_rows(16, n_in)
    exact = x.double() @ weight.unpack().double().T
    errors = [
        float((found - exact).square().mean()) for found in (in_bulk(x, weight, 16), *run(x, [LinearWeight(weight)]))
    ]
    assert errors[0] < errors[1] / 2


@pytest.fixture
def data_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend finds an emulated sm_90, and reads prompts by small spans."""
    monkeypatch.setenv(EMULATE, "1")
    monkeypatch.setattr(bulk, "SPAN", SPAN)
    monkeypatch.setitem(vars(BACKENDS["cuda"]), "kernel_device", emulated_device(90))


def ask(client: LocalClient, prompt: str) -> Completion:
    request = Request(prompt=prompt, max_tokens=4, sampling=Sampling(temperature=0.0), chat_id="a")
    return next(event.completion for event in client.generate(request) if isinstance(event, Done))


@pytest.mark.usefixtures("data_centre", "home")
def test_a_chat_that_comes_back_from_the_disk() -> None:
    """It answers as one that was never kept, and only what is new is computed."""
    first, second = "one two " * 70, "one two " * 70 + "three " * 4
    kept = LoadOptions(BUILTIN, backend="cuda", kv="f16", ctx=512, disk_cache=1 << 30)
    with LocalClient(kept) as one:
        assert 2 * SPAN < (ask(one, first).prompt_tokens or 0) < 3 * SPAN
    with LocalClient(kept) as again:
        found = ask(again, second)
    with LocalClient(replace(kept, disk_cache=0, prefix_cache=False)) as cold:
        expected = ask(cold, second)
    assert (found.cached_tokens or 0) >= 2 * SPAN
    assert not expected.cached_tokens
    assert found.token_ids == expected.token_ids


def test_which_gpus_read_in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [arch for arch in (75, 80, 86, 89, 90, 100, 103, 120) if bulk.span_of(arch)] == [90, 100, 103]
    monkeypatch.setenv(EMULATE, "1")
    names = set()
    for arch in (80, 90):
        monkeypatch.setattr(CudaBackend, "kernel_device", EmulatedDevice(arch))
        names.add(CudaBackend().rounding)
    assert len(names) == 2, "what is kept on disk by one is of no use to the other"
