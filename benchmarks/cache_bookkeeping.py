"""What the bookkeeping of the KV cache costs a turn: no model, no keys and values, only who holds which block.

python -m benchmarks.cache_bookkeeping [--chats 1000] [--files 100000]
"""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from localrun.cache.groups import Group
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.store import CacheStore
from localrun.ops.kv import BLOCK_TOKENS
from localrun.storage.block_file import pack
from localrun.storage.block_files import BlockFiles
from localrun.storage.disk_cache import DiskCache
from localrun.storage.trim import trim

SYSTEM = 40  # tokens that all chats begin with
TURN = 100  # tokens of a question and its answer

Seconds = list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chats", type=int, default=1000)
    parser.add_argument("--files", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, window in (("full layers", None), ("windowed layers", 512)):
            report(f"{options.chats:,} chats in memory, {name}", *turns(options.chats, window, None))
        disk = fill(root, options.files)
        everything = f"{options.chats:,} chats and {options.files:,} files"
        report(f"{everything}, a pause after each turn", *turns(options.chats, 512, disk))
        again = BlockFiles(root, "again", disk.sizes)
        report(f"{everything}, turn after turn", *turns(options.chats, 512, again, pauses=False))
        saving(BlockFiles(root, "saved", disk.sizes))
        for what in ("looking for what follows the beginning", "looking again"):
            with timed(what):
                list(disk.following(None))
        with timed("looking through all files to trim"):
            trim(root, 1 << 40)
        for n_tokens in (125_000, 1_000_000):
            long_prompt(n_tokens, BlockFiles(root, "long", [8]))


def turns(n_chats: int, window: int | None, disk: BlockFiles | None, pauses: bool = True) -> tuple[Seconds, Seconds]:
    """Seconds of bookkeeping of the second turn of each chat, in a memory that holds a tenth of them, and the seconds
    of reading files, which the engine's thread does not wait for.

    `pauses`: blocks are written between turns, as while a user reads; else beside them.
    """
    rng = random.Random(0)
    groups = [Group((0,), AttentionCache(1, 8, 8)), *([Group((1,), AttentionCache(1, 8, 8, window))] if window else [])]
    store = CacheStore(groups, [n_chats] * len(groups))
    cache = opened(store, disk) if disk else None
    system = rng.choices(range(1000), k=SYSTEM)
    chats = [system + rng.choices(range(1000), k=rng.randrange(400, 800)) for _ in range(n_chats)]
    seconds, reading = [], []
    for turn in range(2):
        for n, chat in enumerate(chats):
            n_prompt = len(chat)
            chat += rng.choices(range(1000), k=TURN)
            started = time.perf_counter()
            missing = cache.missing(chat) if cache else None
            found, read = [], 0.0
            if cache is not None and missing is not None:
                read_from = time.perf_counter()
                found = list(cache.find(missing))
                read = time.perf_counter() - read_from
                cache.insert(chat, found)
            sequence = store.open(chat, n_prompt, f"chat{n}")
            done = sequence.reuse.start
            while done < len(chat):
                end = min(done + BLOCK_TOKENS, len(chat))
                store.extend(sequence, done, end)
                store.commit(sequence, chat, end)
                done = end
            store.close(sequence, chat)
            if turn:
                seconds.append(time.perf_counter() - started - read)
                reading.append(read)
            if cache is not None and pauses:
                catch_up(cache)
    if cache is not None:
        cache.close()
    return seconds, reading


def catch_up(cache: DiskCache) -> None:
    while cache.save_one() == 0.0 or cache.writer.n_written < cache.writer.n_given:
        time.sleep(0.001)


def saving(disk: BlockFiles) -> None:
    rng, key, n_blocks = random.Random(3), None, 3000
    blocks = [rng.choices(range(1000), k=BLOCK_TOKENS) for _ in range(n_blocks)]
    started = time.perf_counter(), time.thread_time()
    for n, ids in enumerate(blocks):
        key = disk.key(key if n % 10 else None, ids)
        disk.save(key, ids, [b"x" * 8] * 2, [f"chat{n // 10}"])
    elapsed, busy = time.perf_counter() - started[0], time.thread_time() - started[1]
    each = f"{1000 * elapsed / n_blocks:.2f} ms, {1000 * busy / n_blocks:.2f} ms of a core"
    print(f"writing a block in the background: {each}")


def opened(store: CacheStore, disk: BlockFiles) -> DiskCache:
    return DiskCache(store, disk, lambda pool, block: b"x" * 8, lambda pool, block, data: None, 1 << 40)


def fill(root: Path, n_files: int) -> BlockFiles:
    """A tier with so many blocks in chains of a hundred."""
    disk = BlockFiles(root, "many", [8, 8])
    rng, key = random.Random(1), None
    for n in range(n_files):
        ids = rng.choices(range(1000), k=BLOCK_TOKENS)
        key = disk.key(key if n % 100 else None, ids)
        path = disk.path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(pack(disk.fingerprint, ids, [b"x" * 8] * 2)))
    return disk


def long_prompt(n_tokens: int, disk: BlockFiles) -> None:
    store = CacheStore([Group((0,), AttentionCache(1, 8, 8))], [n_tokens // BLOCK_TOKENS + 10])
    cache = opened(store, disk)
    ids = random.Random(2).choices(range(1000), k=n_tokens)
    sequence = store.open(ids, None, "long")
    store.extend(sequence, 0, len(ids))
    store.close(sequence, ids)
    more = [*ids, *range(200)]
    with timed(f"restoring {n_tokens:,} tokens that are all in memory"):
        cache.restore(ids)
    with timed(f"restoring {n_tokens:,} tokens in memory and 200 more that are nowhere"):
        cache.restore(more)
    with timed(f"opening a sequence of {n_tokens:,} tokens in memory"):
        sequence = store.open(more, None, "long")
    store.close(sequence, more[: sequence.reuse.n_tokens])
    cache._unsaved.clear()
    cache.close()


@contextmanager
def timed(what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    print(f"{what}: {1000 * (time.perf_counter() - started):.2f} ms")


def report(what: str, seconds: Seconds, reading: Seconds) -> None:
    worst = sorted(seconds)[int(0.99 * len(seconds))]
    files = f", reading files beside it {1000 * median(reading):.2f} ms" if any(reading) else ""
    print(f"{what}: {1000 * median(seconds):.2f} ms a turn (99th percentile {1000 * worst:.2f} ms){files}")


if __name__ == "__main__":
    main()
