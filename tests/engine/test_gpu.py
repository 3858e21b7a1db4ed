"""The reference on every GPU there is, beside the same reference on the CPU.

Results on a GPU are close, not equal to the bit: another order of adding up. Greedy ids of these models are the same.
Without a GPU a stand-in shows that every tensor lies where it must; numbers and memory are left to real ones.
"""

import gc
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from localrun_testing.cache_engine import GEMMA, LLAMA, MISTRAL, CacheCase
from localrun_testing.cli import localrun
from localrun_testing.held_steps import wait_after
from localrun_testing.kv_cases import CASES, KVCase, nmse, reference_for, run
from localrun_testing.latent_cases import CASES as LATENT_CASES
from localrun_testing.pretend_gpu import pretended_gpu
from localrun_testing.small_model import finish, greedy, text
from localrun_testing.stepper import Stepper, random_chunks

from localrun.backends.cuda.backend import CudaBackend
from localrun.backends.reference.backend import ReferenceBackend
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.rows import RowReferenceOps
from localrun.backends.registry import BACKENDS, backends_for
from localrun.base.errors import DoesNotFitError, EngineError
from localrun.base.events import Completion, Done
from localrun.base.machine import Memory, memory
from localrun.base.request import BackendName, LoadOptions, Request, Sampling
from localrun.base.resources import resource
from localrun.client.local import LocalClient
from localrun.diagnose.perplexity import perplexity
from localrun.engine.engine import Engine
from localrun.engine.handle import NewToken
from localrun.engine.sampler import SamplerSettings
from localrun.model.recording import record_shapes
from localrun.ops.layouts import F32, FILE, Layout

BUILTIN = resource("localrun/builtin/localrun-tiny.gguf")
# Of logits or attention, GPU beside CPU. A K or V on the edge between two codes may fall to either side.
NMSE = {"f32": 1e-9, "f16": 1e-6, "q8": 1e-5, "k8v4": 1e-4, "q4": 1e-4}
CHATS = {
    "full f16": CacheCase(LLAMA, "f16"),
    "full q8": CacheCase(LLAMA, "q8"),
    "windows k8v4": CacheCase(MISTRAL, "k8v4", "q8", window_blocks=8),
    "mixed f16": CacheCase(GEMMA, "f16", window_blocks=4),
    "a user's window q4": CacheCase(GEMMA, "q4", "q8", window_blocks=4, user_window=130),
}
ARCHITECTURES = ("llama-llama3-rope", "qwen2-window", "qwen3", "gemma2", "gemma3", "phi3-longrope", "olmo3", "granite")


DEVICES = [name for name in ("cuda", "mps") if not BACKENDS[name].why_unavailable()]
MANY = slice(None) if DEVICES else slice(None, None, 4)  # of a stand-in, a part of the cases tells enough
N_TOKENS = 25 if DEVICES else 5  # of an answer


@pytest.fixture(params=DEVICES or ["pretended"])
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    if request.param != "pretended":
        yield torch.device(request.param)
        return
    with pretended_gpu() as pretended:
        yield pretended


@pytest.fixture
def cuda() -> Iterator[torch.device]:
    if "cuda" not in DEVICES:
        pytest.skip(f"no cuda: {BACKENDS['cuda'].why_unavailable()}")
    yield torch.device("cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


def client(backend: str, ctx: int | None = 1024, **options: object) -> LocalClient:
    wish: BackendName = backend  # type: ignore[assignment]
    return LocalClient(LoadOptions(BUILTIN, backend=wish, ctx=ctx, **options))  # type: ignore[arg-type]


def ask(one: LocalClient, question: str, sampling: Sampling | None = None, max_tokens: int = N_TOKENS) -> Completion:
    greedy = Sampling(temperature=0.0)
    request = Request(prompt=question, sampling=sampling or greedy, max_tokens=max_tokens, chat_id="a")
    return next(event.completion for event in one.generate(request) if isinstance(event, Done))


def cut(n_tokens: int, seed: int) -> list[int]:
    """Chunks of a text; of a stand-in, few tell enough."""
    return random_chunks(n_tokens, seed) if DEVICES else [n_tokens - 41, 1, 40]


# Operations, weights and codecs


@pytest.mark.parametrize("name", ARCHITECTURES[MANY])
def test_logits_of_every_kind_of_model(device: torch.device, name: str, tiny_folder: Path) -> None:
    from localrun_testing import tiny_models

    path = tiny_models.save(name, tiny_folder / name)
    ids = random.Random(0).choices(range(tiny_models.VOCAB_SIZE), k=150)
    expected = Stepper(path).logits(ids)
    for layout, codec in ((F32, "f32"), (FILE, "f16")):
        one = Stepper(path, codec=codec, layout=layout, device=device)
        assert one.model.weights.embed.packed.planes[0].device.type == device.type
        for chunks in ([150], cut(150, seed=1)):
            got = one.logits(ids, chunks)
            assert got.device.type == device.type
            assert nmse(got.cpu(), expected) < (NMSE["f32"] if codec == "f32" else 5e-5)


@pytest.mark.parametrize("layout", [F32, FILE], ids=lambda layout: layout.name)
def test_quantised_weights_decode_on_the_device(device: torch.device, layout: Layout) -> None:
    ids = random.Random(1).choices(range(256), k=100)
    expected, got = (Stepper(BUILTIN, layout=layout, device=d).logits(ids) for d in (torch.device("cpu"), device))
    assert nmse(got.cpu(), expected) < NMSE["f32"]


@pytest.mark.parametrize("case", [*CASES[MANY], *LATENT_CASES[MANY]], ids=str)
def test_attention_with_every_codec_and_option(device: torch.device, case: KVCase) -> None:
    """Windows, learned sinks, windows that keep the first block, softcaps, odd head sizes; whole and in chunks."""
    expected = run(case, reference_for(case))
    whole = run(case, reference_for(case, device=device)).cpu()
    chunks = cut(case.n_tokens, seed=2)
    pieces = run(case, reference_for(case, device=device), chunks, seed=1, poison=True).cpu()
    assert nmse(whole, expected) < NMSE[case.codec]
    assert nmse(pieces, expected) < NMSE[case.codec]


@pytest.mark.parametrize("codec", ["f16", "q8", "q4"])
def test_row_by_row_on_the_device(device: torch.device, codec: str) -> None:
    case = KVCase(codec, head_dim=16, n_heads=2, n_kv_heads=1, n_tokens=140, sink_window=70)
    expected = run(case, reference_for(case))
    whole = run(case, reference_for(case, RowReferenceOps, device=device)).cpu()
    cut = run(case, reference_for(case, RowReferenceOps, device=device), [63, 2, 64, 11], seed=1, poison=True).cpu()
    assert nmse(whole, expected) < NMSE[codec]
    assert torch.equal(cut, whole), "chunks show in the bits"


def test_tf32_is_never_used(cuda: torch.device) -> None:
    torch.set_float32_matmul_precision("high")
    with client("cuda"):
        assert torch.get_float32_matmul_precision() == "highest"
        x = torch.randn(512, 512, generator=torch.Generator().manual_seed(0))
        got = (x.to(cuda) @ x.to(cuda)).cpu()
        assert nmse(got, (x.double() @ x.double()).float()) < 1e-11


@pytest.mark.parametrize("codec", ["f32", "f16", "q8", "k8v4", "q4"])
def test_blocks_leave_the_device_and_come_back(device: torch.device, codec: str) -> None:
    """As bytes, for the disk; as numbers, for another backend."""
    case = KVCase(codec, n_tokens=130)
    one, other, on_cpu = reference_for(case, device=device), reference_for(case, device=device), reference_for(case)
    run(case, one)
    for block in range(3):
        data = one.read_block(0, block)
        assert len(data) == one.block_bytes(0)
        other.write_block(0, block, data)
        assert other.read_block(0, block) == data
        exported = one.kv_export(0, block)
        assert exported[0].codes.device.type == "cpu"
        on_cpu.kv_import(0, block, *exported)
        assert on_cpu.read_block(0, block) == data
        other.copy_block(0, block, 3)
        assert other.read_block(0, 3) == data
        other.kv_import(0, 4, *on_cpu.kv_export(0, block))
        assert other.read_block(0, 4) == data
    if one.ring_bytes(0):
        data = one.read_ring(0, 1)
        other.write_ring(0, 0, data)
        other.copy_ring(0, 0, 1)
        assert other.read_ring(0, 1) == data


# Chats


def chat(engine: Engine) -> list[tuple[list[int], int]]:
    """Ids and reused tokens of turns, an edit, a branch, an answer again, and the first branch again."""
    done = []

    def turn(prompt: list[int], max_tokens: int = N_TOKENS) -> list[int]:
        sequence = finish(engine.submit(greedy(prompt, max_tokens)))
        done.append((sequence.token_ids, sequence.figures.n_cached))
        return sequence.token_ids

    first = turn(text(250, 1))
    second = turn(first + text(40, 2))
    turn(second + text(7, 3))
    turn(second[:200] + text(33, 4))  # an edit
    turn(first + text(50, 5))  # a branch
    turn(first + text(40, 2))  # an answer again
    turn(second + text(80, 6))  # the first branch goes on
    return done


@pytest.mark.parametrize("name", list(CHATS)[MANY])
def test_a_chat_that_reuses_answers_as_on_the_cpu(device: torch.device, name: str) -> None:
    case = CHATS[name]
    chats = {}
    for where, keep in ((torch.device("cpu"), True), (device, True), (device, False)):
        engine = case.engine(native=False, keep_prefixes=keep, device=where, ops=ReferenceOps)
        engine.scheduler.cost.rows_per_second = 64.0  # so that chunks differ from one run to the next
        chats[where.type, keep] = chat(engine)
        engine.close()
    expected = chats["cpu", True]
    assert chats[device.type, True] == expected
    assert sum(n for _, n in expected) > 500
    assert [ids for ids, _ in chats[device.type, False]] == [ids for ids, _ in expected]


def test_side_by_side_equals_one_by_one_equals_the_cpu(device: torch.device) -> None:
    prompts = [text(n, seed=n) for n in (5, 170, 64, 1, 90, 33)]
    case = CacheCase(GEMMA, "q8", window_blocks=10)
    answers = []
    for where in (torch.device("cpu"), device):
        engine = case.engine(native=False, device=where, ops=ReferenceOps)
        for together in (True, False):
            if together:
                ended = [finish(handle) for handle in [engine.submit(greedy(prompt, N_TOKENS)) for prompt in prompts]]
            else:
                ended = [finish(engine.submit(greedy(prompt, N_TOKENS))) for prompt in prompts]
            answers.append([sequence.token_ids for sequence in ended])
        engine.close()
    assert all(answer == answers[0] for answer in answers[1:])


def test_sampling_and_penalties_are_those_of_the_cpu(device: torch.device) -> None:
    settings = SamplerSettings(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, repeat_penalty=1.2, presence_penalty=0.4)
    answers = []
    for where in (torch.device("cpu"), device):
        engine = CacheCase(LLAMA, "f16").engine(native=False, device=where, ops=ReferenceOps)
        request = replace(greedy(text(40), 40), settings=settings, seed=7, logit_bias={3: 1.5, 9: -100.0})
        answers.append(finish(engine.submit(request)).token_ids)
        engine.close()
    assert answers[1] == answers[0]


def test_cancel_is_prompt_and_leaves_a_cache_that_is_right(device: torch.device) -> None:
    case = CacheCase(GEMMA, "q8", window_blocks=6)
    engine = case.engine(native=False, device=device, ops=ReferenceOps)
    may_go_on = wait_after(4, engine)
    handle = engine.submit(greedy(text(60), 900))
    got = []
    for event in handle:
        if isinstance(event, NewToken):
            got.append(event.token_id)
            if len(got) == 4:
                handle.cancel()
                may_go_on.set()
    assert 4 <= len(got) <= 5
    assert handle.sequence.stop_reason == "cancelled"
    again = finish(engine.submit(greedy(text(60), 30))).token_ids
    engine.close()
    fresh = case.engine(native=False, keep_prefixes=False, device=torch.device("cpu"), ops=ReferenceOps)
    assert finish(fresh.submit(greedy(text(60), 30))).token_ids == again
    fresh.close()


def test_the_builtin_model_answers_as_on_the_cpu_and_is_back_after_a_restart(device: torch.device) -> None:
    long = "Tell me about the KV cache. " * 12
    with client("reference", kv="q8") as one:
        expected = ask(one, long), ask(one, long + "And why?")
    for _ in range(2):
        with client(device.type, kv="q8", disk_cache=1 << 30) as one:
            assert one.info.backend == device.type
            found = ask(one, long), ask(one, long + "And why?")
        assert [answer.token_ids for answer in found] == [answer.token_ids for answer in expected]
    assert found[0].cache.restored_tokens >= (expected[0].prompt_tokens or 0) // 64 * 64


def test_perplexity_is_that_of_the_cpu(device: torch.device) -> None:
    passage = "The KV cache keeps what was computed of each token, so that none is computed twice. " * 20
    found = []
    for backend in ("reference", device.type):
        with client(backend) as one:
            found.append(perplexity(one.model, passage, ctx=128, max_chunks=2, baseline="q4"))
    assert math.isclose(found[1].ppl, found[0].ppl, rel_tol=1e-3)
    assert found[0].comparison is not None
    assert found[1].comparison is not None
    assert math.isclose(found[1].comparison.kld_mean, found[0].comparison.kld_mean, rel_tol=0.05)


@pytest.mark.skipif(not DEVICES, reason="no cuda or mps device")
def test_the_command_line(device: torch.device) -> None:
    ran = localrun("run", "--backend", device.type, "--json", "--temperature", "0", "--max-tokens", "8", "Hello!")
    assert ran.code == 0, ran.err
    assert ran.json["backend"] == device.type
    assert ran.json["text"]
    told = localrun("run", "--backend", device.type, "--max-tokens", "8", "Hello!")
    assert "reference operations run on" not in told.err
    assert localrun("doctor", "--json").json["backends"][device.type]["available"] is True


# Memory


def test_the_plan_counts_the_memory_of_the_device(cuda: torch.device) -> None:
    free, total = torch.cuda.mem_get_info()
    with client("cuda", ctx=None) as one:
        plan = one.model.plan
        assert abs(plan.budget_bytes - free) < 1 << 30
        assert plan.budget_bytes <= total
        assert plan.budget_bytes != memory().available
        held = one.view().memory[-1]
        ask(one, "word " * 700)
        assert held.predicted == plan.peak_bytes
        grown = one.view().memory[-1].measured
        assert plan.weights_bytes + plan.kv_bytes <= grown <= plan.peak_bytes


def test_all_memory_of_the_device_comes_back(cuda: torch.device) -> None:
    with client("cuda") as one:  # cuBLAS keeps a workspace from its first use on
        ask(one, "Hello!")
    del one
    gc.collect()
    torch.cuda.empty_cache()
    before, free = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]
    for _ in range(3):
        with client("cuda", ctx=None) as one:
            ask(one, "Hello!")
            kept, weights = one.model.plan.kv_bytes, one.model.plan.weights_bytes
            assert torch.cuda.memory_allocated() > before + kept + weights
        assert torch.cuda.memory_allocated() <= before + weights + (1 << 20), "a closed engine holds its cache"
        assert torch.cuda.mem_get_info()[0] > free - 2 * weights - (64 << 20)
        del one
        gc.collect()
        assert torch.cuda.memory_allocated() == before
        assert choose_cuda().memory(memory()).available > free - (64 << 20)


def choose_cuda() -> ReferenceBackend:
    with client("reference") as one:
        backend, _notes = next(backends_for("cuda", record_shapes(one.model.plan.config), ()))
    assert isinstance(backend, ReferenceBackend)
    return backend


def limit(n_bytes: int) -> None:
    """Let torch have no more than it holds now and `n_bytes`."""
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + n_bytes) / total)


def test_no_room_for_weights_or_cache_is_said_so(cuda: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(1 << 20)
    with pytest.raises(DoesNotFitError, match="while loading"):
        client("cuda")
    limit(40 << 20)
    with pytest.raises(DoesNotFitError, match="KV cache") as caught:
        client("cuda", ctx=2048, kv="f32")
    assert caught.value.hint
    monkeypatch.setattr(CudaBackend, "memory", lambda self, main: Memory(16 << 30, 600 << 20))
    with pytest.raises(DoesNotFitError, match="free"):
        client("cuda", ctx=1024)


def test_a_step_without_memory_ends_its_answer_and_nothing_else(cuda: torch.device) -> None:
    with client("cuda", ctx=2048) as one:
        before = ask(one, "Hello!").token_ids
        limit(2 << 20)
        with pytest.raises(EngineError, match="memory ran out"):
            ask(one, "word " * 500)
        torch.cuda.set_per_process_memory_fraction(1.0)
        assert ask(one, "Hello!").token_ids == before
        assert (ask(one, "word " * 500).prompt_tokens or 0) > 400
