"""Blocks on disk: what was saved or nothing, whatever happens to the files and whoever else is at work."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.cache.disk import SUFFIX, DiskTier, Key

IDS = tuple(range(64))
PARTS = (b"k" * 300, b"", b"v" * 100)
SIZES = (300, 50, 100)


@pytest.fixture
def disk(tmp_path: Path) -> DiskTier:
    return DiskTier(tmp_path, "weights a, f16", budget=1 << 30)


def saved(disk: DiskTier, ids: tuple[int, ...] = IDS, parts: tuple[bytes, ...] = PARTS) -> Key:
    key = disk.key(None, ids)
    assert disk.save(key, ids, parts)
    return key


def the_file(disk: DiskTier) -> Path:
    (block,) = disk.blocks()
    return block.path


def test_what_was_saved_comes_back(disk: DiskTier) -> None:
    key = saved(disk)
    assert disk.has(key)
    assert tuple(map(bytes, disk.load(key, IDS, SIZES) or ())) == PARTS
    assert disk.nbytes() == the_file(disk).stat().st_size


def test_only_its_owner_can_read_it(disk: DiskTier) -> None:
    saved(disk)
    assert the_file(disk).stat().st_mode & 0o077 == 0
    assert the_file(disk).parent.stat().st_mode & 0o077 == 0


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 7))
def test_every_flipped_bit_is_a_miss(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int) -> None:
    disk = DiskTier(tmp_path_factory.mktemp("kv"), "f", 1 << 30)
    key = saved(disk)
    content = bytearray(the_file(disk).read_bytes())
    content[at % len(content)] ^= 1 << bit
    the_file(disk).write_bytes(content)
    assert disk.load(key, IDS, SIZES) is None
    assert not disk.has(key), "a damaged file is removed"


def test_every_cut_and_every_surplus_is_a_miss(disk: DiskTier) -> None:
    content = (saved(disk), the_file(disk).read_bytes())[1]
    for damaged in (*(content[:n] for n in range(len(content))), content + b"\0"):
        key = saved(disk)
        the_file(disk).write_bytes(damaged)
        assert disk.load(key, IDS, SIZES) is None, len(damaged)
        disk.forget([key])


def test_other_ids_other_fingerprint_other_sizes_are_misses(disk: DiskTier, tmp_path: Path) -> None:
    key = saved(disk)
    assert disk.load(key, (*IDS[:-1], 99), SIZES) is None
    key = saved(disk)
    assert disk.load(key, IDS, (299, 50, 100)) is None
    key = saved(disk)
    assert disk.load(key, IDS, SIZES[:2]) is None
    key = saved(disk)
    other = DiskTier(tmp_path, "weights b, f16", 1 << 30)
    assert other.key(None, IDS) != key
    os.renames(disk._path(key), other._path(key))  # as if somebody had moved it
    assert other.load(key, IDS, SIZES) is None


def test_a_key_depends_on_everything_before_it(disk: DiskTier) -> None:
    first, other = disk.key(None, IDS), disk.key(None, IDS[::-1])
    assert disk.key(first, IDS) != disk.key(other, IDS)
    assert disk.key(first, IDS) != disk.key(first, IDS[:-1])


def test_what_follows_a_block_is_found_with_its_ids(disk: DiskTier) -> None:
    first = saved(disk)
    after = {ids: disk.key(first, ids) for ids in ((1, 2, 3), (1, 2), (9,) * 64)}
    for ids, key in after.items():
        assert disk.save(key, ids, PARTS)
    assert {ids: key for key, ids in disk.following(first)} == after
    assert [ids for _, ids in disk.following(None)] == [IDS]
    assert list(disk.following(after[1, 2])) == []


def test_a_hostile_file_among_those_that_follow_is_no_more_than_a_miss(disk: DiskTier) -> None:
    saved(disk)
    path = the_file(disk)
    for content in (b"", b"x", b"\xff" * 40, b"\xff" * 10_000):
        path.write_bytes(content)
        for key, ids in disk.following(None):
            assert disk.load(key, ids, SIZES) is None


def test_the_least_recently_used_go_first_and_of_one_text_its_end(tmp_path: Path) -> None:
    disk = DiskTier(tmp_path, "f", budget=0)
    chains = []
    for text in range(3):
        chain: list[Key] = []
        for block in range(4):
            ids = (text, block)
            chain.append(disk.key(chain[-1] if chain else None, ids))
            assert disk.save(chain[-1], ids, (bytes(1000),))
        disk.touch(chain)
        chains.append(chain)
        time.sleep(0.01)
    disk.touch(chains[0])
    one = next(disk.blocks()).nbytes
    disk.budget = 6 * one
    assert disk.trim() == 6 * one
    assert [[disk.has(key) for key in chain] for chain in chains] == [
        [True] * 4,
        [False] * 4,
        [True, True, False, False],
    ]


def test_what_nobody_used_for_a_month_goes(disk: DiskTier) -> None:
    old, new = saved(disk), saved(disk, IDS[::-1])
    month_ago = time.time() - 31 * 86400
    os.utime(disk._path(old), (month_ago, month_ago))
    disk.trim()
    assert (disk.has(old), disk.has(new)) == (False, True)


def test_a_full_or_forbidden_disk_keeps_nothing_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    disk = DiskTier(tmp_path / "file" / "below", "f", 1 << 30)
    key = disk.key(None, IDS)
    assert not disk.save(key, IDS, PARTS)
    assert disk.load(key, IDS, SIZES) is None
    assert disk.nbytes() == disk.trim() == 0


def test_what_a_dead_process_left_is_removed_later_and_not_at_once(disk: DiskTier) -> None:
    saved(disk)
    fresh, stale = (the_file(disk).with_name(name) for name in ("a.tmp", "b.tmp"))
    for path in (fresh, stale):
        path.write_bytes(b"half")
    os.utime(stale, (0, 0))
    disk.trim()
    assert fresh.exists()
    assert not stale.exists()


HAMMER = """
import random, sys, time
from pathlib import Path
from localrun.cache.disk import DiskTier
disk = DiskTier(Path(sys.argv[1]), "f", budget=60_000)
rng = random.Random(int(sys.argv[2]))
sizes, hits, until = (3000, 500), 0, time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    ids = (rng.randrange(20),) * 8
    key = disk.key(None, ids)
    parts = (bytes([ids[0]]) * 3000, bytes([ids[0] + 100]) * 500)
    match rng.randrange(6):
        case 0 | 1: disk.save(key, ids, parts)
        case 2: disk.trim()
        case 3: disk.forget([key])
        case 4: disk.touch([key])
    found = disk.load(key, ids, sizes)
    assert found is None or tuple(map(bytes, found)) == parts
    hits += found is not None
print(hits)
"""


def hammer(folder: Path, seconds: float, kill: bool) -> None:
    command = [sys.executable, "-c", HAMMER, str(folder)]
    workers = [subprocess.Popen([*command, str(n), str(seconds)], stdout=subprocess.PIPE) for n in range(8)]
    until = time.monotonic() + seconds
    while kill and time.monotonic() < until:
        time.sleep(0.2)
        victim = random.randrange(8)
        workers[victim].kill()
        workers[victim].communicate()
        workers[victim] = subprocess.Popen([*command, str(victim), str(seconds / 2)], stdout=subprocess.PIPE)
    for worker in workers:
        out, _ = worker.communicate(timeout=seconds + 60)
        assert worker.returncode == 0
        assert int(out) > 0
    disk = DiskTier(folder, "f", budget=60_000)
    disk.trim()
    assert disk.nbytes() <= 60_000
    assert all(block.path.suffix == SUFFIX for block in disk.blocks())


def test_eight_processes_in_one_folder(tmp_path: Path) -> None:
    hammer(tmp_path, 1.0, kill=False)


@pytest.mark.slow
def test_eight_processes_in_one_folder_some_of_them_killed(tmp_path: Path) -> None:
    hammer(tmp_path, float(os.environ.get("LOCALRUN_HAMMER_SECONDS", "10")), kill=True)
