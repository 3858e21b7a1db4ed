"""llama.cpp as one reader of chats: one sequence, of which the longest common beginning is kept, as its examples do.

Its server knows more: it can keep states of several prompts in main memory. That is not played here.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine_worker import bindings

CHUNK = 512


@dataclass(frozen=True)
class PeerTurn:
    """What one request took."""

    computed: int  # tokens of the prompt
    ttft_ms: float


class LlamaChat:
    """A model in llama.cpp with an f16 cache. Raises ImportError or OSError where it is not there."""

    def __init__(self, path: Path, ctx: int, threads: int) -> None:
        self.lib = lib = llama()
        settings = lib.llama_model_default_params()
        settings.n_gpu_layers = 0
        settings.use_extra_bufts = False  # its AMX path crashes on vocabularies that are not a multiple of 16
        self.model = lib.llama_model_load_from_file(str(path).encode(), settings)
        if not self.model:
            raise OSError(f"llama.cpp could not load {path}")
        context = lib.llama_context_default_params()
        context.n_ctx, context.n_batch, context.n_ubatch = ctx + CHUNK, CHUNK, CHUNK
        context.n_threads = context.n_threads_batch = threads
        context.swa_full = False
        self.context = lib.llama_init_from_model(self.model, context)
        if not self.context:
            raise OSError(f"llama.cpp could not make a context for {path}")
        self.memory = lib.llama_get_memory(self.context)
        self.window: int = lib.llama_model_n_swa(self.model)
        self.held: list[int] = []

    def turn(self, prompt: Sequence[int], answer: Sequence[int]) -> PeerTurn:
        """Read a prompt and say an answer that was decided elsewhere."""
        started = time.perf_counter()
        keep = self._cut_to(self._common(prompt))
        for start in range(keep, len(prompt), CHUNK):
            self._decode(prompt[start : start + CHUNK], start)
        self.lib.llama_get_logits(self.context)
        ttft = time.perf_counter() - started
        for offset, token in enumerate(answer[:-1]):
            self._decode([token], len(prompt) + offset)
        self.held = [*prompt, *answer[:-1]]
        return PeerTurn(len(prompt) - keep, 1000 * ttft)

    def play(self, turns: Iterable[tuple[Sequence[int], Sequence[int]]]) -> list[PeerTurn]:
        """A conversation of prompts and answers, in an empty context."""
        self._cut_to(0)
        return [self.turn(prompt, answer) for prompt, answer in turns]

    def close(self) -> None:
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)

    def _common(self, prompt: Sequence[int]) -> int:
        """How much of what is held the prompt begins with; its last token is always computed."""
        same = next((i for i, (a, b) in enumerate(zip(self.held, prompt, strict=False)) if a != b), None)
        return min(len(self.held) if same is None else same, len(prompt) - 1)

    def _cut_to(self, n_tokens: int) -> int:
        """Forget what comes after; all of it where a window that is needed then has moved on."""
        oldest = self.lib.llama_memory_seq_pos_min(self.memory, 0)
        lost = self.window > 0 and oldest > max(0, n_tokens - self.window)
        if n_tokens == 0 or lost or not self.lib.llama_memory_seq_rm(self.memory, 0, n_tokens, -1):
            self.lib.llama_memory_clear(self.memory, False)
            return 0
        return n_tokens

    def _decode(self, ids: Sequence[int], first: int) -> None:
        batch: Any = self.lib.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.logits[i] = token, first + i, i == len(ids) - 1
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
        failed = self.lib.llama_decode(self.context, batch)
        self.lib.llama_batch_free(batch)
        if failed:
            raise RuntimeError("llama.cpp could not decode")


def llama() -> Any:
    """The bindings. Raises ImportError or OSError where they or the library are missing."""
    try:
        return bindings()
    except (RuntimeError, FileNotFoundError) as error:
        raise OSError(str(error)) from error
