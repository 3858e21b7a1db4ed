"""What rounding activations costs in quality: schemes of it simulated in torch, the native library and llama.cpp.

    [LOCALRUN_ISA=avx2] python -m benchmarks.activation_rounding MODEL.gguf --text FILE [--ctx 512] [--chunks 4]
                                                                 [--schemes int8/32 …] [--llama]

Each against the reference on the same file, whose activations are not rounded at all: by how much the perplexity
changes, the mean KL divergence over the whole vocabulary (nats) and the share of equal first choices. Keys and values
are f16 everywhere. `--llama` needs llama-cpp-python.

A scheme is a format and the columns that share a scale: int8/32 rounds to the nearest of max|x| / 127, q8_0/32 and
q8_k/256 as llama.cpp does, int16/row has one scale a row; bf16 has none. int8:8/32 has a factor of 1 to 15 for each
8 columns. int8+4/32 gives the four neighbours with the largest value of a group 16 bits and the others the scale
that suits them; int8+4>8/32 only where the square of the largest value, less that of the largest of the others, is 8
times the square of what is usual: the row's mean of groups' largest values, none taken for more than their mean. For
these it is also said in how many groups that is so, and how many of them are the same for the token before. int8+1/32
keeps the largest as it is; int8~/32 takes, of several scales, the one with the least square error; int8x2/32 rounds
what int8/32 left over once more.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.engine_worker import bindings
from benchmarks.kv_quality import machine
from localrun.backends.reference.ops import ReferenceOps
from localrun.base.request import LoadOptions
from localrun.diagnose.perplexity import chunks_of, divergence, log_softmax, scored_rows
from localrun.engine.load import load
from localrun.ops.layouts import Packed

Rounding = Callable[[Tensor], Tensor]
SCHEMES = (
    "q8_0/32", "q8_k/256", "int8/32", "int8/16", "int8/8", "int8:16/32", "int8:8/32", "int8:4/32", "int8+4/32",
    "int8+4>4/32", "int8+4>8/32", "int8+4>16/32", "int12/256", "int16/row", "bf16",
)  # fmt: skip


@dataclass
class Outliers:
    """Of a scheme: how many groups were rounded, have an outlier, and have the one that the token before has."""

    groups: int = 0
    kept: int = 0
    again: int = 0

    def count(self, kept: Tensor) -> None:
        """Bool [tokens, groups, words]."""
        self.groups += kept[..., 0].numel()
        self.kept += int(kept.sum())
        self.again += int((kept[1:] & kept[:-1]).sum())

    def clear(self) -> None:
        self.groups = self.kept = self.again = 0

    def __str__(self) -> str:
        return f"{self.kept / self.groups:.1%}, {self.again / self.kept:.0%} of them again" if self.kept else ""


seen = Outliers()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--schemes", nargs="*", default=SCHEMES)
    parser.add_argument("--llama", action="store_true")
    asked = parser.parse_args()
    model = load(LoadOptions(asked.model, backend="reference", ctx=asked.ctx, kv="f16"))
    chunks = chunks_of(model.text.tokenizer, asked.text.read_text("utf-8"), asked.ctx)[: asked.chunks]
    print(f"{asked.model.name}, {len(chunks)} chunks of {asked.ctx}; {machine()}\n")
    expected = [scored_logits(model, ids) for ids in chunks]
    targets = [ids[asked.ctx // 2 + 1 :] for ids in chunks]
    base = nll(expected, targets)
    print(f"reference: perplexity {math.exp(base):.4f}\n")
    print("| activations | perplexity | mean KLD | same top | groups with outliers |\n|---|---|---|---|---|")

    def report(name: str, found: list[np.ndarray]) -> None:
        pairs = [pair for e, f in zip(expected, found, strict=True) for pair in zip(e, f, strict=True)]
        kld = math.fsum(divergence(e, f) for e, f in pairs) / len(pairs)
        same = sum(int(e.argmax() == f.argmax()) for e, f in pairs) / len(pairs)
        perplexity = math.exp(nll(found, targets) - base) - 1
        print(f"| {name} | {perplexity:+.3%} | {kld:.6f} | {same:.2%} | {seen} |", flush=True)

    if asked.llama:
        report("llama.cpp", llama_logits(asked.model, chunks))
    for name in asked.schemes:
        seen.clear()
        with torch.no_grad(), rounded(rounding(name)):
            report(name, [scored_logits(model, ids) for ids in chunks])
    model.engine.close()
    seen.clear()
    native = load(LoadOptions(asked.model, backend="cpu", ctx=asked.ctx, kv="f16"))
    report(native.backend.rounding, [scored_logits(native, ids) for ids in chunks])
    native.engine.close()


def rounding(name: str) -> Rounding:
    if name == "bf16":
        return lambda x: x.bfloat16().float()
    kind, _, size = name.partition("/")
    kind, _, gain = kind.partition(">")

    def grouped(x: Tensor) -> Tensor:
        n = x.shape[-1]
        columns = n if size == "row" else int(size)
        groups = F.pad(x, (0, -n % columns)).unflatten(-1, (-1, columns))
        found = outliers(groups, float(gain)) if gain else KINDS[kind](groups)
        return found.flatten(-2)[..., :n]

    return grouped


def to_levels(groups: Tensor, levels: int, share: float = 1.0) -> Tensor:
    scale = groups.abs().amax(-1, keepdim=True) * share / levels
    return (groups / scale.clamp_min(1e-30)).round().clamp(-levels, levels) * scale


def q8_k(groups: Tensor) -> Tensor:
    at = groups.abs().argmax(-1, keepdim=True)
    scale = groups.gather(-1, at) / -127
    return (groups / scale.where(scale != 0, 1)).round().clamp_max(127) * scale


def q8_0(groups: Tensor) -> Tensor:
    scale = groups.abs().amax(-1, keepdim=True) / 127
    return (groups / scale.clamp_min(1e-30)).round() * scale.half().float()


def least_squares(groups: Tensor) -> Tensor:
    best = to_levels(groups, 127)
    error = (best - groups).square().sum(-1, keepdim=True)
    for share in (0.98, 0.96, 0.93, 0.9, 0.86, 0.8):
        tried = to_levels(groups, 127, share)
        other = (tried - groups).square().sum(-1, keepdim=True)
        best, error = best.where(error <= other, tried), error.minimum(other)
    return best


def largest_kept(groups: Tensor) -> Tensor:
    at = groups.abs().argmax(-1, keepdim=True)
    rest = groups.scatter(-1, at, 0)
    return to_levels(rest, 127).scatter(-1, at, groups.gather(-1, at))


def outliers(groups: Tensor, gain: float = 0) -> Tensor:
    """16 bits for the four neighbours with the largest value, where it pays; [tokens, groups of a row, columns]"""
    words = groups.unflatten(-1, (-1, 4)).abs().amax(-1)
    top, following = words.topk(2).values.split(1, -1)
    usual = top.minimum(top.mean(-2, keepdim=True)).mean(-2, keepdim=True)
    apart = top.square() - following.square() > gain * usual.square()
    seen.count(apart & (words.argmax(-1, keepdim=True) == torch.arange(words.shape[-1])))
    scale = torch.where(apart, (following / 127).maximum(top / (127 * 257)), top / 127).clamp_min(1e-30)
    return (groups / scale).round() * scale


def twice(groups: Tensor) -> Tensor:
    once = to_levels(groups, 127)
    return once + to_levels(groups - once, 127)


def two_level(groups: Tensor, columns: int, levels: int) -> Tensor:
    """int8 codes of `columns`, times a small integer of theirs, times a scale."""
    within = groups.unflatten(-1, (-1, columns))
    largest = within.abs().amax(-1, keepdim=True)
    scale = largest.amax(-2, keepdim=True) / levels
    step = (largest / scale.clamp_min(1e-30)).ceil().clamp(1, levels) * scale / 127
    return ((within / step.clamp_min(1e-30)).round() * step).flatten(-2)


KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "int8": lambda groups: to_levels(groups, 127),
    "int12": lambda groups: to_levels(groups, 2047),
    "int16": lambda groups: to_levels(groups, 32767),
    "int8~": least_squares,
    "int8+1": largest_kept,
    "int8+4": outliers,
    "int8x2": twice,
    "int8:16": lambda groups: two_level(groups, 16, 15),
    "int8:8": lambda groups: two_level(groups, 8, 15),
    "int8:4": lambda groups: two_level(groups, 4, 15),
    "q8_0": q8_0,
    "q8_k": q8_k,
}


class rounded:
    """While it is open the reference's linears read rounded activations."""

    def __init__(self, how: Rounding) -> None:
        self.how = how

    def __enter__(self) -> None:
        self.exact = ReferenceOps.matmul

        def matmul(ops: ReferenceOps, x: Tensor, weight: Packed, bias: Tensor | None = None) -> Tensor:
            return self.exact(ops, self.how(x), weight, bias)

        ReferenceOps.matmul = matmul  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        ReferenceOps.matmul = self.exact  # type: ignore[method-assign]


def scored_logits(model: Any, ids: list[int]) -> np.ndarray:
    """[scored, vocabulary] f32 of a chunk's second half, but for its last."""
    engines = [(model.engine.runner, model.engine.store)]
    return np.concatenate(
        [
            np.stack([logits.row(n) for n in range(len(of_step))]).astype(np.float32)
            for of_step, (logits,) in scored_rows(engines, ids, first=len(ids) // 2)
        ]
    )


def nll(found: list[np.ndarray], targets: list[list[int]]) -> float:
    pairs = [pair for rows, wanted in zip(found, targets, strict=True) for pair in zip(rows, wanted, strict=True)]
    losses = [-float(log_softmax(row)[target]) for row, target in pairs]
    return math.fsum(losses) / len(losses)


def llama_logits(path: Path, chunks: list[list[int]]) -> list[np.ndarray]:
    lib = bindings()
    settings = lib.llama_model_default_params()
    settings.n_gpu_layers = 0
    model = lib.llama_model_load_from_file(str(path).encode(), settings)
    size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    context = lib.llama_context_default_params()
    context.n_ctx = context.n_batch = context.n_ubatch = len(chunks[0])
    context.n_threads = context.n_threads_batch = 2
    context = lib.llama_init_from_model(model, context)
    found = []
    for ids in chunks:
        lib.llama_memory_clear(lib.llama_get_memory(context), True)
        batch = lib.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for index, token in enumerate(ids):
            batch.pos[index], batch.token[index] = index, token
            batch.n_seq_id[index], batch.seq_id[index][0] = 1, 0
            batch.logits[index] = len(ids) // 2 <= index < len(ids) - 1
        if lib.llama_decode(context, batch):
            raise SystemExit("llama.cpp could not decode")
        n_rows = len(ids) - 1 - len(ids) // 2
        rows = np.ctypeslib.as_array(lib.llama_get_logits(context), (n_rows, size)).copy()
        found.append(rows)
        lib.llama_batch_free(batch)
    return found


if __name__ == "__main__":
    main()
