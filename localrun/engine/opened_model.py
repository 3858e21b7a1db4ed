"""A model's files, checked and read except for the weights, before memory is planned."""

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from localrun.backends.interface import Backend
from localrun.base.dataclass import dataclass
from localrun.base.errors import ModelFileError
from localrun.base.request import LoadOptions
from localrun.engine.sight import BLIND, IN_MAIN_MEMORY, Sight, find_sight
from localrun.formats.detect import open_model_file
from localrun.formats.quant import QUANT_TYPES
from localrun.formats.safetensors import SafetensorsFolder
from localrun.formats.source import TensorSource
from localrun.formats.weights import WeightFiles
from localrun.model.archs import arch_of
from localrun.model.config import ModelConfig
from localrun.model.draft_source import DraftSource
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.precision import in_precision
from localrun.model.shapes import Ranks
from localrun.model.weight_ref import WeightRef
from localrun.model.weight_sizes import held_bytes
from localrun.ops.layouts import Layout
from localrun.storage.identity import Identity
from localrun.text.load_text import load_text
from localrun.text.model_text import ModelText

if TYPE_CHECKING:
    from localrun.model.adapters import OpenedAdapter


DRAFTING = "cpu"  # the backend that verifies several tokens as it computes single ones, and has programs that draft


@dataclass(frozen=True, slots=True)
class OpenedModel:
    """`identity` is of its weights; None where nothing is to be kept on disk."""

    source: TensorSource
    text: ModelText
    config: ModelConfig
    refs: dict[str, WeightRef]
    files: WeightFiles
    identity: Identity | None
    adapters: "tuple[OpenedAdapter, ...]" = ()
    sight: Sight = BLIND
    draft: DraftSource | None = None

    def on(self, backend: Backend) -> "OpenedModel":
        """The same as far as a backend takes it: images are read in main memory, and programs draft on the CPU."""
        opened = self if backend.name == DRAFTING else replace(self, draft=None, config=replace(self.config, taps=()))
        tower = self.sight.tower
        if tower is None:
            return opened
        if not backend.in_main_memory:
            return replace(opened, sight=Sight(None, IN_MAIN_MEMORY))
        return replace(opened, config=replace(self.config, n_added=tower.n_added))

    @property
    def matrix_types(self) -> list[str]:
        return [self.source.tensors[ref.name].qtype for ref in self.refs.values() if len(ref.shape) == 2]

    @property
    def bits(self) -> float:
        """Bits of a weight in the file, on average."""
        tensors = self.source.tensors.values()
        return 8 * sum(each.nbytes for each in tensors) / sum(prod(each.shape) for each in tensors)

    @property
    def own_types(self) -> tuple[str, ...]:
        """Types of our own that weights are held in. They are part of what the cache and packed weights depend on: the
        same checkpoint was held as floats before there was one for it."""
        held = {self.source.tensors[ref.name].qtype for ref in self.refs.values()}
        return tuple(sorted(name for name in held if QUANT_TYPES[name].own_id is not None))

    @property
    def adapter_ranks(self) -> tuple[Ranks, ...]:
        return tuple(adapter.ranks for adapter in self.adapters)

    def held_bytes(self, layout: Layout) -> int:
        """Exact bytes of all weights, those of adapters among them, once they are loaded; without the tower."""
        weights = held_bytes(self.source, self.refs, layout.nbytes)
        weights += 0 if self.draft is None else self.draft.held_bytes(layout.nbytes)
        return weights + sum(adapter.nbytes(layout) for adapter in self.adapters)


def open_model(options: LoadOptions, wide_scales: bool = False) -> OpenedModel:
    """Open and check the files; `wide_scales`: also whether fp16 holds the scales of each matrix, which takes reading
    them. Raises ModelFileError or NotFoundError."""
    opened = open_model_file(options.path)
    if wide_scales and isinstance(opened, SafetensorsFolder):
        from localrun.formats.checkpoints.wide_scales import with_wide_scales

        opened = with_wide_scales(opened)
    arch_of(opened)  # before other errors of a file that is not a model
    identity = Identity(opened) if options.disk_cache and options.prefix_cache else None
    text = load_text(opened)
    source = in_precision(opened, options.precision)
    config = read_config(source)
    refs = read_weight_refs(source, config)
    check_vocabulary(source, config, text)
    adapters = open_adapters(options, opened, config)
    sight = find_sight(opened, config.hidden_size)
    if not wide_scales and sight.tower is not None and sight.tower.has_wide_scales():
        return open_model(options, wide_scales=True)
    return OpenedModel(source, text, config, refs, opened, identity, adapters, sight)


def open_adapters(options: LoadOptions, source: TensorSource, config: ModelConfig) -> "tuple[OpenedAdapter, ...]":
    """Open the adapters of a load and find the weights that they change. Raises ModelFileError."""
    if not options.adapters:
        return ()
    from localrun.formats.adapters.detect import open_adapter
    from localrun.model.adapters import match

    return tuple(match(open_adapter(one.path), one.scale, arch_of(source), config) for one in options.adapters)


def check_vocabulary(source: TensorSource, config: ModelConfig, text: ModelText) -> None:
    """The tokenizer's ids must have rows in the embedding. A GGUF pads its vocabulary, so there they must agree."""
    n_tokens, n_rows = text.tokenizer.vocab_size, config.vocab_size
    if n_tokens > n_rows or (source.format == "gguf" and n_tokens != n_rows):
        raise ModelFileError(
            "BAD_VOCAB",
            f"the tokenizer has {n_tokens:,} tokens, the embedding {n_rows:,} rows",
            path=str(source.path),
        )
