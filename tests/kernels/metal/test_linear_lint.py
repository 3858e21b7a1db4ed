"""What clang says of the kernels of linears, mixtures, norms and single numbers, in every layout and every variant."""

import pytest
from localrun_testing.metal_lint import clang, lint

from localrun.backends.gpu.weight_layouts import LAYOUTS, WeightLayout, layout_of
from localrun.backends.metal.source import text_of

needs_clang = pytest.mark.skipif(clang() is None, reason="the lint needs clang++ 16 or later")
VARIANTS: dict[str, list[dict[str, int]]] = {
    "linear.metal": [
        {"N_X": 1, "NORM": 1},
        {"N_X": 8, "NORM": 0, "SIDES": 2, "ACT": 1},
        *({"N_X": 4, "NORM": 1, "SIDES": 2, "ACT": act} for act in (2, 3)),
    ],
    "linear_many.metal": [{"N_X": n, "MATRIX": matrix, "ACT": 4} for n in (16, 32) for matrix in (0, 1)],
    "experts_many.metal": [{"N_X": 32, "MATRIX": matrix, "ACT": 3} for matrix in (0, 1)],
    "experts.metal": [{"SIDES": 1, "ACT": 0}, {"SIDES": 1, "ACT": 3}, {"SIDES": 2, "ACT": 1}],
    "mixture.metal": [{"KEYS": 129}],
    "norm.metal": [{}],
    "elementwise.metal": [{}],
}


@needs_clang
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_kernels_of_a_layout(layout: WeightLayout) -> None:
    assert lint(text_of("linear.metal", {**layout.defines, "N_X": 8, "NORM": 0}, {})) == ""
    assert lint(text_of("embed.metal", layout.defines, {})) == ""


@needs_clang
@pytest.mark.parametrize(("file", "defines"), [(file, each) for file in VARIANTS for each in VARIANTS[file]])
def test_variants(file: str, defines: dict[str, int]) -> None:
    assert lint(text_of(file, {**layout_of("Q4_K").defines, **defines}, {})) == ""
