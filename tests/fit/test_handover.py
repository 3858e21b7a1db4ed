"""Plans on the GPUs of other engines: bytes by an independent count, the longest context, splits that divide."""

import shlex
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localrun.fit.gpus import Gpus, parse_gpus
from localrun.fit.handover import CONTEXT_STEP, GPU_SHARE, OTHER_BYTES, Checkpoint, gpus_needed, hand_over
from localrun.fit.rates import READ_SHARE
from localrun.fit.serve_lines import sglang_lines, vllm_lines
from localrun.fit.serve_parsers import Parsers, vllm_parsers
from localrun.hub.catalogue import read_catalogue
from localrun.hub.catalogue_shape import catalogue_shape

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
CATALOGUE = {name: shape for name, entry in read_catalogue().items() if (shape := catalogue_shape(entry))}


def checkpoint_of(name: str) -> Checkpoint:
    shape = CATALOGUE[name]
    return Checkpoint(f"org/{name}", shape, 2 * shape.n_params)


LLAMA = checkpoint_of("llama-3.3-70b")


def test_bytes_of_a_gpu_are_those_of_a_count_by_hand() -> None:
    """Llama 3.3 70B: 80 layers, 8 KV heads of 128, two bytes a number; keys and values."""
    plan = hand_over(LLAMA, Gpus(4, 80 * GIB, nodes=2), ctx=8192, chats=3)
    cache = 3 * 8192 * prod((80, 8, 128)) * 2 * 2
    row = plan.rows[0]
    assert (plan.tensor_parallel, plan.pipeline_parallel) == (4, 2)
    assert row.gpu_weight_bytes == 2 * 70_552_387_584 // 8  # parameters of the model's page
    assert row.gpu_kv_bytes == cache // 8
    assert plan.rows[1].gpu_kv_bytes == cache // 16
    assert row.gpu_total_bytes == row.gpu_weight_bytes + row.gpu_kv_bytes + OTHER_BYTES


def test_kv_heads_are_copied_where_there_are_more_gpus() -> None:
    on_8, on_16 = (hand_over(LLAMA, Gpus(n, 80 * GIB), ctx=8192).rows[0] for n in (8, 16))
    assert on_16.gpu_kv_bytes == on_8.gpu_kv_bytes
    assert on_16.gpu_weight_bytes * 2 == on_8.gpu_weight_bytes


@given(
    st.sampled_from(sorted(CATALOGUE)),
    st.integers(1, 16),
    st.integers(1, 4),
    st.integers(8, 200),
    st.integers(1, 64),
    st.one_of(st.none(), st.integers(1, 4096)),
)
def test_every_plan_divides_and_takes_the_longest_context(
    name: str, each: int, nodes: int, gib: int, chats: int, ctx: int | None
) -> None:
    checkpoint = checkpoint_of(name)
    plan = hand_over(checkpoint, Gpus(each, gib * GIB, nodes), ctx, chats)
    config = checkpoint.shape.config
    assert all(spec.n_heads % plan.tensor_parallel == 0 for spec in config.layers if spec.kind in ("full", "window"))
    assert each % plan.tensor_parallel == 0
    assert plan.tensor_parallel * plan.pipeline_parallel <= each * nodes
    assert plan.chosen is None or plan.chosen.fits
    assert (plan.chosen is None) == (not any(row.fits for row in plan.rows))
    for row in plan.rows:
        assert row.fits == (
            row.gpu_total_bytes <= int(gib * GIB * GPU_SHARE) and row.max_ctx > 0 and row.ctx <= row.max_ctx
        )
        if row.max_ctx and row.max_ctx < config.max_context:
            more = hand_over(checkpoint, plan.gpus, row.max_ctx + CONTEXT_STEP, chats)
            assert not next(one for one in more.rows if one.kv_cache_dtype == row.kv_cache_dtype).fits
    assert bool(vllm_lines(plan)) == (plan.chosen is not None)


def test_fp8_is_taken_where_16_bits_leave_too_little() -> None:
    tight = Gpus(2, int(75.5 * GIB))
    short, long = hand_over(LLAMA, tight).rows
    assert 0 < short.max_ctx < 8192 <= long.max_ctx
    assert hand_over(LLAMA, tight).chosen == long
    assert hand_over(LLAMA, tight, ctx=1024).chosen is not None
    assert hand_over(LLAMA, tight, ctx=1024).chosen.kv_cache_dtype == "auto"  # type: ignore[union-attr]


@pytest.mark.parametrize(("gib", "enough"), [(80, (2, 1)), (24, (8, 1)), (48, (4, 1)), (8, (8, 4)), (3, None)])
def test_the_fewest_gpus_that_have_room(gib: int, enough: tuple[int, int] | None) -> None:
    found = gpus_needed(LLAMA, gib * GIB, 8192)
    assert (found and (found.each, found.nodes)) == enough


def test_speed_is_told_for_known_gpus_only() -> None:
    assert hand_over(LLAMA, parse_gpus("4x80GiB"), 8192).rows[0].est_decode_tps is None
    h100 = parse_gpus("4xH100")
    row = hand_over(LLAMA, h100, 8192).rows[0]
    read = LLAMA.shape.active_params * 2 + 8192 * prod((80, 8, 128)) * 4
    assert row.est_decode_tps == pytest.approx(4 * h100.read_bytes * READ_SHARE / read, rel=0.01)
    one = hand_over(LLAMA, replace(h100, nodes=2), 8192).rows[0]
    assert one.est_decode_tps == row.est_decode_tps, "stages of layers follow each other"


def test_each_machine_has_its_line() -> None:
    plan = hand_over(LLAMA, Gpus(4, 80 * GIB, nodes=3), ctx=8192)
    lines = vllm_lines(plan)
    assert [f"--node-rank {rank} " in line for rank, line in enumerate(lines)] == [True] * 3
    assert ["--headless" in line for line in lines] == [False, True, True]
    assert all("--pipeline-parallel-size 3" in line and "--max-model-len 8192" in line for line in lines)
    assert len(sglang_lines(plan)) == 3
    (alone,) = vllm_lines(hand_over(LLAMA, Gpus(4, 80 * GIB), ctx=8192))
    assert "--nnodes" not in alone
    assert "pipeline" not in alone


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("4x80GiB", Gpus(4, 80 * GIB)),
        (" 8 × 24 gb ", Gpus(8, 24 * GIB)),
        ("48G", Gpus(1, 48 * GIB)),
        ("2*h100", parse_gpus("2xH100")),
    ],
)
def test_gpus_as_people_type_them(text: str, gpus: Gpus) -> None:
    assert parse_gpus(text) == gpus


@pytest.mark.parametrize(
    "text", ["", "x", "0x80GiB", "65x80GiB", "4x", "4x0GiB", "-1x80GiB", "4xH999", "4x80TiB", "9" * 9999]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"GPUs|such as"):
        parse_gpus(text)


@pytest.mark.parametrize(
    ("repo", "parsers"),
    [
        ("Qwen/Qwen3-8B", Parsers("hermes", "qwen3")),
        ("Qwen/Qwen3-4B-Instruct-2507", Parsers("hermes")),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", Parsers("qwen3_coder")),
        ("Qwen/Qwen3.5-4B", Parsers("qwen3_coder", "qwen3")),
        ("openai/gpt-oss-20b", Parsers("openai", "openai_gptoss")),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", Parsers("", "deepseek_r1")),
        ("meta-llama/Llama-3.3-70B-Instruct", Parsers("llama3_json")),
        ("google/gemma-3-12b-it", Parsers()),
    ],
)
def test_parsers_of_a_family_are_found_by_the_name_of_its_repository(repo: str, parsers: Parsers) -> None:
    assert vllm_parsers(repo) == parsers
    line = vllm_lines(hand_over(replace(LLAMA, repo=repo), Gpus(4, 80 * GIB)))[0]
    assert ("--enable-auto-tool-choice" in line) == bool(parsers.tools)
    assert (f"--reasoning-parser {parsers.reasoning}" in line) == bool(parsers.reasoning)


def test_the_page_and_its_files_start_vllm_with_these_lines() -> None:
    page = (ROOT / "docs/cluster.md").read_text()
    llama = replace(LLAMA, repo="meta-llama/Llama-3.3-70B-Instruct")
    one, several = (vllm_lines(hand_over(llama, Gpus(4, 80 * GIB, nodes))) for nodes in (1, 2))
    assert all(f"\n{line}\n" in page for line in (*one, *several))
    for file, line in (("vllm.yaml", one[0]), ("vllm-node.yaml", several[0])):
        words = (ROOT / "docs/compose" / file).read_text().replace("=", " ").replace("- ", " ").split()
        assert [word for word in shlex.split(line)[2:] if word not in words and word not in ("0", "HEAD")] == []
