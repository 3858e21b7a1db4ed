"""Whom the evaluation asks: this program, greedily or as users hear it, or llama.cpp with the same file."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.builtin_model import Shape
from tools.builtin_tokenizer import Message, render

MAX_TOKENS = 400
CONTEXT = Shape.max_context
NO_END = " <no end>"
Answer = Callable[[list[Message]], str]


class LlamaCpp:
    """Answer through llama.cpp's C API, as its low-level Python bindings give it."""

    def __init__(self, path: Path) -> None:
        self.api = api = importlib.import_module("llama_cpp.llama_cpp")
        self.log = api.llama_log_callback(lambda level, text, data: None)  # kept: C holds only the address
        api.llama_log_set(self.log, ctypes.c_void_p(0))
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        model_params.use_extra_bufts = (
            False  # repacked weights need AMX, which a virtual machine may only pretend to have
        )
        self.model = api.llama_model_load_from_file(str(path).encode(), model_params)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_threads, params.n_threads_batch = CONTEXT, CONTEXT, 1, 1
        self.context = api.llama_init_from_model(self.model, params)
        self.vocab = api.llama_model_get_vocab(self.model)
        self.vocab_size = api.llama_vocab_n_tokens(self.vocab)

    def tokens(self, text: str) -> list[int]:
        data = text.encode()
        out = (ctypes.c_int32 * (len(data) + 8))()
        return list(out[: self.api.llama_tokenize(self.vocab, data, len(data), out, len(out), False, True)])

    def text(self, ids: list[int]) -> str:
        buffer = ctypes.create_string_buffer(len(ids) * 32 + 64)
        given = (ctypes.c_int32 * len(ids))(*ids)
        n = self.api.llama_detokenize(self.vocab, given, len(ids), buffer, len(buffer), False, False)
        return buffer.raw[:n].decode(errors="replace")

    def next_token(self, ids: list[int]) -> int:
        given = (ctypes.c_int32 * len(ids))(*ids)
        if self.api.llama_decode(self.context, self.api.llama_batch_get_one(given, len(ids))):
            raise RuntimeError("llama.cpp could not decode")
        logits = self.api.llama_get_logits_ith(self.context, -1)
        return max(range(self.vocab_size), key=logits.__getitem__)

    def __call__(self, messages: list[Message]) -> str:
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)
        said: list[int] = []
        token = self.next_token(self.tokens(render(messages, add_generation_prompt=True)))
        while not self.api.llama_vocab_is_eog(self.vocab, token):
            said.append(token)
            if len(said) == MAX_TOKENS:
                return self.text(said) + NO_END
            token = self.next_token([token])
        return self.text(said)


def greedy(path: Path) -> Answer:
    return with_localrun(path, temperature=0.0)


def sampled(path: Path) -> Answer:
    """At the settings that the file itself brings, as users hear it; the seed is fixed."""
    return with_localrun(path, seed=7)


def with_localrun(path: Path, **options: Any) -> Answer:
    from localrun import LLM

    llm = LLM(str(path))

    def reply(messages: list[Message]) -> str:
        turns = [{"role": m.role, "content": m.content} for m in messages]
        done = llm.chat(turns, max_tokens=MAX_TOKENS, **options)
        return done.text if done.stop_reason == "stop" else done.text + NO_END

    return reply


WAYS: dict[str, Callable[[Path], Answer]] = {"greedy": greedy, "sampled": sampled, "llama.cpp": LlamaCpp}
