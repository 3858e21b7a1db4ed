"""Whole models of real shapes on a GPU, with random weights that are made there: speed depends on shapes and types."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.executor import GpuExecutor
from localrun.backends.gpu.layouts import GpuLayout, tiles_of
from localrun.backends.gpu.tiles import CodeTiles
from localrun.backends.gpu.translator import Translator
from localrun.backends.gpu.weight_layouts import ScaleForm
from localrun.cache.bulk import bulk_tokens
from localrun.engine.runner import Runner, cache_layers
from localrun.model.config import LayerSpec, Mixture, ModelConfig, RecurrentMixer, RopeSpec
from localrun.model.decoder import Model
from localrun.model.delta_net import DeltaNet
from localrun.model.layer_weights import AttentionWeights, LayerWeights, MixerWeights, ModelWeights
from localrun.ops.instructions import LinearWeight
from localrun.ops.interface import SequenceInput
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun.ops.largest_step import max_rows
from localrun.ops.layouts import Packed
from localrun.ops.types import Routing

SIDE_BY_SIDE = 8  # texts that are answered at once
SCALE = 0.005  # of random codes: activations stay in range


@dataclass(frozen=True, slots=True)
class Shape:
    """The public shape of a model whose layers see everything, or all but each fourth are recurrent.

    They are mixtures where there are experts.
    """

    name: str
    hidden_size: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_size: int
    n_experts: int = 0
    n_used: int = 0
    mixer: RecurrentMixer | None = None
    types: tuple[str, str, str] = ("Q4_K", "Q4_K", "Q6_K")  # of most matrices, of experts, and of what is kept finer

    def config(self, ctx: int) -> ModelConfig:
        heads = (self.n_heads, self.n_kv_heads, self.head_dim)
        mixture = Mixture(self.n_experts, Routing(self.n_used)) if self.n_experts else None
        spec = LayerSpec("full", None, 0, *heads, self.ffn_size, attn_scale=self.head_dim**-0.5, mixture=mixture)
        layers = [spec] * self.n_layers
        if self.mixer is not None:
            recurrent = replace(spec, kind="recurrent", rope=None, mixer=self.mixer)
            layers = [spec if i % 4 == 3 else recurrent for i in range(self.n_layers)]
        rope = RopeSpec(5e5, self.head_dim)
        return ModelConfig(
            arch="llama",
            hidden_size=self.hidden_size,
            vocab_size=self.vocab_size,
            max_context=ctx,
            rms_eps=1e-5,
            layers=tuple(layers),
            ropes=(rope,),
        )


SHAPES = (
    Shape("8B", 4096, 32, 32, 8, 128, 14_336, 128_256),  # Llama 3.1 8B
    Shape("1B", 2048, 16, 32, 8, 64, 8192, 128_256),  # Llama 3.2 1B
    Shape("14B", 5120, 40, 40, 8, 128, 17_408, 151_936),  # Qwen3 14B
    Shape(
        "4B", 2560, 32, 16, 4, 256, 9216, 248_320, mixer=DeltaNet(16, 32, 128, 128, 4, 1e-6, tiled=True)
    ),  # Qwen3.5 4B
)
MIXTURES = (
    Shape("30B-A3B", 2048, 48, 32, 4, 128, 768, 151_936, n_experts=128, n_used=8),  # Qwen3 30B A3B
    Shape(  # gpt-oss 20B, but for windows and sinks
        *("gpt-oss", 2880, 24, 64, 8, 64, 2880, 201_088), n_experts=32, n_used=4, types=("Q8_0", "MXFP4", "Q8_0")
    ),
)
TINY = Shape("tiny", 256, 2, 4, 2, 64, 256, 320)
TINY_MIXTURE = Shape("tiny mixture", 256, 2, 4, 2, 64, 256, 320, n_experts=8, n_used=2)
TINY_HYBRID = Shape("tiny hybrid", 256, 4, 4, 2, 64, 256, 320, mixer=DeltaNet(2, 4, 32, 64, 4, 1e-6, tiled=True))


def random_matrix(qtype: str, n_rows: int, n_cols: int, device: torch.device) -> Packed:
    """Random codes with scales of one size; what is read is all that a real matrix has."""
    layout, tiles = GpuLayout(), tiles_of(qtype)
    blob = torch.randint(0, 256, (layout.nbytes(qtype, n_rows, n_cols),), dtype=torch.uint8, device=device)
    if isinstance(tiles, CodeTiles):
        regions = tiles.regions(blob, n_rows, n_cols)
        scales = regions[len(tiles.planes)]
        if tiles.scale in (ScaleForm.FP16, ScaleForm.FP16_MIN):
            scales.view(torch.float16).fill_(SCALE)
        else:
            scales.fill_(120 if tiles.scale is ScaleForm.E8M0 else 16)  # 2^-8, or so many times the super-scale
        if tiles.scale.has_supers:
            halves = tiles.scale is ScaleForm.SUPER_MIN
            regions[-1].view(torch.float16 if halves else torch.float32).fill_(SCALE / 16)
    else:
        numbers = blob.view(tiles.dtype)
        numbers.copy_(SCALE * torch.randn(len(numbers), device=device))
    return Packed(layout, qtype, n_rows, n_cols, (blob,))


def random_model(shape: Shape, ctx: int, device: torch.device) -> Model:
    """Usually as Q4_K_M has it: 4 bits, and 6 for the output, and in half of the layers for values and the way down."""
    usual, of_experts, fine = shape.types

    def matrix(qtype: str, n_rows: int, n_cols: int) -> LinearWeight:
        return LinearWeight(random_matrix(qtype, n_rows, n_cols, device))

    def attention(finer: str) -> AttentionWeights:
        hidden, queries, keys = shape.hidden_size, shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
        return AttentionWeights(
            matrix(usual, queries, hidden),
            matrix(usual, keys, hidden),
            matrix(finer, keys, hidden),
            matrix(usual, hidden, queries),
        )

    def mixing(mixer: RecurrentMixer) -> MixerWeights:
        matrices = {name: matrix(usual, *size) for name, size in mixer.matrices(shape.hidden_size).items()}
        vectors = {name: torch.full(size, -0.1, device=device).flatten() for name, size in mixer.vectors().items()}
        return MixerWeights(matrices, vectors)

    def layer(index: int, spec: LayerSpec) -> LayerWeights:
        hidden, qtype = shape.hidden_size, of_experts if shape.n_experts else usual
        finer = fine if index % 2 else usual
        mixes = attention(finer) if spec.mixer is None else mixing(spec.mixer)
        n = shape.n_experts or 1
        network = (
            matrix(qtype, n * shape.ffn_size, hidden),
            matrix(qtype, n * shape.ffn_size, hidden),
            matrix(finer if qtype == usual else qtype, n * hidden, shape.ffn_size),
        )
        router = matrix("F32", n, hidden) if shape.n_experts else None
        norms = [torch.ones(hidden, device=device) for _ in range(2)]
        return LayerWeights(mixes, *network, attn_norm=norms[0], ffn_norm=norms[1], router=router)

    embed, output = (matrix(q, shape.vocab_size, shape.hidden_size) for q in (usual, fine))
    norm = torch.ones(shape.hidden_size, device=device)
    config = shape.config(ctx)
    layers = tuple(layer(index, spec) for index, spec in enumerate(config.layers))
    return Model(config, ModelWeights(embed, layers, norm, output))


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second, and what that is of the bytes and multiply-adds a token takes."""

    decode_tps: float
    read_gbps: float
    prefill_tps: float
    tflops: float
    batch_tps: float  # of SIDE_BY_SIDE texts together


class Text:
    """One text on one model, step by step."""

    def __init__(self, translator: type[Translator], device: Device, shape: Shape, ctx: int, span: int = 0) -> None:
        self.model = random_model(shape, ctx, device.torch_device)
        config, codec = self.model.config, KV_CODECS["f16"]
        codecs = (codec,) * shape.n_layers
        self.n_blocks, self.length = max(-(-ctx // BLOCK_TOKENS), 2 * SIDE_BY_SIDE), 0
        layers = cache_layers(config, codecs)
        is_state = {layer.group: layer.state_size > 0 for layer in layers}
        self.is_state = [is_state[group] for group in range(len(is_state))]
        n_blocks = [2 * SIDE_BY_SIDE if states else self.n_blocks for states in self.is_state]
        kv = KVPlan(tuple(KV_CODECS["f32"] if layer.state_size else codec for layer in layers))
        cache = CachePlan(layers, kv, n_blocks, [0] * len(n_blocks))
        self.executor = GpuExecutor(translator, device, ExecutorRequest.of(self.model.forward, cache), span)
        self.runner = Runner(config, self.executor, codecs)

    def step(self, n_tokens: int) -> None:
        """Read so many tokens, in bulk where that is what the GPU does, and wait for the logits of the last."""
        table, end = tuple(range(-(-(self.length + n_tokens) // BLOCK_TOKENS))), self.length + n_tokens
        n_bulk = bulk_tokens(end + 1, self.runner.bulk_span) if n_tokens > 1 else 0
        view = self.view(end, table, 0 if self.length else -1, n_bulk)
        self.runner.compute([([7] * n_tokens, self.length)], [view], [n_tokens - 1])
        self.length += n_tokens

    def view(self, end: int, table: tuple[int, ...], state: int, n_bulk: int = 0) -> SequenceInput:
        """A text in these blocks, with its state in a block of the number of the first, which the step overwrites."""
        tables = tuple((-1,) * (len(table) - 1) + (table[0],) if states else table for states in self.is_state)
        return SequenceInput(end, tables, (0,) * len(tables), state=(state,) * len(tables), n_bulk=n_bulk)

    def forget_graphs(self) -> None:
        """Have the next step launch its kernels one by one."""
        self.executor.program.graphs.clear()

    def step_of_many(self) -> None:
        """A token for each of SIDE_BY_SIDE short texts."""
        views = [self.view(BLOCK_TOKENS + 1, (2 * i, 2 * i + 1), 2 * i) for i in range(SIDE_BY_SIDE)]
        self.runner.compute([([7], BLOCK_TOKENS)] * SIDE_BY_SIDE, views, range(SIDE_BY_SIDE))


def measure(
    translator: type[Translator],
    device: Device,
    shape: Shape,
    n_prompt: int,
    n_tokens: int,
    wait: Callable[[], None],
    span: int = 0,
) -> Speed:
    """Decode after a prompt, and read that prompt again in chunks; each warms up before."""
    text, rows = Text(translator, device, shape, n_prompt + n_tokens + BLOCK_TOKENS, span), max_rows(span)
    chunks = [min(rows, n_prompt - first) for first in range(0, n_prompt, rows)]
    seconds = [timed(text, chunks, wait) for _ in range(3)][1:]
    decoded = seconds_of(lambda: text.step(1), n_tokens, wait)
    weights, of_experts = read_weights(text.model), expert_weights(text.model)
    used = shape.n_used / max(shape.n_experts, 1)
    n_bytes = sum(packed.nbytes for packed in weights) + used * sum(packed.nbytes for packed in of_experts)
    macs = sum(packed.n_rows * packed.n_cols for packed in weights[:-1])  # the output is for one row
    macs += used * sum(packed.n_rows * packed.n_cols for packed in of_experts)
    read = min(seconds)
    batch = SIDE_BY_SIDE / seconds_of(text.step_of_many, n_tokens, wait)
    return Speed(1 / decoded, n_bytes / decoded / 1e9, n_prompt / read, 2 * macs * n_prompt / read / 1e12, batch)


def seconds_of(step: Callable[[], None], n: int, wait: Callable[[], None]) -> float:
    """Of one of n, after one more."""
    step()
    wait()
    started = time.perf_counter()
    for _ in range(n):
        step()
    wait()
    return (time.perf_counter() - started) / n


def timed(text: Text, chunks: Sequence[int], wait: Callable[[], None]) -> float:
    """Seconds that a prompt takes from its beginning."""
    text.length = 0
    wait()
    started = time.perf_counter()
    for n in chunks:
        text.step(n)
    wait()
    return time.perf_counter() - started


def read_weights(model: Model) -> list[Packed]:
    """The matrices that every token is multiplied with; the output comes last."""
    found: list[Packed] = []
    for layer in model.weights.layers:
        mixing = layer.mixing
        mixes = (
            mixing.matrices.values() if isinstance(mixing, MixerWeights) else (mixing.q, mixing.k, mixing.v, mixing.o)
        )
        network = (layer.gate, layer.up, layer.down) if layer.router is None else (layer.router,)
        found += [linear.packed for linear in (*mixes, *network) if linear is not None]
    return [*found, model.weights.output.packed]


def expert_weights(model: Model) -> list[Packed]:
    """The matrices of all experts, of which a token is multiplied with a part."""
    layers = [layer for layer in model.weights.layers if layer.router is not None]
    linears = [linear for layer in layers for linear in (layer.gate, layer.up, layer.down)]
    return [linear.packed for linear in linears if linear is not None]
