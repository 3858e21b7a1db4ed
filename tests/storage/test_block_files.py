"""Blocks on disk: what was saved or nothing, whatever happens to the files and whoever else is at work."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.base.image_ids import image_id, image_ids
from localrun.base.lock import locked
from localrun.cache.node import common_prefix
from localrun.storage.block_file import BlockKey, PackedIds, claimed_ids, digest, n_shared, pack_ids, unpack_ids
from localrun.storage.block_files import BlockFiles
from localrun.storage.claims import mark_erased
from localrun.storage.erase import erase_chats
from localrun.storage.inventory import BUCKET_DIGITS, stored_blocks
from localrun.storage.trim import note_total, trim

IDS = tuple(range(64))
PARTS = (b"k" * 300, b"", b"v" * 100)
SIZES = (300, 50, 100)
CHATS = ("a",)


def tier(root: Path, fingerprint: str = "weights a, f16", sizes: tuple[int, ...] = SIZES) -> BlockFiles:
    return BlockFiles(root, fingerprint, sizes)


@pytest.fixture
def disk(tmp_path: Path) -> BlockFiles:
    return tier(tmp_path)


def saved(disk: BlockFiles, ids: tuple[int, ...] = IDS, parts: tuple[bytes, ...] = PARTS) -> BlockKey:
    key = disk.key(None, ids)
    disk.save(key, ids, parts, CHATS)
    return key


def the_file(disk: BlockFiles) -> Path:
    (block,) = stored_blocks(disk.root)
    return Path(block.path)


def test_saved_blocks_are_loaded(disk: BlockFiles) -> None:
    key = disk.key(None, IDS)
    assert disk.save(key, IDS, PARTS, CHATS) == the_file(disk).stat().st_size
    assert tuple(map(bytes, disk.load(key, IDS) or ())) == PARTS
    assert disk.save(key, IDS, PARTS, CHATS) == 0, "it is there"


def test_only_its_owner_can_read_it(disk: BlockFiles) -> None:
    before = os.umask(0)
    try:
        saved(disk)
        note_total(disk.root, 1)
        mark_erased(disk.root, "b")
    finally:
        os.umask(before)
    found = {path.relative_to(disk.root).as_posix(): path.stat().st_mode & 0o077 for path in disk.root.rglob("*")}
    assert len(found) == 10, "folders of blocks, claims, marks; a block, a claim, a label, a mark, the total, the lock"
    assert not any(found.values()), found


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 7))
def test_every_flipped_bit_is_a_miss(tmp_path_factory: pytest.TempPathFactory, at: int, bit: int) -> None:
    disk = tier(tmp_path_factory.mktemp("kv"))
    key = saved(disk)
    content = bytearray(the_file(disk).read_bytes())
    content[at % len(content)] ^= 1 << bit
    the_file(disk).write_bytes(content)
    assert disk.load(key, IDS) is None
    assert not disk.path(key).exists(), "a damaged file is removed"


def test_every_cut_and_every_surplus_is_a_miss_and_removed(disk: BlockFiles) -> None:
    content = (saved(disk), the_file(disk).read_bytes())[1]
    for damaged in (*(content[:n] for n in range(len(content))), content + b"\0", content + bytes(10_000)):
        key = saved(disk)
        the_file(disk).write_bytes(damaged)
        assert disk.load(key, IDS) is None, len(damaged)
        assert not disk.path(key).exists(), len(damaged)


@pytest.mark.parametrize("damage", [lambda c: c + b"more", lambda c: c[:-1], lambda c: c[:99] + b"x" + c[100:]])
def test_saving_a_block_replaces_a_damaged_one(disk: BlockFiles, damage: Callable[[bytes], bytes]) -> None:
    key = saved(disk)
    the_file(disk).write_bytes(damage(the_file(disk).read_bytes()))
    saved(disk)
    assert tuple(map(bytes, disk.load(key, IDS) or ())) == PARTS


def test_a_part_that_an_older_file_lacks_is_added_and_none_is_lost(disk: BlockFiles) -> None:
    key = saved(disk)
    saved(disk, parts=(b"", b"r" * 50, b""))
    assert tuple(map(bytes, disk.load(key, IDS) or ())) == (PARTS[0], b"r" * 50, PARTS[2])


def test_other_ids_other_fingerprint_other_sizes_are_misses(disk: BlockFiles, tmp_path: Path) -> None:
    key = saved(disk)
    assert disk.load(key, (*IDS[:-1], 99)) is None
    key = saved(disk)
    assert tier(tmp_path, sizes=(299, 50, 100)).load(key, IDS) is None
    key = saved(disk)
    assert tier(tmp_path, sizes=SIZES[:2]).load(key, IDS) is None
    key = saved(disk)
    other = tier(tmp_path, "weights b, f16")
    assert other.key(None, IDS) != key
    os.renames(disk.path(key), other.path(key))  # as if somebody had moved it
    assert other.load(key, IDS) is None


def test_a_key_depends_on_everything_before_it(disk: BlockFiles) -> None:
    first, other = disk.key(None, IDS), disk.key(None, IDS[::-1])
    assert disk.key(first, IDS).own != disk.key(other, IDS).own
    assert disk.key(first, IDS).own != disk.key(first, IDS[:-1]).own


def test_a_window_counts_from_the_first_position_on_where_it_hides_something(tmp_path: Path) -> None:
    """A query at p sees t > p - W and the first 64: all, while p < W + 64."""
    windows = (None, 128, 200, 320)
    chains: list[list[bytes]] = []
    for window in windows:
        disk = BlockFiles(tmp_path, "f", SIZES, window=window)
        key, chain = None, []
        for _ in range(8):
            key = disk.key(key, IDS)
            chain.append(key.own)
        chains.append(chain)
    for window, chain in zip(windows[1:], chains[1:], strict=True):
        assert window is not None
        equal = [a == b for a, b in zip(chain, chains[0], strict=True)]
        assert equal == [64 * (block + 1) <= window + 64 for block in range(8)]
    assert len({chain[-1] for chain in chains}) == len(windows)


def test_following_blocks_are_found_with_their_ids(disk: BlockFiles) -> None:
    first = saved(disk)
    after = {ids: disk.key(first, ids) for ids in ((1, 2, 3), (1, 2), (9,) * 64)}
    for ids, key in after.items():
        assert disk.save(key, ids, PARTS, CHATS)
    assert sorted(map(unpack_ids, disk.following(first))) == sorted(after)
    assert list(map(unpack_ids, disk.following(None))) == [IDS]
    assert list(disk.following(after[1, 2])) == []


def test_reading_on_gives_whole_blocks_and_then_the_one_that_shares_most(disk: BlockFiles) -> None:
    first = saved(disk)
    second = disk.key(first, (7,) * 64)
    disk.save(second, (7,) * 64, PARTS, CHATS)
    for ids in ((8,), (8, 9, 10), (8, 9), (5,) * 64):
        disk.save(disk.key(second, ids), ids, PARTS, CHATS)
    wanted = [*IDS, *(7,) * 64, 8, 9, 10, 11]
    assert [one.ids for one in disk.read_on(None, wanted)] == [IDS, (7,) * 64, (8, 9, 10)]
    assert [one.ids for one in disk.read_on(first, wanted[64:])] == [(7,) * 64, (8, 9, 10)]
    assert [one.ids for one in disk.read_on(second, wanted[128:], n_known=2)] == [(8, 9, 10)]
    assert [one.ids for one in disk.read_on(second, wanted[128:], n_known=3)] == []
    disk.path(disk.key(second, (8, 9, 10))).write_bytes(b"damaged")
    assert [one.ids for one in disk.read_on(second, wanted[128:])] == [(8, 9)]


def test_a_hostile_file_among_those_that_follow_is_no_more_than_a_miss(disk: BlockFiles) -> None:
    saved(disk)
    path = the_file(disk)
    for content in (b"", b"x", b"\xff" * 40, b"\xff" * 10_000):
        path.write_bytes(content)
        assert list(disk.read_on(None, IDS)) == list(tier(disk.root).read_on(None, IDS)) == []
        path.write_bytes(content)
        assert list(tier(disk.root).read_on(None, IDS[:60])) == []


@pytest.mark.skipif(os.name != "posix", reason="windows has no such pipes")
def test_a_pipe_in_the_place_of_a_block_is_a_miss_and_gives_way(disk: BlockFiles) -> None:
    key = saved(disk)
    path = the_file(disk)
    path.unlink()
    os.mkfifo(path)
    assert disk.load(key, IDS) is None
    assert list(tier(disk.root).read_on(None, IDS)) == []
    assert saved(tier(disk.root)) == key
    assert tuple(map(bytes, disk.load(key, IDS) or ())) == PARTS


def test_a_thousand_chats_that_begin_alike_are_opened_once(disk: BlockFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [(*range(40), n) for n in range(300)]
    for ids in texts:
        saved(disk, ids)
    opened: list[Path] = []

    def counted(path: Path) -> PackedIds:
        opened.append(path)
        return claimed_ids(path)

    monkeypatch.setattr("localrun.storage.block_files.claimed_ids", counted)
    for ids in texts[::30]:
        assert [one.ids for one in disk.read_on(None, [*ids, 1])] == [ids]
    assert len(opened) == len(texts)


SOME_IDS = st.lists(st.sampled_from([0, 1, 1 << 31, *(image_id(bytes([n] * 16), 1) for n in (1, 2))]), max_size=9)


@given(SOME_IDS, SOME_IDS)
def test_shared_ids_are_counted_as_one_by_one(a: list[int], b: list[int]) -> None:
    assert n_shared(pack_ids(a), pack_ids(b)) == common_prefix(a, b)
    assert unpack_ids(pack_ids(a)) == tuple(a)


def test_blocks_of_images_that_differ_by_a_bit_never_meet(disk: BlockFiles) -> None:
    """Nor do those that only begin alike; a block with an image follows one without, and is found by its beginning."""
    one, other = (tuple(image_ids(bytes(15) + bytes([n]), 3)) for n in (2, 3))
    first = saved(disk)
    for image in (one, other):
        key = disk.key(first, (5, *image, 6))
        disk.save(key, (5, *image, 6), PARTS, CHATS)
        assert tuple(map(bytes, disk.load(key, (5, *image, 6)) or ())) == PARTS
        assert disk.load(key, (5, *(other if image is one else one), 6)) is None
        disk.save(key, (5, *image, 6), PARTS, CHATS)
    found = list(disk.read_on(None, [*IDS, 5, *other, 7]))
    assert [each.ids for each in found] == [IDS, (5, *other, 6)]
    assert found[-1].n_shared([*IDS, 5, *other, 7]) == len(IDS) + 4
    (alone,) = disk.read_on(first, [5, *one[:1], 9])
    assert alone.ids == (5, *one, 6)


def test_following_blocks_are_searched_among_few_files(disk: BlockFiles) -> None:
    for n in range(600):
        before = BlockKey(b"", digest(str(n).encode()), 64)
        disk.save(disk.key(before, (n,)), (n,), PARTS, CHATS)
    buckets = [len(list(path.iterdir())) for path in disk.folder.iterdir() if len(path.name) == BUCKET_DIGITS]
    assert sum(buckets) == 600
    assert max(buckets) < 6


def test_a_forbidden_folder_is_a_miss_and_saving_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    disk = tier(tmp_path / "file" / "below")
    key = disk.key(None, IDS)
    with pytest.raises(OSError, match="Not a directory"):
        disk.save(key, IDS, PARTS, CHATS)
    assert disk.load(key, IDS) is None
    assert list(disk.read_on(None, IDS)) == []
    assert trim(disk.root, 0) == (0, [])


def test_leftovers_of_dead_writers_are_removed_by_writers_not_readers(disk: BlockFiles) -> None:
    saved(disk)
    left = the_file(disk).with_name("a.kv.tmp")
    left.write_bytes(b"half")
    assert len(list(stored_blocks(disk.root))) == 1
    assert left.exists()
    trim(disk.root, 1 << 30)
    assert not left.exists()


def test_a_whole_block_that_replaced_a_damaged_one_stays(disk: BlockFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading what is damaged and removing it another process may save the block again."""
    key = saved(disk)
    disk.path(key).write_bytes(b"damaged")

    @contextmanager
    def after_another(path: Path) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr("localrun.storage.block_files.locked", locked)
            saved(tier(disk.root))
        with locked(path):
            yield

    monkeypatch.setattr("localrun.storage.block_files.locked", after_another)
    assert tuple(map(bytes, disk.load(key, IDS) or ())) == PARTS
    assert disk.path(key).exists()


def test_a_chat_cleared_by_another_process_is_claimed_again(disk: BlockFiles) -> None:
    key = saved(disk)
    erase_chats(disk.root, CHATS, for_good=False)
    assert saved(disk) == key
    erase_chats(disk.root, ["b"], for_good=False)  # and all that nobody claims
    assert disk.path(key).exists()


def test_where_a_killed_writer_left_half_a_block_the_next_one_writes_all(disk: BlockFiles) -> None:
    key = saved(disk)
    path = disk.path(key)
    path.rename(path.with_name(f"{path.name}.tmp"))
    assert disk.load(key, IDS) is None
    assert saved(disk) == key
    assert tuple(map(bytes, disk.load(key, IDS) or ())) == PARTS
    assert [one.name for one in path.parent.iterdir()] == [path.name]


HAMMER = """
import random, sys, time
from pathlib import Path
from localrun.storage.block_files import BlockFiles
from localrun.storage.erase import erase_chats
from localrun.storage.trim import trim
disk = BlockFiles(Path(sys.argv[1]), "f", (3000, 500))
rng = random.Random(int(sys.argv[2]))
hits, until = 0, time.monotonic() + float(sys.argv[3])
while time.monotonic() < until or not hits:
    ids = (rng.randrange(20),) * 8
    key = disk.key(None, ids)
    parts = (bytes([ids[0]]) * 3000, bytes([ids[0] + 100]) * 500)
    match rng.randrange(6):
        case 0 | 1 | 2: disk.save(key, ids, parts, [f"chat{rng.randrange(3)}"])
        case 3: trim(disk.root, 60_000) if rng.random() < 0.1 else None
        case 4: disk.touch(key)
        case 5: erase_chats(disk.root, [f"chat{rng.randrange(3)}"], for_good=False) if rng.random() < 0.02 else None
    found = disk.load(key, ids)
    assert found is None or tuple(map(bytes, found)) == parts
    hits += found is not None
print(hits)
"""


FOLLOWED = """
import sys, time
from pathlib import Path
from localrun.storage.block_files import BlockFiles
from localrun.storage.erase import erase_chats
from localrun.storage.inventory import stored_blocks
from localrun.storage.trim import trim
root, number, until = Path(sys.argv[1]), int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
disk, n = BlockFiles(root, f"model {number if number % 2 else 0}", (300,)), 0
mine, condemned = f"chat{number}", f"condemned{number}"
while time.monotonic() < until or n == 0:
    n += 1
    ids = (n, number)
    key, parts = disk.key(None, ids), (bytes([n % 256]) * 300,)
    if number % 2:  # what was saved is there, whoever tidies
        assert disk.save(key, ids, parts, [mine]) > 0
        assert tuple(map(bytes, disk.load(key, ids))) == parts
        assert disk.claims.of(mine) >= {key.name}
        if n % 8 == 0:  # and the folders are empty again
            erase_chats(root, [mine], for_good=False)
    else:  # what was erased is gone, whoever saves
        disk.save(key, ids, parts, [f"condemned{one}" for one in range(0, 8, 2)])
        if n == 20:
            erase_chats(root, [condemned])
        if n >= 20:
            assert condemned not in disk.claims.chats()
        trim(root, 1 << 30)
print(n)
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
    trim(folder, 60_000)
    assert sum(block.nbytes for block in stored_blocks(folder)) <= 60_000


def test_eight_processes_in_one_folder(tmp_path: Path) -> None:
    hammer(tmp_path, 1.0, kill=False)


def test_saves_and_erasures_hold_beside_other_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FOLLOWED, str(tmp_path)]
    workers = [subprocess.Popen([*command, str(n), "3"], stdout=subprocess.PIPE) for n in range(8)]
    for worker in workers:
        out, _ = worker.communicate(timeout=120)
        assert worker.returncode == 0
        assert int(out) > 0
    erase_chats(tmp_path, [f"chat{n}" for n in range(8)] + [f"condemned{n}" for n in range(8)])
    assert list(stored_blocks(tmp_path)) == []


@pytest.mark.slow
def test_eight_processes_in_one_folder_some_of_them_killed(tmp_path: Path) -> None:
    hammer(tmp_path, float(os.environ.get("LOCALRUN_HAMMER_SECONDS", "10")), kill=True)
