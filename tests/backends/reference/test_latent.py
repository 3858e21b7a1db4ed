"""Latent attention on the reference, beside keys and values that are expanded for every head."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from localrun_testing.kv_cases import Blocks, pack, reference_for, run, sizes
from localrun_testing.latent_cases import CASES, LatentCase
from torch import Tensor

from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.rows import RowReferenceOps
from localrun.cache.kinds.latent import Latent
from localrun.ops.instructions import LinearWeight
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS
from localrun.ops.latent import HeadLinear
from localrun.ops.layouts import F32, FILE

SMALL = LatentCase(n_tokens=210, n_heads=2)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
def test_what_is_absorbed_is_attention_over_expanded_heads(case: LatentCase, ops: type[ReferenceOps]) -> None:
    got, rows = run(case, reference_for(case, ops)), case.telling_rows
    assert torch.allclose(got[rows], case.expected(rows), rtol=1e-4, atol=2e-5)


@cache
def in_one_step(codec: str) -> Tensor:
    case = replace(SMALL, codec=codec)
    return run(case, reference_for(case, RowReferenceOps))


@pytest.mark.parametrize("chunks", [[1, 63, 64, 65, 17], [209, 1], [64, 64, 64, 18], [100, *[1] * 30, 80]])
@pytest.mark.parametrize("codec", ["f32", "f16"])
def test_chunks_blocks_and_foreign_bytes_do_not_show(codec: str, chunks: list[int]) -> None:
    case = replace(SMALL, codec=codec)
    got = run(case, reference_for(case, RowReferenceOps), chunks, seed=len(chunks), poison=True)
    assert torch.equal(got, in_one_step(codec))


@pytest.mark.parametrize("codec", ["f32", "f16"])
def test_latents_are_stored_once_and_move_as_bytes_and_as_numbers(codec: str) -> None:
    case = replace(SMALL, codec=codec)
    source = reference_for(case)
    run(case, source)
    expected = Latent(case.rank, case.dims).block_bytes(KV_CODECS[codec], BLOCK_TOKENS)
    assert source.block_bytes(0) == expected
    copied, imported = reference_for(case), reference_for(case)
    for block in range(sizes(case)[0]):
        copied.write_block(0, block, source.read_block(0, block))
        keys, values = source.kv_export(0, block)
        assert keys.codes.shape == (64, 1, case.rank + case.dims)
        assert values.codes.shape == (64, 1, 0)
        imported.kv_import(0, block, keys, values)
        assert copied.read_block(0, block) == imported.read_block(0, block) == source.read_block(0, block)
    assert any(map(any, (source.read_block(0, block) for block in range(sizes(case)[0]))))


def test_blocks_without_keys_of_their_own_read_as_the_first_dims_of_keys() -> None:
    case = replace(SMALL, codec="f32")
    executor = reference_for(case)
    view = Blocks.of(case, executor, *sizes(case), seed=0, poison=False).view(0, 64)
    run(case, executor)
    keys, values = executor.pool.store(0, ring=False).read((view.table[0][0], 0))
    assert torch.equal(values, keys[..., : case.rank])


@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
@pytest.mark.parametrize("layout", [F32, FILE])
def test_heads_have_matrices_of_their_own(ops: type[ReferenceOps], layout: object) -> None:
    """With a scale for each, a bias, and columns in an order of their own; or with a number that scales all."""
    draw = torch.Generator().manual_seed(0)
    x, matrices = torch.randn(5, 3 * 8, generator=draw), torch.randn(3, 16, 8, generator=draw)
    bias, scales = torch.randn(3 * 16, generator=draw), torch.tensor([0.5, 2.0, 3.0])
    order = torch.randperm(8, generator=draw)
    executor = reference_for(SMALL, ops).program.segments[0].interpreter
    packed = pack(matrices.flatten(0, 1), layout)  # type: ignore[arg-type]
    one = [torch.stack([matrices[h] @ row[h] for h in range(3)]) for row in x.unflatten(1, (3, 8))]
    (got,) = executor.head_linear(HeadLinear(x, LinearWeight(packed, scale=0.25), 3))  # type: ignore[attr-defined]
    torch.testing.assert_close(got, 0.25 * torch.stack(one).flatten(1))
    other = [
        torch.stack([scales[h] * (matrices[h] @ row[h][order]) for h in range(3)]) for row in x.unflatten(1, (3, 8))
    ]
    weight = LinearWeight(packed, bias, scales, gather=order)
    (got,) = executor.head_linear(HeadLinear(x, weight, 3))  # type: ignore[attr-defined]
    torch.testing.assert_close(got, torch.stack(other).flatten(1) + bias)
