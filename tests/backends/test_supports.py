"""What GPUs have kernels for, as it is said ahead of a load."""

from dataclasses import replace

import pytest
from localrun_testing.latent_cases import LatentCase
from localrun_testing.small_model import CONV, FULL, small_model

from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.gpu.supports import BOTH, LATENTS, MIXTURES, SUPPORTS, kernels_on, left_to_torch
from localrun.backends.gpu.translator import Translator
from localrun.backends.metal.translator import MetalTranslator
from localrun.backends.registry import BACKENDS
from localrun.model.config import LayerSpec, Mixture
from localrun.model.recording import record_shapes
from localrun.ops.encoder import Clamp, LayerNorm, SelfAttention
from localrun.ops.instructions import INSTRUCTIONS
from localrun.ops.layouts import F32
from localrun.ops.recording import Recording, record_instructions
from localrun.ops.types import Routing

MOE = replace(FULL, mixture=Mixture(640, Routing(2)))  # experts beyond the most
LARGE = replace(FULL, head_dim=520)
BY_8 = "attention of heads of 8"
TABLES = "embeddings of every layer, which stay in their file"


def test_every_instruction_of_a_decoder_has_a_row() -> None:
    assert set(SUPPORTS) == {*INSTRUCTIONS} - {LayerNorm, Clamp, SelfAttention}


@pytest.mark.parametrize("translator", [CudaTranslator, MetalTranslator])
def test_kernels_are_methods_of_the_translator(translator: type[Translator]) -> None:
    translated = {op.name for op in INSTRUCTIONS if hasattr(translator, op.name)}
    assert translated == kernels_on(translator.backend) == BACKENDS[translator.backend].kernels


def test_what_may_be_torchs_has_a_name() -> None:
    assert all(support.part for support in SUPPORTS.values() if {*support.on} != {*BOTH})


@pytest.mark.parametrize("backend", BOTH)
@pytest.mark.parametrize(
    ("layers", "parts"),
    [
        ((replace(FULL, head_dim=16),), ()),
        ((replace(FULL, head_dim=16, activation="xielu"), CONV), ()),
        ((FULL, LARGE), ("attention of heads of 520", BY_8)),
        ((MOE, CONV), (MIXTURES, BY_8)),
    ],
)
def test_parts_are_named(layers: tuple[LayerSpec, ...], parts: tuple[str, ...], backend: str) -> None:
    config = replace(small_model((FULL,)).config, layers=layers)
    assert left_to_torch(record_shapes(config), backend) == parts


def test_tables_that_stay_in_their_file_are_torchs() -> None:
    config = small_model((replace(FULL, head_dim=16),)).config
    assert left_to_torch(record_shapes(replace(config, per_layer_size=16)), "cuda") == (TABLES,)


@pytest.mark.parametrize("backend", BOTH)
def test_latent_attention_is_torchs_under_one_name(backend: str) -> None:
    case = LatentCase()
    model = Recording(record_instructions(case.forward(F32)), (case.layer,))
    assert left_to_torch(model, backend) == (LATENTS,)
