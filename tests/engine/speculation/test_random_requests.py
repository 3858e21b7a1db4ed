"""Random requests with every drafter on every kind of layer: a share of those of `localrun_testing.random_drafts`."""

import zlib
from pathlib import Path

import pytest
from localrun_testing.random_drafts import WORLDS, check_nothing_is_lost, open_world, run

from localrun.backends.cpu.library import load_library

pytestmark = pytest.mark.skipif(load_library() is None, reason="no native library")


@pytest.mark.parametrize("name", WORLDS)
def test_answers_are_the_same_with_drafts(name: str, tmp_path: Path) -> None:
    world = open_world(name, tmp_path, seed=1)
    first = zlib.crc32(name.encode())
    try:
        n, n_drafted, n_accepted = run(world, range(first, first + 12))
        check_nothing_is_lost(world)
    finally:
        world.close()
    assert n >= 12
    assert 10 < n_accepted < n_drafted
