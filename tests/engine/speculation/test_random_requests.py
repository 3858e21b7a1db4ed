"""Random requests with every drafter on every kind of layer: a share of those of `localrun_testing.random_drafts`."""

import gc
import zlib
from pathlib import Path

import psutil
import pytest
from localrun_testing.draft_worlds import WORLDS, open_world
from localrun_testing.random_drafts import check_nothing_is_lost, run

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


@pytest.mark.slow
def test_memory_is_the_same_after_ten_thousand_requests(tmp_path: Path) -> None:
    """Once every pool has been full: `python -m localrun_testing.random_drafts` goes on to a hundred thousand."""
    worlds = [open_world(name, tmp_path, number) for number, name in enumerate(WORLDS)]
    before = n_done = turn = 0
    while n_done < 10_000:
        for world in worlds:
            n_done += run(world, range(60 * turn, 60 * turn + 60))[0]
            check_nothing_is_lost(world)
            turn += 1
        gc.collect()
        held = psutil.Process().memory_info().rss
        before = before if turn > 2 * len(worlds) else held
    for world in worlds:
        world.close()
    assert held < 1.05 * before
