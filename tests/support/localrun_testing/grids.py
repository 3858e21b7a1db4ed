"""Grids of cases: `make test` has every value of each option, and `make test-slow` every combination."""

import itertools
from collections.abc import Collection

import pytest
from _pytest.mark import ParameterSet


def in_turns(*options: Collection[object]) -> list[ParameterSet]:
    """Every combination; slow are those but where the k-th values of all options meet. Shorter lists begin again."""
    quick = {tuple(turn % len(values) for values in options) for turn in range(max(map(len, options)))}
    grid = itertools.product(*map(enumerate, options))
    cases = [(tuple(place for place, _ in case), [value for _, value in case]) for case in grid]
    return [pytest.param(*values, marks=() if places in quick else pytest.mark.slow) for places, values in cases]


def mostly_slow(values: Collection[object], n_quick: int = 1) -> list[ParameterSet]:
    """The first are tried in every run, the others are slow."""
    marks = [()] * n_quick + [(pytest.mark.slow,)] * (len(values) - n_quick)
    return [pytest.param(value, marks=own) for value, own in zip(values, marks, strict=True)]
