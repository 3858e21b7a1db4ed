"""Places of the weights of a DSpark drafter, their loading, and its heads, which are computed token by token."""

from __future__ import annotations

from dataclasses import replace
from math import exp, prod
from typing import TYPE_CHECKING

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.floats import read_floats
from localrun.formats.source import TensorSource
from localrun.model.archs import DSPARK
from localrun.model.config import BlockGuess, ModelConfig
from localrun.model.dspark import tap_weights
from localrun.model.layer_weights import ModelWeights, TapWeights
from localrun.model.load import Loader
from localrun.model.weight_ref import WeightRef, check_tensor
from localrun.model.weights import Namer
from localrun.ops.layouts import Layout

if TYPE_CHECKING:
    import torch

CONTEXT, CONTEXT_NORM = "fc.weight", "hidden_norm.weight"
MARKOV = ("markov_head.markov_w1.weight", "markov_head.markov_w2.weight")  # [vocab, rank] each
CONFIDENCE, CONFIDENCE_BIAS = "confidence_head.proj.weight", "confidence_head.proj.bias"


@dataclass(frozen=True, slots=True)
class BlockHead:
    """Chooses the tokens of a block one after the other: each changes the logits of the next (Markov head)."""

    before: np.ndarray | None  # f32 [vocab, rank]: of the token before
    after: np.ndarray | None  # f32 [vocab, rank]
    confidence: np.ndarray | None  # f32 [hidden], with rank more where the token before counts
    bias: float

    def likeliest(self, logits: np.ndarray, hidden: np.ndarray, previous: int) -> tuple[int, float]:
        """The next token after `previous` in a row of logits, and how likely it is right; `hidden`: f32 [hidden]."""
        if self.before is not None and self.after is not None:
            logits = logits + self.after @ self.before[previous]
        token = int(logits.argmax())
        if not np.isfinite(logits[token]):
            return token, 0.0
        if self.confidence is None:
            return token, 1 / float(np.exp(logits - logits[token]).sum())
        score = self.bias + float(self.confidence[: len(hidden)] @ hidden)
        if len(self.confidence) > len(hidden) and self.before is not None:
            score += float(self.confidence[len(hidden) :] @ self.before[previous])
        return token, 1 / (1 + exp(-max(-80.0, min(80.0, score))))

    @property
    def n_bytes(self) -> int:
        return sum(part.nbytes for part in (self.before, self.after, self.confidence) if part is not None)


def dspark_refs(source: TensorSource, config: ModelConfig) -> dict[str, WeightRef]:
    """Every weight of a drafter that is packed, and its place, checked. Raises ModelFileError."""
    block, namer = config.block, Namer(DSPARK, config, source)
    assert block is not None
    refs, hidden = dict(namer.refs()), config.hidden_size
    in_file = (hidden, len(block.taps) * hidden)
    for part, layer in enumerate(block.taps):
        ref = WeightRef(CONTEXT, (hidden, hidden), file_shape=in_file, part=part, n_parts=len(block.taps))
        refs[f"taps.{layer}"] = ref
    refs["taps.norm"] = WeightRef(CONTEXT_NORM, (hidden,))
    for one in refs.values():
        check_tensor(source, one)
    heads = head_shapes(config, block)
    for name, shape in heads.items():
        check_tensor(source, WeightRef(name, shape))
    known = {name for one in refs.values() for name in one.tensors} | heads.keys()
    for name in source.tensors:
        if name not in known and not namer.ignorable(name):
            told = f"tensor {clean(name)!r} has no place in a drafter of DSpark"
            raise ModelFileError("UNSUPPORTED", told, path=str(source.path))
    return refs


def head_shapes(config: ModelConfig, block: BlockGuess) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights of a drafter's heads, by their names in the file."""
    shapes: dict[str, tuple[int, ...]] = {}
    if block.rank:
        shapes |= dict.fromkeys(MARKOV, (config.vocab_size, block.rank))
    if block.confident:
        n = config.hidden_size + (block.rank if block.by_token else 0)
        shapes |= {CONFIDENCE: (1, n), CONFIDENCE_BIAS: (1,)}
    return shapes


def head_bytes(config: ModelConfig) -> int:
    """Bytes of a drafter's heads in memory."""
    return 0 if config.block is None else 4 * sum(map(prod, head_shapes(config, config.block).values()))


def load_taps(
    source: TensorSource, refs: dict[str, WeightRef], config: ModelConfig, layout: Layout, device: torch.device | None
) -> TapWeights | None:
    """Load what a model gives rows after some of its layers by, for a drafter of this config."""
    taps = () if config.block is None else config.block.taps
    loader = Loader(source, refs, layout, device, lambda done, total: None)
    with layout.packing():
        return tap_weights(taps, loader, config.rms_eps)


def load_blocks(
    source: TensorSource,
    refs: dict[str, WeightRef],
    config: ModelConfig,
    layout: Layout,
    device: torch.device | None,
) -> tuple[ModelWeights, BlockHead]:
    """Load the layers of a drafter, and its heads. Raises ModelFileError."""
    weights = Loader(source, refs, layout, device, lambda done, total: None).weights(config)
    assert config.block is not None
    shapes = head_shapes(config, config.block)
    found = {name: floats(source, name, shape) for name, shape in shapes.items()}
    before, after = (found.get(name) for name in MARKOV)
    bias = found.get(CONFIDENCE_BIAS)
    confidence = found[CONFIDENCE][0] if CONFIDENCE in found else None
    return weights, BlockHead(before, after, confidence, 0.0 if bias is None else float(bias[0]))


def floats(source: TensorSource, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The f32 numbers of a tensor, which are finite. Raises ModelFileError."""
    raw = np.frombuffer(source.read(name), np.uint8)
    numbers = np.ascontiguousarray(read_floats(source.tensors[name].qtype, raw, shape))
    if not np.isfinite(numbers).all():
        raise ModelFileError("NOT_FINITE", f"the tensor {clean(name)!r} is not finite", path=str(source.path))
    return numbers


def for_taps(config: ModelConfig, body: ModelConfig) -> ModelConfig:
    """The config of a drafter for its model. Raises ValueError, which says why not."""
    assert config.block is not None
    sizes = (config.hidden_size, config.vocab_size)
    if sizes != (body.hidden_size, body.vocab_size):
        told = "rows of {:,} numbers and {:,} tokens"
        theirs = (body.hidden_size, body.vocab_size)
        raise ValueError(f"it reads hidden {told.format(*sizes)}, the model has {told.format(*theirs)}")
    if config.block.n_target_layers not in (None, body.n_layers):
        raise ValueError(f"it is for a model of {config.block.n_target_layers} layers, this one has {body.n_layers}")
    if config.block.taps[-1] >= body.n_layers - 1:
        raise ValueError(f"it reads layer {config.block.taps[-1]} of {body.n_layers}")
    if config.block.mask_id >= config.vocab_size:
        raise ValueError(f"its mask is token {config.block.mask_id:,} of {config.vocab_size:,}")
    return replace(config, max_context=max(config.max_context, body.max_context))
