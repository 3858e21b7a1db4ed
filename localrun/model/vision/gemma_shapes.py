"""A tower of Gemma 4 before it is loaded: the bytes of its weights and of its working memory."""

from collections.abc import Mapping
from math import prod

import numpy as np

from localrun.model.vision.gemma_config import GemmaTowerConfig
from localrun.model.vision.gemma_tower import GemmaTower
from localrun.model.vision.gemma_weights import GemmaLoader
from localrun.model.vision.shapes import BytesOf, EncoderBytes, EncoderShapes, TypeOf
from localrun.model.weight_ref import WeightRef
from localrun.ops.layouts import FILE, Packed, Vector


def gemma_bytes(config: GemmaTowerConfig, refs: Mapping[str, WeightRef], type_of: TypeOf, matrix_bytes: BytesOf) -> int:
    """Exact bytes of a tower's weights once they are loaded."""
    total = matrix_bytes("F32", config.hidden_size, config.patch_values)
    total += 4 * (config.head_dim + config.hidden_size)  # of norms that have no weight
    for name, ref in refs.items():
        if name == "positions" or (len(ref.shape) == 1 and not ref.is_number):
            total += 4 * prod(ref.shape)
        elif len(ref.shape) == 2 and name != "patch":
            total += matrix_bytes(type_of(ref), *ref.shape)
    return total


def gemma_working_bytes(
    config: GemmaTowerConfig, refs: Mapping[str, WeightRef], n_rows: int, encoder_bytes: EncoderBytes
) -> int:
    """Bytes that encoding an image of at most `n_rows` rows takes: the working memory of the larger program, its
    patches, and what the first leaves for the second."""
    tower = GemmaTower(config, GemmaShapes(dict(refs), config).tower(config))
    n_rows = min(n_rows, config.sizes.budget)
    n_patches = n_rows * config.pool**2
    needs = encoder_bytes(tower.blocks(), n_patches), encoder_bytes(tower.projection(), n_rows)
    between = config.patch_values + 4 * config.hidden_size + 4 * config.head_dim
    return max(needs) + 4 * n_patches * between


class GemmaShapes(EncoderShapes, GemmaLoader):
    """Weights with shapes and no numbers."""

    def __init__(self, refs: dict[str, WeightRef], config: GemmaTowerConfig) -> None:
        super().__init__(refs)
        self.head_dim = config.head_dim

    def packed(self, rows: np.ndarray) -> Packed:
        n_rows, n_cols = rows.shape
        return Packed(FILE, "", n_rows, n_cols, ())

    def norm(self, name: str) -> Vector:
        return self.required_vector(name)

    def floats(self, name: str) -> np.ndarray:
        return self.whole(name)

    def bound(self, name: str) -> float:
        return -1.0 if name.endswith("min") else 1.0

    def positions(self, config: GemmaTowerConfig) -> np.ndarray:
        return self.whole("positions")
