"""What is known of a model before anything is loaded: its shapes and its program, against a load."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from localrun_testing.small_model import rolling, small_model
from localrun_testing.tiny_models import save

from benchmarks.tiny_architectures import TINY
from localrun.engine.runner import cache_layers
from localrun.formats.safetensors import open_safetensors
from localrun.model.headers import read_config, read_weight_refs
from localrun.model.load import load_model
from localrun.model.recording import record_shapes
from localrun.model.shapes import OPTIONAL, weight_shapes
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.layouts import FILE
from localrun.ops.recording import Recorded, record_instructions
from localrun.ops.widths import most_alive, slot_widths


@pytest.mark.parametrize("kind", TINY)
def test_shapes_and_program_are_those_of_a_load(kind: str, tmp_path: Path) -> None:
    source = open_safetensors(save(kind, tmp_path))
    config = read_config(source)
    found = {name: ref.shape for name, ref in read_weight_refs(source, config).items()}
    shapes = weight_shapes(config)
    assert found == {name: shapes[name] for name in found}
    assert {name.rpartition(".")[2] for name in shapes.keys() - found.keys()} <= OPTIONAL
    model, ahead = rolling(load_model(source, FILE, None, config)), record_shapes(config)
    loaded = record_instructions(model.forward)
    assert steps(ahead.instructions, ahead.layers) == steps(loaded, cache_layers(config))


def steps(recorded: Sequence[Recorded], layers: Sequence[CacheLayer]) -> tuple[list[str], dict[int, int]]:
    """The instructions, but for the scales that some files have, and how many buffers of each width they take."""
    names = [each.instruction.name for each in recorded]
    return [name for name in names if name != "scale"], dict(most_alive(recorded, slot_widths(recorded, layers)))


def test_a_model_is_recorded_once() -> None:
    config = small_model().config
    assert record_shapes(config) is record_shapes(small_model(seed=1).config)
