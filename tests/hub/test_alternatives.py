"""What is named in the place of a model that cannot be run: one of its family, else one of its size."""

import pytest

from localrun.hub.alternatives import nearest_runnable, unsupported_message
from localrun.hub.catalogue import read_catalogue, suggestions
from localrun.hub.catalogue_shape import catalogue_shape


@pytest.mark.parametrize(
    ("name", "n_params", "instead"),
    [
        ("unsloth/gemma-3n-E2B-it-GGUF", 0, "gemma-2-2b"),
        ("google/gemma-3n-E4B-it", 4_000_000_000, "gemma-3-4b"),
        ("bartowski/Qwen1.5-7B-Chat-GGUF", 0, "qwen2.5-coder-7b"),
        ("state-spaces/mamba-2.8b", 0, "gemma-2-2b"),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", 120_000_000_000, "nemotron-3-nano-30b-a3b"),
        ("org/nothing-known", 20_900_000_000, "gpt-oss-20b"),
    ],
)
def test_the_nearest(name: str, n_params: int, instead: str) -> None:
    assert nearest_runnable(name, n_params) == instead
    assert unsupported_message("it is odd", name, n_params) == f"it is odd; the nearest that runs is {instead}"


def test_of_a_model_that_says_nothing_of_itself_it_is_one_for_this_machine() -> None:
    assert nearest_runnable("org/thing") in suggestions(1 << 40)


def test_it_can_be_run_whatever_the_size() -> None:
    shapes = {name: catalogue_shape(model) for name, model in read_catalogue().items()}
    assert all(shapes[nearest_runnable("x", n)] for n in (10**8, 10**9, 10**10, 10**11, 10**12))
    assert nearest_runnable("x", 10**6) != "builtin", "it answers from what it knows, which is little"
