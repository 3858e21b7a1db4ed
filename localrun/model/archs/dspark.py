"""DSpark for Qwen3: a few layers that guess a block of tokens at once, from rows that the model has after some layers.

DeepSpec (deepseek-ai) trains them; their folders hold a class of its own that transformers does not know. Torch-free.
"""

from dataclasses import replace
from typing import Any, ClassVar

from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.formats.source import TensorSource
from localrun.model.archs.qwen3 import Qwen3
from localrun.model.config import BlockGuess, ModelConfig
from localrun.model.fields import Fields

MOST_BLOCK = 15  # tokens


class DSpark(Qwen3):
    name = "dspark"
    gguf: ClassVar[tuple[str, ...]] = ()
    hf: ClassVar[tuple[str, ...]] = ("Qwen3DSparkModel",)

    def matches(self, source: TensorSource) -> bool:
        """Whether a folder says that it is one."""
        named = source.metadata.get("architectures")
        return source.format != "gguf" and isinstance(named, list) and any(name in self.hf for name in named)

    def config(self, source: TensorSource) -> ModelConfig:
        """Read and check the hyperparameters. Raises ModelFileError."""
        config = super().config(source)
        if any(spec.kind != "full" for spec in config.layers):
            raise ModelFileError("UNSUPPORTED", "layers of DSpark with a window", path=str(source.metadata.path))
        layers = tuple(replace(spec, image_spans=True) for spec in config.layers)
        return replace(config, layers=layers, block=BlockKeys(source).block(), reads_hidden=False)


@dataclass(frozen=True, slots=True)
class BlockKeys:
    """The keys of a config.json that only DSpark has."""

    source: TensorSource

    def block(self) -> BlockGuess:
        """Raise ModelFileError for what is missing or cannot be run."""
        kind = self.source.metadata.get("markov_head_type", "vanilla")
        rank, taps = self.number("markov_rank", 0, 1 << 16), self.source.metadata.get("target_layer_ids")
        if rank and kind != "vanilla":
            raise ModelFileError("UNSUPPORTED", "DSpark with another Markov head than the plain one", path=self.path)
        if not isinstance(taps, list) or not taps or any(type(one) is not int for one in taps):
            raise self.error("target_layer_ids should be numbers of layers")
        if sorted(set(taps)) != taps or taps[0] < -1:
            raise self.error("target_layer_ids should ascend, from -1 on")
        size, mask = self.number("block_size", 1, MOST_BLOCK), self.number("mask_token_id", 0, 1 << 24)
        confident = self.source.metadata.get("enable_confidence_head") is True
        by_token = confident and self.source.metadata.get("confidence_head_with_markov") is True
        is_told = self.source.metadata.get("num_target_layers") is not None
        n_target = self.number("num_target_layers", 1, 1 << 16) if is_told else None
        return BlockGuess(size, mask, tuple(taps), rank, confident, by_token, n_target)

    def number(self, key: str, low: int, high: int) -> int:
        value: Any = self.source.metadata.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(f"{key} should be a number from {low} to {high}")
        return value

    @property
    def path(self) -> str:
        return str(self.source.metadata.path)

    def error(self, message: str) -> ModelFileError:
        return Fields({}, self.source.format, "", self.path).error(message)
