"""What the native library's arithmetic costs in quality: every quant type, beside the reference and llama.cpp.

    python -m benchmarks.quant_types --folder /tmp/models [--model FILE.gguf] [--text FILE] [--pure] [--chunks 4]

The model, the built-in one unless another is named, is quantised anew to each type by llama.cpp (needs
llama-cpp-python), all its columns counted equally important. All three read the same file and the same ids with an f16
cache. Prints their perplexities, by how much they differ, with the standard error of the chunks' differences, and the
mean KL divergence from the reference (nats), whose activations are not rounded.
"""

import argparse
import ctypes
import math
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine_worker import LlamaCpp, bindings
from benchmarks.kv_quality import chats, machine
from benchmarks.synthetic_models import FILE_TYPES, quantise
from localrun.base.request import BackendName, LoadOptions
from localrun.base.resources import resource
from localrun.diagnose.perplexity import chunks_of, divergence, log_softmax, scored_rows
from localrun.engine.load import LoadedModel, load
from localrun.formats.detect import open_model_file

HEAD = (
    "file type", "matrices of", "native", "reference", "llama.cpp", "native / reference", "native / llama.cpp",
    "reference / llama.cpp", "KLD native", "KLD llama.cpp",
)  # fmt: skip
NATIVE, REFERENCE, LLAMA_CPP = range(3)
BATCH = 512  # tokens that are read at a time


@dataclass
class Scores:
    """Of all three: what each scored token cost, in nats, and how far the others are from the reference."""

    losses: list[np.ndarray] = field(default_factory=list)  # of a chunk, [3, n_tokens]
    divergences: list[np.ndarray] = field(default_factory=list)  # of a chunk, [3, n_tokens]

    def perplexity(self, engine: int) -> float:
        return float(np.exp(np.concatenate(self.losses, axis=1)[engine].mean()))

    def ratio(self, engine: int, other: int) -> str:
        """By how much one perplexity is above the other, and the standard error of that."""
        differences = np.array([losses[engine].mean() - losses[other].mean() for losses in self.losses])
        error = differences.std(ddof=1) / math.sqrt(len(differences))
        return f"{math.expm1(differences.mean()):+.3%} ± {error:.3%}"

    def divergence(self, engine: int) -> float:
        return float(np.concatenate(self.divergences, axis=1)[engine].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the quantised files are made")
    parser.add_argument("--model", type=Path, default=resource("builtin/localrun-tiny.gguf"))
    parser.add_argument("--text", type=Path, help="chats of the kind the built-in model was made for, unless named")
    parser.add_argument("--types", nargs="+", default=list(FILE_TYPES), choices=FILE_TYPES)
    parser.add_argument("--pure", action="store_true", help="one type for all matrices whose rows have whole blocks")
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=4)
    asked = parser.parse_args()
    text = asked.text.read_text("utf-8") if asked.text else chats(100)
    print(f"{asked.model.name}, {asked.chunks} chunks of {asked.ctx}; {machine()}\n")
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for name in asked.types:
        path = asked.folder / f"{asked.model.stem}-{name}.gguf"
        quantise(asked.model, path, name, bindings(), equal_importance(asked.model, bindings()), asked.pure)
        infos = open_model_file(path).tensors.values()
        held = ", ".join(sorted({info.qtype for info in infos if len(info.shape) == 2}))
        print(f"| {name} | {held} | {row(measure(path, text, asked.ctx, asked.chunks))} |", flush=True)


def row(scores: Scores) -> str:
    perplexities = [f"{scores.perplexity(engine):.4f}" for engine in (NATIVE, REFERENCE, LLAMA_CPP)]
    pairs = (NATIVE, REFERENCE), (NATIVE, LLAMA_CPP), (REFERENCE, LLAMA_CPP)
    divergences = [f"{scores.divergence(engine):.5f}" for engine in (NATIVE, LLAMA_CPP)]
    return " | ".join([*perplexities, *(scores.ratio(*pair) for pair in pairs), *divergences])


def measure(path: Path, text: str, ctx: int, n_chunks: int) -> Scores:
    """Of the second half of each chunk, as `localrun perplexity` and llama-perplexity count them."""
    scores = Scores()
    with ExitStack() as stack:
        native, reference = (opened(stack, path, backend, ctx) for backend in ("cpu", "reference"))
        thread = stack.enter_context(ThreadPoolExecutor(1))  # ggml configures the AMX tiles of a thread but once
        llama = LlamaCpp(str(path), native.threads, ctx, 1, flash=True)
        engines = [(model.engine.runner, model.engine.store) for model in (native, reference)]
        for ids in chunks_of(native.text.tokenizer, text, ctx)[:n_chunks]:
            theirs = llama_rows(llama, thread, ids, ctx // 2)
            found = [
                costs(target, (*(logits.row(n) for logits in ours), next(theirs)))
                for targets, ours in scored_rows(engines, ids, ctx // 2, n_rows=BATCH)
                for n, target in enumerate(targets)
            ]
            losses, divergences = np.array(found).transpose(1, 2, 0)
            scores.losses.append(losses)
            scores.divergences.append(divergences)
        llama.close()
    return scores


def opened(stack: ExitStack, path: Path, backend: BackendName, ctx: int) -> LoadedModel:
    model = load(LoadOptions(path, backend=backend, ctx=ctx, kv="f16", disk_cache=0))
    stack.callback(model.engine.close)
    return model


def llama_rows(llama: LlamaCpp, thread: Executor, ids: list[int], first: int) -> Iterator[np.ndarray]:
    """llama.cpp's logits of positions first … len(ids)-2."""
    llama.clear()
    size = llama.lib.llama_vocab_n_tokens(llama.lib.llama_model_get_vocab(llama.model))
    for start in range(0, len(ids), BATCH):
        rows = ids[start : start + BATCH]
        wanted = range(max(first - start, 0), min(len(rows), len(ids) - 1 - start))
        logits = thread.submit(llama.decode, rows, start, 1, wanted).result()
        yield from np.ctypeslib.as_array(logits, (len(wanted), size)) if wanted else ()


def costs(target: int, logits: tuple[np.ndarray, ...]) -> tuple[list[float], list[float]]:
    """Of one token by each engine: -ln p, and the KL divergence from the reference."""
    losses = [-float(log_softmax(each)[target]) for each in logits]
    return losses, [divergence(logits[REFERENCE], each) for each in logits]


def equal_importance(model: Path, llama: Any) -> Any:
    """For the smallest types, which refuse to be made without a word on the importance of columns."""
    matrices = [info for info in open_model_file(model).tensors.values() if len(info.shape) == 2]
    entries = (llama.llama_model_imatrix_data * (len(matrices) + 1))()
    for entry, info in zip(entries, matrices, strict=False):
        entry.name, entry.size = info.name.encode(), info.shape[-1]
        entry.data = (ctypes.c_float * entry.size)(*[1.0] * entry.size)
    return entries


if __name__ == "__main__":
    main()
