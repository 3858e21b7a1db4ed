"""One engine in a process of its own, for side_by_side.py: a JSON request a line in, a JSON answer a line out.

    python -m benchmarks.engine_worker localrun|llama.cpp|ik_llama.cpp|openvino

{"open": {"path", "threads", "ctx", "batch", "flash"}} -> {"seconds", "rss"}
{"measure": {"kind": "prefill"|"decode", "n", "depth", "batch"}} -> {"seconds", "rss"}
{"limit": {the same, and those of Limits}} -> {"rate"}, tokens a second; of localrun only
"""

import argparse
import ctypes
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def ids_at(first: int, end: int) -> list[int]:
    return [1 + position % 97 for position in range(first, end)]


class Localrun:
    """Our engine, driven step by step below its scheduler, as the peer is below its own."""

    def __init__(self, path: str, threads: int, ctx: int, batch: int, flash: bool, kv: Any = "f16") -> None:
        from localrun.base.request import LoadOptions
        from localrun.engine.load import load

        self.model = load(LoadOptions(Path(path), threads=threads, ctx=ctx * batch, kv=kv))
        self.filled: set[tuple[int, int]] = set()

    def measure(self, kind: str, n: int, depth: int, batch: int) -> float:
        from localrun.diagnose.bench import BenchCase, run_case

        case = BenchCase(kind, n, depth, batch)
        fill = (depth, batch) not in self.filled  # once: speed does not depend on what was computed
        self.filled.add((depth, batch))
        return run_case(self.model.engine, case, fill)

    def limit(self, kind: str, n: int, depth: int, batch: int, **limits: float) -> float:
        """The rate if only reading memory took time, or only multiplying."""
        from localrun.backends.limits import Limits
        from localrun.diagnose.bench import BenchCase, best_rate

        return best_rate(self.model, BenchCase(kind, n, depth, batch), Limits(**limits))


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
            self.clear()
            self.feed(0, depth, max(1, 512 // batch), batch)
            self.filled = depth
        for sequence in range(batch):
            self.cut(sequence, depth)
        started = time.perf_counter()
        self.feed(depth, depth + n, 1 if kind == "decode" else max(1, 512 // batch), batch)
        return time.perf_counter() - started

    def feed(self, start: int, stop: int, chunk: int, n_sequences: int) -> None:
        for first in range(start, stop, chunk):
            self.step(ids_at(first, min(first + chunk, stop)), first, n_sequences)

    def clear(self) -> None:
        self.lib.llama_memory_clear(self.memory, False)

    def cut(self, sequence: int, length: int) -> None:
        self.lib.llama_memory_seq_rm(self.memory, sequence, length, -1)

    def step(self, ids: list[int], first: int, n_sequences: int) -> None:
        """The same ids at `first` … of every sequence, the logits of the last one."""
        self.decode(ids, first, n_sequences, range(len(ids) - 1, len(ids)))

    def decode(self, ids: list[int], first: int, n_sequences: int, wanted: range) -> Any:
        """The address of the logits of the `wanted` ids of each sequence."""
        batch = self.lib.llama_batch_init(len(ids) * n_sequences, 0, 1)
        batch.n_tokens = len(ids) * n_sequences
        for index in range(batch.n_tokens):
            sequence, row = divmod(index, len(ids))
            batch.pos[index], batch.token[index] = first + row, ids[row]
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, sequence
            batch.logits[index] = row in wanted
        if self.lib.llama_decode(self.context, batch):
            raise SystemExit("llama.cpp could not decode")
        self.lib.llama_batch_free(batch)
        return self.lib.llama_get_logits(self.context)

    def close(self) -> None:
        self.lib.llama_free(self.context)
        self.lib.llama_model_free(self.model)


class IkLlamaCpp(LlamaCpp):
    """ik_llama.cpp through the `library` that build_peers.py makes of ik_peer.c."""

    def __init__(
        self, library: str, path: str, threads: int, ctx: int, batch: int, flash: bool, repack: bool = False
    ) -> None:
        self.lib = ctypes.CDLL(library)
        self.lib.ik_open.restype = ctypes.c_void_p
        opened = self.lib.ik_open(path.encode(), threads, (ctx + 64) * batch, batch, flash, repack)
        if not opened:
            raise SystemExit(f"ik_llama.cpp could not load {path}")
        self.peer = ctypes.c_void_p(opened)
        self.filled = 0

    def clear(self) -> None:
        self.lib.ik_clear(self.peer)

    def cut(self, sequence: int, length: int) -> None:
        self.lib.ik_cut(self.peer, sequence, length)

    def step(self, ids: list[int], first: int, n_sequences: int) -> None:
        self.lib.ik_step.restype = ctypes.c_bool
        if not self.lib.ik_step(self.peer, (ctypes.c_int * len(ids))(*ids), len(ids), first, n_sequences):
            raise SystemExit("ik_llama.cpp could not decode")


class OpenVino:
    """OpenVINO GenAI, which reads the same GGUF file and rewrites its weights as it loads; one sequence at a time."""

    def __init__(self, path: str, threads: int, ctx: int, batch: int) -> None:
        import openvino_genai

        self.pipeline = openvino_genai.LLMPipeline(path, "CPU", INFERENCE_NUM_THREADS=threads)
        self.asked = 0

    def measure(self, kind: str, n: int, depth: int, batch: int) -> float:
        """The pipeline's own time of the first token, or of the `n` after it. No prompt is like the one before."""
        import numpy as np
        import openvino

        if batch > 1 or (kind == "prefill" and depth):
            raise SystemExit("OpenVINO GenAI is measured without depth before a prompt, and without a batch")
        self.asked += 1
        length, generated = (n, 1) if kind == "prefill" else (max(1, depth), n + 1)
        ids = np.array([[1 + (self.asked + position) % 97 for position in range(length)]], np.int64)
        done = self.pipeline.generate(
            openvino.Tensor(ids), max_new_tokens=generated, ignore_eos=True, do_sample=False, apply_chat_template=False
        ).perf_metrics
        milliseconds = done.get_ttft().mean if kind == "prefill" else n * done.get_tpot().mean
        return milliseconds / 1000


def bindings() -> Any:
    """llama_cpp.llama_cpp, silent."""
    lib: Any = importlib.import_module("llama_cpp.llama_cpp")
    lib.llama_backend_init()
    bindings.silence = lib.llama_log_callback(lambda level, text, data: None)  # type: ignore[attr-defined]
    lib.llama_log_set(bindings.silence, ctypes.c_void_p(0))  # type: ignore[attr-defined]
    return lib


def main() -> None:
    import psutil

    engines: dict[str, Any] = {
        "localrun": Localrun, "llama.cpp": LlamaCpp, "ik_llama.cpp": IkLlamaCpp, "openvino": OpenVino
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=engines)
    engine = engines[parser.parse_args().engine]
    worker: Any = None
    for line in sys.stdin:
        ((command, values),) = json.loads(line).items()
        if command == "open":
            started = time.perf_counter()
            worker = engine(**values)
            answer = {"seconds": time.perf_counter() - started, "rss": psutil.Process().memory_info().rss}
        elif command == "limit":
            answer = {"rate": worker.limit(**values)}
        else:
            answer = {"seconds": worker.measure(**values), "rss": psutil.Process().memory_info().rss}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
