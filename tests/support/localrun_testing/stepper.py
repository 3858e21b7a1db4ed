"""The model under test, one step at a time: logits of every position, however the text is cut into steps."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.library import load_library
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.reference.ops import ReferenceOps
from localrun.engine.images import PromptImages
from localrun.engine.runner import RowSpan, Runner, cache_layers
from localrun.formats.adapters.detect import open_adapter
from localrun.formats.gguf import open_gguf
from localrun.formats.safetensors import open_safetensors
from localrun.model.adapters import match
from localrun.model.archs import arch_of
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.model.headers import read_config
from localrun.model.load import load_model
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun.ops.layouts import FILE, Layout
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.small_model import CPU, reference_executor


class RunnerStepper:
    """Texts on a runner with `n_blocks` in every group of its cache, handed out in a scattered order."""

    n_bulk = 0  # tokens of a text that are read in bulk
    images: PromptImages | None = None  # of the text
    has_rings = False  # 16-bit blocks beside codes
    given: torch.Tensor | None = None  # f32 [n_tokens, hidden] that the model reads beside the text

    def __init__(self, runner: Runner, n_blocks: int) -> None:
        self.runner = runner
        self.blocks = random.Random(n_blocks).sample(range(n_blocks), n_blocks)

    def logits(self, ids: Sequence[int], chunks: Sequence[int] | None = None) -> torch.Tensor:
        """fp32 logits [n_tokens, vocab_size], computed in steps of `chunks` tokens each (default: one step)."""
        rows, start = [], 0
        for size in chunks or [len(ids)]:
            rows.append(self.step(ids[start : start + size], start))
            start += size
        assert start == len(ids)
        return torch.cat(rows)

    def hidden(self, ids: Sequence[int], chunks: Sequence[int]) -> torch.Tensor:
        """fp32 rows after the last norm, [n_tokens, hidden], likewise."""
        rows, start = [], 0
        for size in chunks:
            self.step(ids[start : start + size], start)
            found = self.runner.executor.hidden(size)
            assert found is not None
            rows.append(torch.from_numpy(found.copy()))
            start += size
        return torch.cat(rows)

    def step(self, ids: Sequence[int], start: int) -> torch.Tensor:
        """Logits of `ids` at positions start … , given all earlier positions already computed."""
        end = start + len(ids)
        tables = [(block,) * len(self.runner.groups) for block in self.blocks[: -(-end // BLOCK_TOKENS)]]
        state = (tables[(start - 1) // BLOCK_TOKENS][0] if start else -1,) * len(self.runner.groups)
        view = replace(sequence_input(tables, end, len(self.runner.groups)), state=state, n_bulk=self.n_bulk)
        view = replace(view, ring=view.table if self.has_rings else ())
        given = None if self.given is None else self.given[start:end].numpy()
        found = self.runner.compute([RowSpan(ids, start, self.images)], [view], range(len(ids)), given=given)
        return torch.as_tensor(found.rows).clone()


class Stepper(RunnerStepper):
    """One model file.

    On the reference backend with weights in `layout` on `device`, or with `native_threads` on the CPU library.
    """

    def __init__(
        self,
        path: Path,
        ctx: int = 256,
        codec: str = "f32",
        layout: Layout = FILE,
        ops: type[ReferenceOps] = ReferenceOps,
        change: Callable[[ModelConfig], ModelConfig] = lambda config: config,
        native_threads: int = 0,
        device: torch.device = CPU,
        adapters: Sequence[tuple[Path, float]] = (),
    ) -> None:
        source = open_safetensors(path) if path.is_dir() else open_gguf(path)
        self.config = change(read_config(source).for_context(ctx))
        n_blocks = -(-ctx // BLOCK_TOKENS) + 3
        if native_threads:
            library = load_library()
            assert library is not None
            layout = CpuLayout(calls_of(library), native_threads)
        opened = [match(open_adapter(file), scale, arch_of(source), self.config) for file, scale in adapters]
        self.model = load_model(source, layout, device, self.config, adapters=opened)
        runner = Runner(
            self.config,
            native_executor(self.model, layout, n_blocks, codec, ctx)
            if isinstance(layout, CpuLayout)
            else reference_executor(self.model, n_blocks, codec, ops, device),
        )
        super().__init__(runner, n_blocks)
        self.has_rings = not KV_CODECS[codec].native


def native_executor(model: Model, layout: CpuLayout, n_blocks: int, codec: str, ctx: int) -> CpuExecutor:
    layers = cache_layers(model.config)
    plan, n_groups = KVPlan.uniform(KV_CODECS[codec], len(layers)), 1 + max(layer.group for layer in layers)
    counts = [n_blocks] * n_groups
    return CpuExecutor(layout, ExecutorRequest.of(model.forward, CachePlan(layers, plan, counts, counts)), ctx)


def chunks_across_a_block(n: int) -> list[int]:
    """Chunks of `n` tokens: one by one at the beginning and across the end of the first block, the others together.

    Four rows fill what a short convolution remembers; two on each side of the border read and write both blocks.
    """
    return [1] * 4 + [BLOCK_TOKENS - 6] + [1] * 4 + [n - BLOCK_TOKENS - 2]


def random_chunks(n_tokens: int, seed: int) -> list[int]:
    """Chunk sizes between 1 and 40 that add up to `n_tokens`."""
    generator = random.Random(seed)
    chunks: list[int] = []
    while (left := n_tokens - sum(chunks)) > 0:
        chunks.append(min(left, generator.choice((1, 2, 3, 7, 16, 17, 31, 40))))
    return chunks


def random_chunks_of_blocks(n_tokens: int, seed: int) -> list[int]:
    """Likewise, one of which ends where the first block does."""
    return random_chunks(BLOCK_TOKENS, seed) + random_chunks(n_tokens - BLOCK_TOKENS, seed)
