"""What GPUs have kernels for, as it is said ahead of a load."""

from dataclasses import replace

import pytest
from localrun_testing.small_model import CONV, FULL, small_model

from localrun.backends.gpu.coverage import KERNELS, left_to_torch
from localrun.backends.gpu.translator import Translator
from localrun.model.config import LayerSpec, Mixture
from localrun.model.recording import record_shapes
from localrun.ops.instructions import INSTRUCTIONS
from localrun.ops.types import Routing

MOE = replace(FULL, mixture=Mixture(4, Routing(2)))
LARGE = replace(FULL, head_dim=520)
BY_8 = "attention of heads of 8"


def test_kernels_are_methods_of_the_translator() -> None:
    assert {op.name for op in INSTRUCTIONS if hasattr(Translator, op.name)} == KERNELS


@pytest.mark.parametrize(
    ("layers", "parts"),
    [
        ((replace(FULL, head_dim=16),), ()),
        ((replace(FULL, head_dim=16, activation="xielu"),), ("the activation xIELU",)),
        ((FULL, LARGE), ("attention of heads of 520", BY_8)),
        ((MOE, CONV), ("recurrent layers", "mixtures of experts", BY_8)),
    ],
)
def test_parts_are_named(layers: tuple[LayerSpec, ...], parts: tuple[str, ...]) -> None:
    config = replace(small_model((FULL,)).config, layers=layers)
    assert left_to_torch(record_shapes(config)) == parts
