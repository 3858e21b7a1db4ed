"""What a full disk cache gives up: nothing that leaves another block of no use."""

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localrun.storage.block_file import BlockKey
from localrun.storage.block_files import BlockFiles
from localrun.storage.claims import Claims
from localrun.storage.inventory import LOCK, StoredBlock, fingerprints, stored_blocks
from localrun.storage.label import Label
from localrun.storage.trim import in_order, known_total, note_total, tidy, trim

SIZES = (1000,)
PART = (bytes(1000),)


def grow(disk: BlockFiles, texts: list[str], chat: str = "a") -> dict[str, BlockKey]:
    """Each text is a chain of blocks, a letter each; equal beginnings are shared. Gives the key of every prefix."""
    keys: dict[str, BlockKey] = {}
    for text in texts:
        for n in range(1, len(text) + 1):
            before = keys.get(text[: n - 1])
            keys[text[:n]] = disk.key(before, (ord(text[n - 1]),))
            disk.save(keys[text[:n]], (ord(text[n - 1]),), PART, [chat])
    return keys


def left(disk: BlockFiles, keys: dict[str, BlockKey]) -> set[str]:
    return {text for text, key in keys.items() if disk.path(key).exists()}


def used(disk: BlockFiles, keys: dict[str, BlockKey], **seconds: int) -> None:
    for text, at in seconds.items():
        os.utime(disk.path(keys[text]), (at, at))


TREES = st.lists(st.text("abc", min_size=1, max_size=6), min_size=1, max_size=8)


@settings(max_examples=300, deadline=None)
@given(TREES, st.randoms(use_true_random=False))
def test_after_any_removal_what_each_block_follows_is_there_and_older_texts_went_first(
    texts: list[str], rng: random.Random
) -> None:
    prefixes = sorted({text[:n] for text in texts for n in range(1, len(text) + 1)})
    times = {prefix: float(rng.randrange(10)) for prefix in prefixes}
    blocks = [StoredBlock("", prefix[:-1], prefix, prefix, 1, times[prefix]) for prefix in prefixes]
    rng.shuffle(blocks)
    order = in_order(blocks)
    assert sorted(block.own for block, _ in order) == prefixes
    latest = {prefix: max(t for other, t in times.items() if other.startswith(prefix)) for prefix in prefixes}
    assert all(when == latest[block.own] for block, when in order)
    for n in range(len(order) + 1):
        kept = {block.own for block, _ in order[n:]}
        assert all(prefix[:end] in kept for prefix in kept for end in range(1, len(prefix)))
        leaves_gone = [latest[block.own] for block, _ in order[:n]]
        assert max(leaves_gone, default=0.0) <= min((latest[prefix] for prefix in kept), default=10.0)


def test_a_chain_one_block_over_the_budget_loses_its_end(tmp_path: Path) -> None:
    disk = BlockFiles(tmp_path, "f", SIZES)
    keys = grow(disk, ["abcdefghijklmnopqrst"])
    one = next(stored_blocks(tmp_path)).nbytes
    nbytes, removed = trim(tmp_path, 19 * one)
    assert nbytes == 19 * one
    assert [block.own for block in removed] == [keys["abcdefghijklmnopqrst"].own.hex()]
    assert left(disk, keys) == set(keys) - {"abcdefghijklmnopqrst"}


def test_the_use_of_a_text_is_the_use_of_all_that_it_follows(tmp_path: Path) -> None:
    disk = BlockFiles(tmp_path, "f", SIZES)
    now = int(time.time())
    keys = grow(disk, ["abc", "abd", "xyz"])
    used(disk, keys, a=now - 900, ab=now - 900, abc=now - 800, abd=now - 100, x=now - 500, xy=now - 400, xyz=now - 300)
    one = next(stored_blocks(tmp_path)).nbytes
    expected = [{"abc"}, {"abc", "xyz"}, {"abc", "xyz", "xy"}, {"abc", "xyz", "xy", "x"}]
    for n, gone in enumerate(expected, 1):
        trim(tmp_path, (len(keys) - n) * one)
        assert left(disk, keys) == set(keys) - gone


def test_unreachable_blocks_are_trimmed_first(tmp_path: Path) -> None:
    disk = BlockFiles(tmp_path, "f", SIZES)
    now = int(time.time())
    keys = grow(disk, ["abcd", "xy"])
    used(disk, keys, x=now - 900, xy=now - 900)
    disk.path(keys["ab"]).unlink()
    one = next(stored_blocks(tmp_path)).nbytes
    trim(tmp_path, 3 * one)
    assert left(disk, keys) == {"a", "x", "xy"}


def test_unusable_blocks_are_trimmed_first(tmp_path: Path) -> None:
    weights = tmp_path / "other.gguf"
    weights.touch()
    root = tmp_path / "kv"
    now = Label("m", str(tmp_path / "m.gguf"), weights="new", numerics=4)
    labels = {
        "mine": now,
        "other model": Label("o", str(weights), weights="w", numerics=4),
        "old weights": Label("m", str(tmp_path / "m.gguf"), weights="old", numerics=4),
        "old numerics": Label("o", str(weights), weights="w", numerics=3),
        "deleted model": Label("d", str(tmp_path / "deleted.gguf"), weights="w", numerics=4),
    }
    (tmp_path / "m.gguf").touch()
    tiers = {name: BlockFiles(root, name, SIZES, label) for name, label in labels.items()}
    keys = {name: grow(disk, ["ab"]) for name, disk in tiers.items()}
    unlabelled = BlockFiles(root, "from before there were labels", SIZES)
    grow(unlabelled, ["ab"])
    (unlabelled.folder / "label.json").unlink()
    an_hour_ago = int(time.time()) - 3600
    for name in ("mine", "other model"):  # used longer ago than all that is of no use
        used(tiers[name], keys[name], a=an_hour_ago, ab=an_hour_ago)
    one = next(stored_blocks(root)).nbytes
    trim(root, 4 * one, now)
    assert {name for name, disk in tiers.items() if left(disk, keys[name])} == {"mine", "other model"}
    assert fingerprints(root) == sorted(tiers[n].folder for n in ("mine", "other model"))


def test_blocks_unused_for_a_month_go_with_their_labels(tmp_path: Path) -> None:
    disk = BlockFiles(tmp_path, "f", SIZES)
    keys = grow(disk, ["ab"], "old") | grow(disk, ["xy"], "new")
    month_ago = int(time.time()) - 31 * 86400
    used(disk, keys, a=month_ago, ab=month_ago, x=month_ago)
    assert trim(tmp_path, 1 << 30)[0] > 0
    assert left(disk, keys) == {"x", "xy"}
    assert Claims(disk.folder).chats() == ["new"]


def test_names_that_go_round_in_a_circle_are_of_no_use_and_go(tmp_path: Path) -> None:
    blocks = [StoredBlock("f", *pair, "", 1, 1.0) for pair in (("a", "b"), ("b", "a"), ("c", "c"), ("f", "z"))]
    assert [block.own for block, _ in in_order(blocks)][-1] == "z"


@pytest.mark.parametrize("below", ["", "00"])
def test_an_older_layout_is_removed_with_the_rest(tmp_path: Path, below: str) -> None:
    folder = tmp_path / ("0" * 32) / below
    folder.mkdir(parents=True)
    (folder / f"{'0' * 32}-{'1' * 32}.kv").write_bytes(b"x" * 100)
    nbytes, removed = trim(tmp_path, 0)
    assert (nbytes, [block.nbytes for block in removed]) == (0, [100])
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


def test_a_start_knows_the_total_of_the_last_end_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_total(tmp_path) is None
    note_total(tmp_path, 100)
    assert known_total(tmp_path) is None, "nobody has looked yet"
    note_total(tmp_path, 200, looked=True)
    note_total(tmp_path, 300)
    assert known_total(tmp_path) == 300
    now = time.time()
    monkeypatch.setattr("localrun.storage.trim.time.time", lambda: now + 86401)
    note_total(tmp_path, 400)
    assert known_total(tmp_path) is None, "the last look was a day ago"
    (tmp_path / "total").write_text("damaged")
    assert known_total(tmp_path) is None


def test_a_folder_that_another_process_tidied_away_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localrun.storage.trim.fingerprints", lambda root: [root / ("ab" * 16)])
    tidy(tmp_path, [])
