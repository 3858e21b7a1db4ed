"""What clang says of the kernels of attention and of logits, in every codec."""

import pytest
from localrun_testing.metal_lint import clang, lint

from localrun.backends.gpu.logits import PARTS
from localrun.backends.metal.source import text_of
from localrun.ops.kv import KV_CODECS, KVCodec

pytestmark = pytest.mark.skipif(clang() is None, reason="the lint needs clang++ 16 or later")


@pytest.mark.parametrize("codec", KV_CODECS.values(), ids=lambda codec: codec.name)
@pytest.mark.parametrize("head_dim", [80, pytest.param(128, marks=pytest.mark.slow), 512])
@pytest.mark.parametrize("file", ["attention.metal", "attention_tiles.metal", "rope_append.metal"])
def test_kernels_of_a_cache(file: str, head_dim: int, codec: KVCodec) -> None:
    named = {"KEY_BITS": codec.k_bits, "VALUE_BITS": codec.v_bits, "ROTATES": int(codec.rotates)}
    assert lint(text_of(file, {"DIM": head_dim, **named}, {})) == ""


def test_logits() -> None:
    assert lint(text_of("logits.metal", {"PART": PARTS[-1]}, {})) == ""
