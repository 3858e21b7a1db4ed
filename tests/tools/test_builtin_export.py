"""The GGUF of the built-in model: as `gguf` reads it, and as the shipped file must be."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from tools.builtin_batches import batches, make_batch
from tools.builtin_data.compose import chats
from tools.builtin_export import gguf_tensors, interleave_rotary, write_gguf
from tools.builtin_model import Decoder, Shape, rotary_table, rotate
from tools.builtin_tokenizer import CHAT_TEMPLATE, CONTROL_TOKENS, train_tokenizer
from tools.train_builtin import PRECISIONS, Plan, Training

SMALL = partial(Shape, n_layers=3, ffn_size=256)  # two layers that begin knowing, and one more
SHIPPED = Path(__file__).parents[2] / "localrun" / "builtin" / "localrun-tiny.gguf"


@pytest.fixture(autouse=True, scope="module")
def little_training() -> Iterator[None]:
    """A small model and few chats, and the loss not compiled: that takes a C++ compiler and a minute."""
    with pytest.MonkeyPatch.context() as patch, torch.compiler.set_stance("force_eager"):
        patch.setattr("tools.builtin_batches.POOL", 60)
        patch.setattr("tools.train_builtin.Shape", SMALL)
        patch.setattr("tools.train_builtin.NEWTON_SCHULZ_STEPS", 1)  # most of a step, where no instruction takes bf16
        yield


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder after two steps of training with a small vocabulary."""
    folder = tmp_path_factory.mktemp("work")
    texts = (m.content for chat in islice(chats(1), 500) for m in chat)
    train_tokenizer(texts, vocab_size=600).save(str(folder / "tokenizer.json"))
    plan = Plan(folder, steps=2, decay_from=1, tokens_per_step=512, seed=1, vocab_size=600)
    training = Training(plan)
    training.run()
    training.export()
    return folder


def field(reader: gguf.GGUFReader, key: str) -> Any:
    found = reader.get_field(key)
    assert found is not None, key
    return found.contents()


def test_written_file_has_the_shapes_of_the_model(work: Path) -> None:
    reader = gguf.GGUFReader(work / "localrun-tiny-Q8_0.gguf")
    shape = SMALL(600)
    tensors = {t.name: tuple(int(n) for n in t.shape) for t in reader.tensors}  # GGUF order: columns first
    assert tensors["token_embd.weight"] == (shape.hidden_size, 600)
    assert tensors["blk.0.attn_k.weight"] == (shape.hidden_size, shape.n_kv_heads * shape.head_dim)
    assert tensors["blk.2.ffn_down.weight"] == (shape.ffn_size, shape.hidden_size)
    assert tensors["output.weight"] == tensors["token_embd.weight"]
    assert len(tensors) == 3 + 9 * shape.n_layers
    types = {t.name: t.tensor_type.name for t in reader.tensors}
    assert {kind for name, kind in types.items() if "norm" in name} == {"F32"}
    assert {kind for name, kind in types.items() if "norm" not in name} == {"Q8_0"}
    assert field(reader, "llama.block_count") == shape.n_layers
    assert field(reader, "tokenizer.chat_template") == CHAT_TEMPLATE


def test_a_resumed_run_ends_as_one_that_never_stopped(work: Path, tmp_path: Path) -> None:
    ends = []
    for stops in ((2,), (1, 2)):
        folder = tmp_path / f"{len(stops)}"
        folder.mkdir()
        shutil.copy(work / "tokenizer.json", folder)
        for steps in stops:
            Training(Plan(folder, steps, decay_from=9, tokens_per_step=512, seed=1, vocab_size=600)).run()
        ends.append(torch.load(folder / "checkpoint.pt"))
    assert [end["step"] for end in ends] == [2, 2]
    for name, weight in ends[0]["model"].items():
        assert torch.equal(weight, ends[1]["model"][name]), name


def test_permuted_rows_rotate_the_same_in_gguf_pairing() -> None:
    """Attention scores are equal: rotating halves with our rows, rotating (2i, 2i+1) pairs with the file's rows."""
    shape = Shape(600)
    torch.manual_seed(0)
    weight, x = torch.randn(shape.hidden_size, 32), torch.randn(5, 32)
    cos, sin = rotary_table(shape)
    ours = rotate((x @ weight.T).view(1, 5, shape.n_heads, -1).transpose(1, 2), cos[:5], sin[:5])
    theirs = x @ torch.from_numpy(interleave_rotary(weight.numpy(), shape.n_heads)).T
    pairs = torch.view_as_complex(theirs.view(5, shape.n_heads, -1, 2).contiguous())
    angles = torch.polar(torch.ones(5, 32), torch.atan2(sin[:5, :32], cos[:5, :32]))
    turned = torch.view_as_real(pairs * angles[:, None]).transpose(0, 1)  # [heads, tokens, 32, 2]
    as_ours = torch.cat([turned[..., 0], turned[..., 1]], dim=-1)
    torch.testing.assert_close(as_ours, ours[0], rtol=1e-4, atol=1e-4)


def test_only_q_and_k_are_permuted() -> None:
    shape = Shape(600)
    state = Decoder(shape).state_dict()
    tensors = gguf_tensors(state, shape)
    assert np.array_equal(tensors["blk.0.attn_v.weight"], state["layers.0.attn_v.weight"].numpy())
    assert not np.array_equal(tensors["blk.0.attn_q.weight"], state["layers.0.attn_q.weight"].numpy())
    assert not np.array_equal(tensors["blk.0.attn_k.weight"], state["layers.0.attn_k.weight"].numpy())


def test_f16_file_holds_the_same_numbers(work: Path) -> None:
    kinds = {name: gguf.GGUFReader(work / f"localrun-tiny-{name}.gguf") for name in ("Q8_0", "F16")}
    for q8, f16 in zip(kinds["Q8_0"].tensors, kinds["F16"].tensors, strict=True):
        a = gguf.quants.dequantize(q8.data, q8.tensor_type)
        b = gguf.quants.dequantize(f16.data, f16.tensor_type)
        assert np.abs(a - b).max() <= np.abs(b).max() / 100 + 1e-5, q8.name


def test_batches_count_only_what_the_model_says() -> None:
    batch = make_batch([([1, 5, 6, 2], [0.0, 0.0, 0.5, 0.5]), ([1, 7, 2], [0.0, 1.0, 1.0])], pad=0)
    assert batch.inputs.shape == (2, 32)
    assert batch.targets.tolist() == [6, 2, 7, 2]
    assert batch.weights.tolist() == [0.5, 0.5, 1.0, 1.0]
    assert batch.positions.tolist() == [1, 2, 32, 33]


def test_batches_are_the_same_for_the_same_seed() -> None:
    tokenizer = train_tokenizer((m.content for chat in islice(chats(1), 300) for m in chat), vocab_size=512)
    first, again = (list(islice(batches(tokenizer, 3, 2048, 1024), 8)) for _ in range(2))
    assert all(torch.equal(one.inputs, other.inputs) for one, other in zip(first, again, strict=True))
    assert all(batch.inputs.shape[1] <= 1024 and batch.inputs.numel() <= 2048 for batch in first)


def test_workers_share_out_a_pool_and_compute_batches_of_like_length_together() -> None:
    tokenizer = train_tokenizer((m.content for chat in islice(chats(1), 300) for m in chat), vocab_size=512)
    one, other = (list(islice(batches(tokenizer, 3, 1024, 1024, rank, 2), 4)) for rank in range(2))
    assert len({str(batch.inputs.tolist()) for batch in one + other}) == 8
    lengths = [sorted((a.inputs.shape[1], b.inputs.shape[1])) for a, b in zip(one, other, strict=True)]
    assert all(max(a[0], b[0]) >= min(a[1], b[1]) for a in lengths for b in lengths if a is not b)  # none overlap


@pytest.mark.parametrize("qtype", PRECISIONS)
def test_writing_twice_gives_the_same_bytes(tmp_path: Path, qtype: str) -> None:
    tokenizer = train_tokenizer((m.content for chat in islice(chats(1), 300) for m in chat), vocab_size=512)
    shape = Shape(tokenizer.get_vocab_size(), n_layers=1)
    state = Decoder(shape).state_dict()
    for name in ("a", "b"):
        write_gguf(tmp_path / name, state, shape, tokenizer, qtype)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_shipped_file() -> None:
    assert SHIPPED.stat().st_size <= 8_000_000
    reader = gguf.GGUFReader(SHIPPED)
    shape = Shape(field(reader, "llama.vocab_size"))
    assert field(reader, "general.architecture") == "llama"
    assert field(reader, "llama.embedding_length") == shape.hidden_size
    assert field(reader, "llama.feed_forward_length") == shape.ffn_size
    assert field(reader, "llama.block_count") == shape.n_layers
    assert field(reader, "llama.attention.head_count") // field(reader, "llama.attention.head_count_kv") >= 2
    assert field(reader, "llama.context_length") == shape.max_context == 2048
    assert shape.hidden_size % 256 == shape.ffn_size % 256 == 0
    assert shape.head_dim == 64
    assert field(reader, "tokenizer.ggml.model") == "gpt2"
    assert field(reader, "tokenizer.chat_template") == CHAT_TEMPLATE
    tokens, types = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.token_type")
    control = {t for t, kind in zip(tokens, types, strict=True) if kind == gguf.TokenType.CONTROL}
    assert control == set(CONTROL_TOKENS)
    assert tokens[field(reader, "tokenizer.ggml.eos_token_id")] == "<|end|>"
    assert tokens[field(reader, "tokenizer.ggml.bos_token_id")] == "<|begin|>"
