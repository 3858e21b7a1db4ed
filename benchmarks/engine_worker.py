"""One engine in a process of its own, for vs_llama_cpp.py: a JSON request a line in, a JSON answer a line out.

    python benchmarks/engine_worker.py localrun|llama.cpp

{"open": {"path", "threads", "ctx", "batch", "flash"}} -> {"seconds", "rss"}
{"measure": {"kind": "prefill"|"decode", "n", "depth", "batch"}} -> {"seconds", "rss"}
{"limit": {the same, and those of Limits}} -> {"rate"}, tokens a second; of localrun only
"""

import ctypes
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))


def ids_at(first: int, end: int) -> list[int]:
    return [1 + position % 97 for position in range(first, end)]


class Localrun:
    """Our engine, driven step by step below its scheduler, as the peer is below its own."""

    def __init__(self, path: str, threads: int, ctx: int, batch: int, flash: bool, kv: Any = "f16") -> None:
        from localrun.base.request import LoadOptions
        from localrun.engine.load import load

        self.model = load(LoadOptions(Path(path), threads=threads, ctx=ctx * batch, kv=kv))
        self.filled: tuple[int, int, int] | None = None

    def measure(self, kind: str, n: int, depth: int, batch: int) -> float:
        from localrun.diagnose.bench import Case, run_case

        case = Case(kind, n, depth, batch)
        fill, self.filled = self.filled != (n, depth, batch), (n, depth, batch)
        return run_case(self.model.engine, case, fill)

    def limit(self, kind: str, n: int, depth: int, batch: int, **limits: float) -> float:
        """The rate if only reading memory took time, or only multiplying."""
        from localrun.backends.limits import Limits
        from localrun.diagnose.bench import Case, best_rate

        return best_rate(self.model, Case(kind, n, depth, batch), Limits(**limits))


class LlamaCpp:
    """llama.cpp through its C interface; the context of `depth` tokens is computed once and cut back after a run.

    Without `repack` weights stay in the mapped file, in its own blocks.
    """

    def __init__(
        self, path: str, threads: int, ctx: int, batch: int, flash: bool, kv: str = "f16", repack: bool = True
    ) -> None:
        self.lib = lib = bindings()
        settings = lib.llama_model_default_params()
        settings.n_gpu_layers = 0
        settings.use_extra_bufts = repack
        self.model = lib.llama_model_load_from_file(path.encode(), settings)
        context = lib.llama_context_default_params()
        context.n_ctx, context.n_seq_max = (ctx + 64) * batch, batch
        context.n_batch = context.n_ubatch = 512
        context.n_threads = context.n_threads_batch = threads
        context.flash_attn_type = int(flash)
        kinds = {"f16": 1, "q8": 8, "q4": 2}
        context.type_k = context.type_v = kinds[kv]
        self.context = lib.llama_init_from_model(self.model, context)
        if not self.model or not self.context:
            raise SystemExit(f"llama.cpp could not load {path}")
        self.memory = lib.llama_get_memory(self.context)
        self.filled = 0

    def measure(self, kind: str, n: int, depth: int, batch: int) -> float:
        if self.filled != depth or depth == 0:
            self.lib.llama_memory_clear(self.memory, False)
            self.feed(0, depth, max(1, 512 // batch), batch)
            self.filled = depth
        for sequence in range(batch):
            self.lib.llama_memory_seq_rm(self.memory, sequence, depth, -1)
        started = time.perf_counter()
        self.feed(depth, depth + n, 1 if kind == "decode" else max(1, 512 // batch), batch)
        return time.perf_counter() - started

    def feed(self, start: int, stop: int, chunk: int, n_sequences: int) -> None:
        for first in range(start, stop, chunk):
            rows = list(enumerate(ids_at(first, min(first + chunk, stop)), first))
            batch = self.lib.llama_batch_init(len(rows) * n_sequences, 0, 1)
            batch.n_tokens = len(rows) * n_sequences
            for index in range(batch.n_tokens):
                sequence, row = divmod(index, len(rows))
                batch.pos[index], batch.token[index] = rows[row]
                batch.n_seq_id[index], batch.seq_id[index][0] = 1, sequence
                batch.logits[index] = row == len(rows) - 1
            if self.lib.llama_decode(self.context, batch):
                raise SystemExit("llama.cpp could not decode")
            self.lib.llama_get_logits(self.context)
            self.lib.llama_batch_free(batch)


def bindings() -> Any:
    """llama_cpp.llama_cpp, silent."""
    lib: Any = importlib.import_module("llama_cpp.llama_cpp")
    lib.llama_backend_init()
    bindings.silence = lib.llama_log_callback(lambda level, text, data: None)  # type: ignore[attr-defined]
    lib.llama_log_set(bindings.silence, ctypes.c_void_p(0))  # type: ignore[attr-defined]
    return lib


def main() -> None:
    import psutil

    engines: dict[str, Any] = {"localrun": Localrun, "llama.cpp": LlamaCpp}
    worker: Any = None
    for line in sys.stdin:
        ((command, values),) = json.loads(line).items()
        if command == "open":
            started = time.perf_counter()
            worker = engines[sys.argv[1]](**values)
            answer = {"seconds": time.perf_counter() - started, "rss": psutil.Process().memory_info().rss}
        elif command == "limit":
            answer = {"rate": worker.limit(**values)}
        else:
            answer = {"seconds": worker.measure(**values), "rss": psutil.Process().memory_info().rss}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
