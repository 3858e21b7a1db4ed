"""A model's program before anything is loaded: recorded on weights with shapes and no numbers. Torch-free."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from localrun.model.assembly import Assembler
from localrun.model.assistant import assistant
from localrun.model.config import ModelConfig
from localrun.model.decoder import Model
from localrun.model.draft_layer import draft_layer
from localrun.model.dspark import ContextProgram, tap_shapes, tap_weights
from localrun.model.shapes import OPTIONAL, Ranks, weight_shapes
from localrun.ops.cache_layer import NOWHERE
from localrun.ops.instructions import LowRank
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.layouts import FILE, MAPPED, Packed, Vector
from localrun.ops.recording import Forward, Recording, record_instructions


@lru_cache(maxsize=64)
def record_shapes(config: ModelConfig, adapters: tuple[Ranks, ...] = ()) -> Recording:
    """Record a step of the model, with its adapters, on shapes alone, for all questions before a load.

    Queries see a window and the first block wherever a context or a user may make it so: no context needs more.
    """
    config = config.for_window(BLOCK_TOKENS)
    shapes = ShapeWeights(config, adapters)
    if config.body_size:
        forward: Forward = assistant(config, shapes).forward
        config = replace(config, layers=tuple(replace(spec, shares_cache=None) for spec in config.layers))
    elif config.reads_hidden:
        forward = draft_layer(config, shapes).forward
    else:
        forward = Model(config, shapes.weights(config), tap_weights(config.taps, shapes, config.rms_eps)).forward
    given = (config.given_size,) if config.given_size and config.block is None else ()
    sources = (index if spec.shares_cache is None else spec.shares_cache for index, spec in enumerate(config.layers))
    read = [(config.layers[source].cache, spec) for source, spec in zip(sources, config.layers, strict=True)]
    layers = (NOWHERE if spec.kind == "none" else kind.layer(0, 0, spec.n_heads) for kind, spec in read)
    return Recording(record_instructions(forward, len(given)), tuple(layers), given)


@lru_cache(maxsize=64)
def record_context(config: ModelConfig) -> Recording:
    """Record a step that stores what a model gives to a drafter of blocks, on shapes alone."""
    forward = ContextProgram(config, ShapeWeights(config).weights(config)).forward
    layers = tuple(spec.cache.layer(0, 0, spec.n_heads) for spec in config.layers)
    return Recording(record_instructions(forward, 1), layers, (config.hidden_size,))


class ShapeWeights(Assembler):
    """Matrices without planes, and vectors with a length only."""

    def __init__(self, config: ModelConfig, adapters: Sequence[Ranks] = ()) -> None:
        self.shapes = weight_shapes(config) | tap_shapes(config)
        self.ranks = [dict(ranks) for ranks in adapters]

    def has(self, name: str) -> bool:
        return name in self.shapes and name.rpartition(".")[2] not in OPTIONAL

    def matrix(self, name: str) -> Packed:
        n_rows, n_cols = self.shapes[name]
        return Packed(FILE, "", n_rows, n_cols, ())

    def table(self, name: str) -> Packed:
        return replace(self.matrix(name), layout=MAPPED)

    def adapters(self, name: str) -> tuple[LowRank, ...]:
        n_rows, n_cols = self.shapes[name]
        ranks = (ranks[name] for ranks in self.ranks if name in ranks)
        return tuple(
            LowRank(Packed(FILE, "", rank, n_cols, ()), Packed(FILE, "", n_rows, rank, ()), 1.0) for rank in ranks
        )

    def required_vector(self, name: str) -> Vector:
        return range(*self.shapes[name])

    def ones(self, n: int) -> Vector:
        return range(n)

    def number(self, name: str) -> float:
        assert self.has(name), f"{name} is in some files alone"
        return 0.0
