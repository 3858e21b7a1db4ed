"""The plan of a load: blocks and bytes as allocated, a context that is the largest, a codec that is the best."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from localrun_testing.small_model import FULL, WINDOWED, small_model

from localrun.backends.cpu.backend import CpuBackend
from localrun.backends.cpu.library import load_library
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.reference.backend import ReferenceBackend
from localrun.backends.reference.executor import ReferenceExecutor
from localrun.base.errors import DoesNotFitError, UsageError
from localrun.engine.runner import cache_layers
from localrun.fit.blocks import CacheShape, final_config
from localrun.fit.codecs import ChosenCodec, choose_codec, q4_objection
from localrun.fit.mapped import Mappable
from localrun.fit.memory_plan import MemoryPlan
from localrun.fit.plan import MARGIN, LoadRequest, longest_context, margin_of, plan_load, plan_with_sight
from localrun.model.config import LayerSpec, ModelConfig, RopeSpec, group_layers
from localrun.ops.kv import KV_CODECS, KVPlan
from localrun.storage.inventory import CodecTokens

GIB = 1 << 30
CODECS = list(KV_CODECS)


def config(
    n_layers: int = 32,
    n_kv_heads: int = 8,
    head_dim: int = 128,
    max_context: int = 131072,
    windows: tuple[int | None, ...] = (None,),
    hidden: int = 4096,
) -> ModelConfig:
    """A model of an 8B's shape; layers take the windows in turn."""
    layers = tuple(
        LayerSpec("window" if window else "full", window, 0, 32, n_kv_heads, head_dim, 14336)
        for window in (windows[i % len(windows)] for i in range(n_layers))
    )
    return ModelConfig("llama", hidden, 128256, max_context, 1e-5, layers, (RopeSpec(1e4, head_dim),))


def plan(free: float, shape: ModelConfig | None = None, weights: float = 4.6 * GIB, **wishes: Any) -> MemoryPlan:
    return plan_load(LoadRequest(shape or config(), int(weights), int(free), ReferenceBackend(), **wishes))


def test_room_is_kept_for_images_unless_text_would_suffer() -> None:
    """Plenty: the context shrinks by it. Too little: the plan is that of text alone, and says that it has no room."""
    request = LoadRequest(config(), int(4.6 * GIB), int(8 * GIB), ReferenceBackend())
    text, sight = plan_load(request), GIB
    seeing = plan_with_sight(dataclasses.replace(request, sight_bytes=sight))
    assert (text.sight_bytes, seeing.sight_bytes) == (0, sight)
    assert seeing.ctx < text.ctx
    assert seeing.peak_bytes <= seeing.budget_bytes - margin_of(seeing.budget_bytes)
    assert plan_with_sight(dataclasses.replace(request, sight_bytes=4 * GIB)) == text
    with pytest.raises(DoesNotFitError):
        plan_with_sight(dataclasses.replace(request, sight_bytes=sight, free=GIB))
    parts = tuple(Mappable(f"layers.{layer}", GIB // 8, GIB // 8) for layer in range(32))
    fitting = dataclasses.replace(request, mappable=parts, sight_bytes=4 * GIB)
    assert plan_with_sight(fitting) == text, "weights do not go to the disk for the sake of images"
    short = dataclasses.replace(fitting, free=4 * GIB, sight_bytes=GIB // 2)
    assert plan_load(dataclasses.replace(short, sight_bytes=0)).mapped
    assert plan_with_sight(short).sight_bytes == GIB // 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("window", [None, 64, 200])
@pytest.mark.parametrize("ctx", [40, 300, 2048])
def test_planned_bytes_are_the_bytes_the_reference_allocates(codec: str, window: int | None, ctx: int) -> None:
    model = small_model((FULL, WINDOWED, FULL))
    found = plan(8 * GIB, model.config, 0, ctx=ctx, kv=codec, window=window)
    final = dataclasses.replace(model, config=found.config)
    layers = cache_layers(final.config)
    groups = group_layers(found.config.layers, found.codecs)
    assert len(groups) == len(found.blocks) == len(found.ring_blocks)
    places = {layer: (g, i) for g, group in enumerate(groups) for i, layer in enumerate(group.layers)}
    layers = [dataclasses.replace(at, group=places[n][0], index=places[n][1]) for n, at in enumerate(layers)]
    cache = CachePlan(layers, KVPlan(found.codecs), found.blocks, found.ring_blocks)
    executor = ReferenceExecutor(ExecutorRequest.of(final.forward, cache), torch.device("cpu"))
    assert executor.kv_nbytes == found.kv_bytes >= found.needed_kv_bytes


@given(
    n_layers=st.integers(1, 80),
    n_kv_heads=st.sampled_from([1, 2, 8]),
    windows=st.sampled_from([(None,), (512,), (None, 512), (4096, None), (1024, 1024, None)]),
    user_window=st.one_of(st.none(), st.integers(64, 5000)),
    room=st.integers(0, 1 << 36),
    max_context=st.integers(64, 200_000),
    codec=st.sampled_from(CODECS),
    parallel=st.integers(1, 5),
)
def test_the_solved_context_is_the_largest(
    n_layers: int,
    n_kv_heads: int,
    windows: tuple[int | None, ...],
    user_window: int | None,
    room: int,
    max_context: int,
    codec: str,
    parallel: int,
) -> None:
    shape = CacheShape(config(n_layers, n_kv_heads, 64, max_context, windows), ReferenceBackend(), user_window)

    def need(ctx: int) -> int:
        groups = shape.groups(ctx, KV_CODECS[codec], parallel)
        assert shape.nbytes(ctx, KV_CODECS[codec], parallel) == sum(group.nbytes for group in groups)
        return sum(group.nbytes for group in groups) + shape.scratch_bytes(ctx, KV_CODECS[codec], 8)

    ctx = longest_context(shape, KV_CODECS[codec], room, parallel=parallel)
    assert ctx is not None
    assert ctx == 0 or need(ctx) <= room
    assert ctx == max_context or need(min(ctx + 64, max_context)) > room


@given(st.integers(0, 40 * GIB), st.sampled_from([None, 4096, 32768, 131072]), st.sampled_from(["auto", *CODECS]))
def test_a_plan_stays_within_the_free_memory_or_names_what_fits(free: int, ctx: int | None, kv: str) -> None:
    try:
        found = plan(free, ctx=ctx, kv=kv)
    except DoesNotFitError as error:
        follow_hint(error, free)
        return
    assert found.needed_bytes <= found.peak_bytes <= free - margin_of(free)
    assert found.kept_kv_bytes == found.kv_bytes - found.needed_kv_bytes >= 0
    if ctx is not None:
        assert found.ctx == ctx


def follow_hint(error: DoesNotFitError, free: int) -> None:
    """What the error says would fit does."""
    words = error.hint.split()
    if "bits" in words:
        bits = float(words[words.index("bits") - 1])
        n_params = 7.5e9
        assert plan(free, weights=n_params * bits / 8, ctx=4096, kv=CODECS[-1]).ctx == 4096
    elif "--ctx" in words:
        ctx = int(words[words.index("--ctx") + 1])
        kv = words[len(words) - 1 - words[::-1].index("--kv") + 1] if "--kv" in words else "f16"
        assert plan(free, ctx=ctx, kv=kv).ctx == ctx
    else:
        assert "smaller model" in error.hint


def test_memory_left_over_goes_to_kept_prefixes_but_not_without_end() -> None:
    one = plan(64 * GIB, ctx=4096, kv="f16")
    assert one.blocks == (4 * one_context(4096),)
    assert one.kept_kv_bytes == one.peak_bytes - one.needed_bytes > 2 * one.needed_kv_bytes
    assert plan(64 * GIB, ctx=4096, kv="f16", keep_chats=False).kept_kv_bytes == 0
    tight = plan(one.needed_bytes + MARGIN, ctx=4096, kv="f16", resident=ReferenceBackend().program_bytes)
    assert tight.blocks[0] >= one_context(4096)


def test_a_small_container_runs_a_small_model() -> None:
    """0.9 GiB for 0.27 GiB of weights, with a process that holds 80 MiB when it has read the tokenizer."""
    if load_library() is None:
        return
    small = config(24, n_kv_heads=2, head_dim=64, max_context=32768, hidden=896)
    small = dataclasses.replace(small, layers=tuple(dataclasses.replace(x, ffn_size=4864) for x in small.layers))
    free, resident = int(0.9 * GIB) - (80 << 20), 80 << 20
    found = plan_load(LoadRequest(small, int(0.27 * GIB), free, CpuBackend(), resident=resident, threads=2))
    assert found.ctx >= 4096
    assert found.peak_bytes < 0.9 * GIB


def test_a_refusal_counts_what_is_in_the_way() -> None:
    with pytest.raises(DoesNotFitError) as refused:
        plan(0.9 * GIB, weights=0.4 * GIB, limit="a limit of 0.90 GiB set by a control group")
    message = str(refused.value)
    assert "0.90 GiB are free under a limit of 0.90 GiB set by a control group; weights take 0.40 GiB" in message
    assert re.search(r"cache and program [\d.]+ GiB, and 0.11 GiB are left for other programs", message)
    assert refused.value.hint == "choose a smaller model, or raise that limit"


@pytest.mark.parametrize(("budget", "margin"), [(64 * GIB, 512 << 20), (4 * GIB, 512 << 20), (GIB, 128 << 20), (0, 0)])
def test_a_small_machine_gives_up_less(budget: int, margin: int) -> None:
    assert margin_of(budget) == margin


def one_context(ctx: int) -> int:
    return ctx // 64 + 2  # one to copy into, one beside a rolling window


def test_windows_are_not_planned_as_if_they_saw_everything() -> None:
    gemma = config(30, windows=(1024, 1024, 1024, 1024, 1024, None))
    windowed, full = plan(100 * GIB, gemma, 0, ctx=131072, kv="f16").groups
    assert full.count >= 2048
    assert windowed.count <= 4 * (3 * 17 + 8 + 1)
    assert windowed.block_bytes == 5 * full.block_bytes


def test_a_users_window_bounds_memory() -> None:
    whole, windowed = (plan(100 * GIB, ctx=131072, kv="f16", window=window) for window in (None, 2048))
    assert windowed.needed_kv_bytes < whole.needed_kv_bytes / 20
    assert {spec.sink_window for spec in windowed.config.layers} == {2048}


def test_the_last_config_rolls_where_its_rope_allows_it() -> None:
    assert {spec.sink_window for spec in final_config(config(), 8192, None).layers} == {8192 - 64}
    longrope = RopeSpec(1e4, 128, (1.0,) * 64, (2.0,) * 64, original_context=4096)
    phi = dataclasses.replace(config(), ropes=(longrope,))
    assert {spec.sink_window for spec in final_config(phi, 8192, None).layers} == {None}
    assert final_config(phi, 8192, None).ropes[0].divisors == (2.0,) * 64
    assert final_config(config(), 100, None) == config()


def test_wishes_are_kept_or_refused_with_numbers() -> None:
    assert plan(40 * GIB, ctx=1000).ctx == 1000
    with pytest.raises(UsageError, match="131,072 this model"):
        plan(40 * GIB, ctx=131073)
    with pytest.raises(UsageError, match="0 tokens"):
        plan(40 * GIB, ctx=0)
    with pytest.raises(UsageError, match="window of 63"):
        plan(40 * GIB, window=63)
    with pytest.raises(DoesNotFitError, match=r"32\.0 GiB are free; weights take 39\.3 GiB"):
        plan(32 * GIB, weights=39.3 * GIB, ctx=4096)


# choose_codec alone: how many tokens fit with each codec is all it needs to know


def choose(
    fits: dict[str, int],
    wish: str = "auto",
    ctx: int | None = None,
    small: bool = False,
    before: CodecTokens | None = None,
) -> ChosenCodec:
    shape = config(max_context=40960, n_layers=4 if small else 32, hidden=512 if small else 4096)
    longest: Callable[[Any], int | None] = lambda codec: fits.get(codec.name)  # noqa: E731
    return choose_codec(wish, shape, ctx, longest, before)


@pytest.mark.parametrize(
    ("asked", "fits", "codec", "ctx"),
    [
        ({}, {"f16": 40960, "q8": 40960}, "f16", 40960),
        ({}, {"f16": 30000, "q8": 40960}, "q8", 40960),
        ({}, {"f16": 15000, "q8": 30000, "k8v4": 40960, "q4": 40960}, "q8", 30000),
        ({}, {"f16": 4000, "q8": 8000, "k8v4": 10000, "q4": 15000}, "k8v4", 10000),
        ({}, {"f16": 2000, "q8": 4000, "k8v4": 5000, "q4": 8500}, "q4", 8500),
        ({}, {"f16": 2000, "q8": 4000, "k8v4": 5000, "q4": 7500}, "q4", 7500),
        ({"small": True}, {"f16": 2000, "q8": 4000, "k8v4": 5000, "q4": 8500}, "k8v4", 5000),
        ({}, {"f16": 30000}, "f16", 30000),  # a backend without the others
        ({"ctx": 4096}, {"f16": 5000, "q8": 10000}, "f16", 4096),
        ({"ctx": 8192}, {"f16": 5000, "q8": 10000}, "q8", 8192),
        ({"ctx": 16384}, {"f16": 5000, "q8": 10000, "k8v4": 17000}, "k8v4", 16384),
        ({"wish": "q8"}, {"f16": 5000, "q8": 10000}, "q8", 10000),
        ({"wish": "f32"}, {"f32": 2000, "f16": 4000}, "f32", 2000),
        ({"wish": "q4", "small": True}, {"f16": 5000, "q4": 20000}, "q4", 20000),
    ],
)
def test_the_codec_that_is_chosen(asked: dict[str, Any], fits: dict[str, int], codec: str, ctx: int) -> None:
    choice = choose(fits, **asked)
    assert (choice.codec.name, choice.ctx) == (codec, ctx)
    assert bool(choice.note) == (codec in ("k8v4", "q4") and (asked.get("wish") is None or asked.get("small", False)))


@pytest.mark.parametrize(
    ("before", "asked", "fits", "codec"),
    [
        (CodecTokens("q8", 640), {}, {"f16": 40960, "q8": 40960}, "q8"),
        (CodecTokens("k8v4", 640), {}, {"f16": 40960, "q8": 40960, "k8v4": 40960}, "k8v4"),
        (CodecTokens("f16", 640), {}, {"f16": 9000, "q8": 18000}, "f16"),
        (CodecTokens("f16", 640), {}, {"f16": 8000, "q8": 16000}, "q8"),  # not worth a context that small
        (CodecTokens("f16", 12000), {}, {"f16": 9000, "q8": 18000}, "q8"),  # the chat would not fit
        (CodecTokens("f16", 50000), {}, {"f16": 40960, "q8": 40960}, "f16"),
        (CodecTokens("q8", 640), {"ctx": 4096}, {"f16": 5000, "q8": 10000}, "q8"),
        (CodecTokens("f16", 640), {"ctx": 8192}, {"f16": 5000, "q8": 10000}, "q8"),
        (CodecTokens("f32", 640), {}, {"f32": 40960, "f16": 40960}, "f32"),
        (CodecTokens("q4", 640), {"small": True}, {"f16": 40960, "q4": 40960}, "f16"),  # known to break
        (CodecTokens("q8", 640), {}, {"f16": 40960}, "f16"),  # a backend without it
        (CodecTokens("gone", 640), {}, {"f16": 40960}, "f16"),
        (CodecTokens("q8", 640), {"wish": "f16"}, {"f16": 40960, "q8": 40960}, "f16"),
    ],
)
def test_a_chat_stays_in_its_codec_while_that_holds_enough(
    before: CodecTokens, asked: dict[str, Any], fits: dict[str, int], codec: str
) -> None:
    choice, best = choose(fits, **asked, before=before), choose(fits, **asked)
    assert choice.codec.name == codec
    assert choice.ctx <= fits[codec]
    if "wish" in asked or best.codec.name == before.name:
        assert choice == best
    elif codec == before.name:
        assert choice.note == (
            f"the KV cache is kept as {codec}, as before in this chat;"
            f" --kv {best.codec.name} fits best now, but the chat would have to be recomputed"
        )
    else:
        assert f"{before.name}, as before in this chat, does not fit" in choice.note


@pytest.mark.parametrize(
    ("asked", "fits", "hint"),
    [
        ({"wish": "f16", "ctx": 8192}, {"f16": 4096, "q8": 9000, "k8v4": 11000}, "--kv q8 or --kv k8v4"),
        ({"ctx": 30000}, {"f16": 4096, "q8": 9024}, "--ctx 9024 --kv q8"),
        ({"ctx": 30000, "small": True}, {"f16": 4096, "q8": 9024, "q4": 32000}, "--kv q4 uses it anyway"),
        ({}, {"f16": 0, "q8": 0}, ""),
    ],
)
def test_a_refusal_names_what_would_fit(asked: dict[str, Any], fits: dict[str, int], hint: str) -> None:
    with pytest.raises(DoesNotFitError) as refused:
        choose(fits, **asked)
    assert hint in refused.value.hint
    assert bool(hint) == bool(refused.value.hint)


def test_a_codec_that_the_backend_lacks_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'q8'") as refused:
        choose({"f16": 1000, "f32": 500}, "q8")
    assert "auto, f32, f16" in refused.value.hint


def test_models_that_q4_breaks() -> None:
    assert not q4_objection(config())
    assert "3 billion" in q4_objection(config(4, hidden=512))
    layers = tuple(dataclasses.replace(layer, sinks=True) for layer in config().layers)
    assert "sinks" in q4_objection(dataclasses.replace(config(), layers=layers))
    assert "sinks" in q4_objection(dataclasses.replace(config(), arch="deepseek4"))
