"""A tower before it is loaded: its programs, and the bytes of its weights and of its working memory."""

from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np

from localrun.model.vision.config import TowerConfig
from localrun.model.vision.loader import EncoderLoader
from localrun.model.vision.tower import Tower
from localrun.model.vision.weights import TowerLoader
from localrun.model.weight_ref import WeightRef
from localrun.ops.encoder_program import EncoderRecording
from localrun.ops.instructions import LinearWeight
from localrun.ops.layouts import FILE, Packed, Vector

TypeOf = Callable[[WeightRef], str]  # the quant type that a weight has in its file
BytesOf = Callable[[str, int, int], int]  # of a matrix of that type as it is held, by its rows and columns
EncoderBytes = Callable[[EncoderRecording, int], int]  # working memory of a program over so many rows


def tower_bytes(config: TowerConfig, refs: Mapping[str, WeightRef], type_of: TypeOf, matrix_bytes: BytesOf) -> int:
    """Exact bytes of a tower's weights once they are loaded."""
    total = matrix_bytes("F32", config.hidden_size, config.patch_values)  # the frames of a film, added up
    for name, ref in refs.items():
        if ref.is_number:
            continue
        if len(ref.shape) == 1 or name == "positions":
            total += 4 * prod(ref.shape)
        elif name not in ("patch", "second_frame"):
            total += matrix_bytes(type_of(ref), *ref.shape)
    return total


def working_bytes(config: TowerConfig, refs: Mapping[str, WeightRef], n_rows: int, encoder_bytes: EncoderBytes) -> int:
    """Bytes that encoding an image of `n_rows` rows takes: the working memory of the largest program, its patches, and
    what programs leave for each other."""
    tower = Tower(config, ShapeLoader(dict(refs)).tower(config))
    n_patches = n_rows * config.merge**2
    needs = [encoder_bytes(stage, n_patches) for stage in [*tower.stages(), tower.last_norm()]]
    needs += [encoder_bytes(program, n_rows) for program in mergers(tower)]
    between = config.patch_values + (3 + len(config.tapped)) * config.hidden_size + 4 * config.head_dim
    return max(needs) + 4 * n_patches * between


def mergers(tower: Tower) -> Iterator[EncoderRecording]:
    """The programs over rows, not patches."""
    yield tower.merger()
    yield from map(tower.tap, tower.weights.taps)


class EncoderShapes(EncoderLoader):
    """Weights with shapes and no numbers: named before the loader of a family, whose reading it takes the place of."""

    def __init__(self, refs: dict[str, WeightRef]) -> None:
        self.refs, self.opened = refs, ()

    def matrix(self, name: str) -> Packed:
        n_rows, n_cols = self.refs[name].shape
        return Packed(FILE, "", n_rows, n_cols, ())

    def required_vector(self, name: str) -> Vector:
        return range(*self.refs[name].shape)

    def scale(self, name: str) -> float | Vector:
        return 1.0

    def gather(self, name: str) -> Vector | None:
        ref = self.refs.get(f"{name}.gather")
        return None if ref is None else range(*ref.shape)

    def ones(self, n: int) -> Vector:
        return range(n)

    def whole(self, name: str) -> np.ndarray:
        return np.broadcast_to(np.float32(0.0), self.refs[name].shape)


class ShapeLoader(EncoderShapes, TowerLoader):
    """Weights of a tower of Qwen with shapes and no numbers."""

    def patch(self, config: TowerConfig) -> LinearWeight:
        return LinearWeight(Packed(FILE, "", config.hidden_size, config.patch_values, ()), range(config.hidden_size))
