"""llama.cpp as an outside oracle, through the low-level half of its Python bindings.

It is optional: `LOCALRUN_LLAMA_LIB` names the folder that holds libllama, and `llama_cpp` has to be importable.
"""

import ctypes
import importlib
import importlib.util
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from localrun.formats.quant import QUANT_TYPES

_kept_alive: list[Any] = []  # callbacks that C still holds


def require_llama() -> ModuleType:
    """The bindings, or a skip that says what is missing."""
    folder = os.environ.get("LOCALRUN_LLAMA_LIB")
    if not folder:
        pytest.skip("no llama.cpp: neither LOCALRUN_PEERS nor LOCALRUN_LLAMA_LIB is set")
    if "llama_cpp" in sys.modules:
        return sys.modules["llama_cpp.llama_cpp"]
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None:
        pytest.skip("the llama_cpp bindings cannot be imported")
    os.environ["LLAMA_CPP_LIB_PATH"] = folder
    # The package's own __init__ pulls in its server's dependencies, of which the low-level half needs none.
    sys.modules["llama_cpp"] = importlib.util.module_from_spec(spec)
    lib = importlib.import_module("llama_cpp.llama_cpp")
    lib.llama_backend_init()
    silence = lib.llama_log_callback(lambda level, text, data: None)
    lib.llama_log_set(silence, ctypes.c_void_p(0))
    _kept_alive.append(silence)
    return lib


class LlamaPeer:
    """One GGUF in llama.cpp: F32 cache, no flash attention, one thread, so that only arithmetic order differs."""

    def __init__(self, path: Path, n_ctx: int = 256, kv_type: str = "F32") -> None:
        self.lib = require_llama()
        self.n_ctx = n_ctx
        settings = self.lib.llama_model_default_params()
        settings.n_gpu_layers = 0
        settings.use_extra_bufts = False  # its AMX path crashes on vocabularies that are not a multiple of 16
        self.model = self.lib.llama_model_load_from_file(str(path).encode(), settings)
        assert self.model, f"llama.cpp could not load {path}"
        self.vocab = self.lib.llama_model_get_vocab(self.model)
        self.vocab_size: int = self.lib.llama_vocab_n_tokens(self.vocab)
        context = self.lib.llama_context_default_params()
        context.n_ctx = context.n_batch = context.n_ubatch = n_ctx
        context.n_threads = context.n_threads_batch = 1
        context.type_k = context.type_v = getattr(self.lib, f"GGML_TYPE_{kv_type}")
        context.flash_attn_type = self.lib.LLAMA_FLASH_ATTN_TYPE_DISABLED
        context.swa_full = True
        self.context = self.lib.llama_init_from_model(self.model, context)
        assert self.context, f"llama.cpp could not make a context for {path}"

    def close(self) -> None:
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)

    def clear(self) -> None:
        self.lib.llama_memory_clear(self.lib.llama_get_memory(self.context), True)

    def logits(self, ids: Sequence[int]) -> torch.Tensor:
        """fp32 logits [n_tokens, vocab_size] of a whole sequence in an empty context."""
        self.clear()
        return self._decode(ids, first_position=0)

    def greedy(self, ids: Sequence[int], n_tokens: int) -> list[int]:
        """The `n_tokens` most likely ids after `ids`, one at a time."""
        new: list[int] = [int(self.logits(ids)[-1].argmax())]
        while len(new) < n_tokens:
            new.append(int(self._decode(new[-1:], first_position=len(ids) + len(new) - 1)[-1].argmax()))
        return new

    def tokenize(self, text: str, *, add_bos: bool, special: bool = False) -> list[int]:
        raw = text.encode()
        buffer = (ctypes.c_int32 * (len(raw) + 8))()
        count = self.lib.llama_tokenize(self.vocab, raw, len(raw), buffer, len(buffer), add_bos, special)
        assert count >= 0, "llama.cpp wanted a larger buffer"
        return list(buffer[:count])

    def perplexity(self, text: str, n_chunks: int | None = None) -> float:
        """llama-perplexity's figure: chunks of n_ctx tokens, BOS in front of each, the second half scored."""
        add_bos = bool(self.lib.llama_vocab_get_add_bos(self.vocab))
        ids = self.tokenize(text, add_bos=add_bos)
        chunks = [ids[i : i + self.n_ctx] for i in range(0, len(ids) - self.n_ctx + 1, self.n_ctx)][:n_chunks]
        losses = []
        for chunk in chunks:
            if add_bos:
                chunk[0] = self.lib.llama_vocab_bos(self.vocab)
            scored = torch.arange(self.n_ctx // 2, self.n_ctx - 1)
            rows = self.logits(chunk)[scored].double().log_softmax(-1)
            losses.append(-rows.gather(1, torch.tensor(chunk)[scored + 1, None]))
        return math.exp(torch.cat(losses).mean().item())

    def _decode(self, ids: Sequence[int], first_position: int) -> torch.Tensor:
        batch = self.lib.llama_batch_init(len(ids), 0, 1)
        try:
            batch.n_tokens = len(ids)
            for i, token in enumerate(ids):
                batch.token[i], batch.pos[i], batch.logits[i] = token, first_position + i, 1
                batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
            assert self.lib.llama_decode(self.context, batch) == 0, "llama.cpp could not decode"
            pointer = self.lib.llama_get_logits(self.context)
            rows = np.ctypeslib.as_array(pointer, shape=(len(ids), self.vocab_size))
            return torch.from_numpy(rows.copy())
        finally:
            self.lib.llama_batch_free(batch)


@contextmanager
def llama_peer(path: Path, n_ctx: int = 256, kv_type: str = "F32") -> Iterator[LlamaPeer]:
    """A `LlamaPeer` that is freed at the end of the block."""
    peer = LlamaPeer(path, n_ctx, kv_type)
    try:
        yield peer
    finally:
        peer.close()


def encoded(weights: torch.Tensor, qtype: str) -> torch.Tensor:
    """f32 [n, cols] as flat uint8 of a quant type, by ggml's own encoder."""
    require_llama()
    (path,) = Path(os.environ["LOCALRUN_LLAMA_LIB"]).glob("*ggml-base.so")
    encode = ctypes.CDLL(str(path)).ggml_quantize_chunk
    address, count = ctypes.c_void_p, ctypes.c_int64
    encode.argtypes, encode.restype = (ctypes.c_int, address, address, count, count, count, address), ctypes.c_size_t
    weights, out = weights.contiguous(), torch.empty(QUANT_TYPES[qtype].nbytes(weights.shape), dtype=torch.uint8)
    written = encode(QUANT_TYPES[qtype].gguf_id, weights.data_ptr(), out.data_ptr(), 0, *weights.shape, None)
    assert written == out.numel()
    return out


def quantise(source: Path, target: Path, file_type: str) -> Path:
    """Write a GGUF in another file type (`Q4_K_M`, `IQ4_XS`, …) with llama.cpp's own quantiser."""
    lib = require_llama()
    settings = lib.llama_model_quantize_default_params()
    settings.ftype = getattr(lib, f"LLAMA_FTYPE_MOSTLY_{file_type}")
    settings.nthread = 1
    settings.allow_requantize = True
    result = lib.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(settings))
    assert result == 0, f"llama.cpp could not quantise {source} to {file_type}"
    return target
