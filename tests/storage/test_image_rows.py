"""Encoded images on disk: what was written or nothing, whatever happens to files, chats and the budget."""

import os
import random
from pathlib import Path

import numpy as np
import pytest

from localrun.storage.block_files import BlockFiles
from localrun.storage.block_writer import BlockWriter
from localrun.storage.erase import erase_chats
from localrun.storage.image_rows import ImageRowFiles
from localrun.storage.inventory import codec_of, inventory, stored_blocks
from localrun.storage.label import Label
from localrun.storage.trim import trim

WIDTH, N_PARTS, BUDGET = 8, 2, 1 << 20
LABEL = Label("tiny", __file__, "Q8_0", "f16", "weights", 3)


def opened(root: Path, identity: str = "tower a") -> ImageRowFiles:
    blocks = BlockFiles(root, "model", (100,), LABEL)
    return ImageRowFiles(root, identity, LABEL, N_PARTS, WIDTH, BlockWriter(blocks, BUDGET, set()))


def parts_of(number: int, n_rows: int) -> list[bytes]:
    drawn = np.random.default_rng(number).normal(size=(N_PARTS, n_rows, WIDTH)).astype(np.float32)
    return [part.tobytes() for part in drawn]


def digest(number: int) -> bytes:
    return (number + 1).to_bytes(16, "big")


def written(root: Path, number: int, chat: str = "a", n_rows: int = 3) -> None:
    files = opened(root)
    files.save(digest(number), n_rows, parts_of(number, n_rows), chat)
    files.writer.close(())
    assert files.writer.problem == ""


def found(root: Path, number: int, n_rows: int = 3, identity: str = "tower a") -> list[bytes] | None:
    files = opened(root, identity)
    read = files.load(digest(number), n_rows)
    files.writer.close(())
    return None if read is None else [bytes(part) for part in read]


def test_rows_are_found_by_digest_number_of_rows_and_tower_alone(tmp_path: Path) -> None:
    written(tmp_path, 1)
    assert found(tmp_path, 1) == parts_of(1, 3)
    assert found(tmp_path, 2) is found(tmp_path, 1, n_rows=4) is found(tmp_path, 1, identity="tower b") is None
    (model,) = inventory(tmp_path)
    assert (model.label.codec, model.label.model, [chat.chat for chat in model.chats]) == ("images", "tiny", ["a"])
    assert codec_of(tmp_path, "a", Path(LABEL.path), LABEL.precision, LABEL.numerics) is None


@pytest.mark.parametrize("at", [0, 30, 60, -1])
def test_a_damaged_file_is_nothing_and_said(at: int, tmp_path: Path) -> None:
    written(tmp_path, 1)
    (block,) = stored_blocks(tmp_path)
    data = bytearray(Path(block.path).read_bytes())
    data[at] ^= 1
    Path(block.path).write_bytes(data)
    files = opened(tmp_path)
    assert files.load(digest(1), 3) is None
    assert "damaged" in files.notes[0]
    files.writer.close(())
    written(tmp_path, 1)
    assert found(tmp_path, 1) == parts_of(1, 3)


def test_a_projector_never_reads_the_rows_of_another_under_its_name(tmp_path: Path) -> None:
    """A file put in the place of another image's is one that was damaged."""
    written(tmp_path, 1)
    written(tmp_path, 2)
    one, other = (Path(block.path) for block in stored_blocks(tmp_path))
    one.write_bytes(other.read_bytes())
    assert [found(tmp_path, 1), found(tmp_path, 2)].count(None) == 1


def test_any_order_of_writes_erasures_damage_and_trims_is_that_of_plain_sets(tmp_path: Path) -> None:
    """Brute force: an image is on disk as long as a chat has it, nobody damaged it, and there is room."""
    dice = random.Random(7)
    there: set[int] = set()
    claims: dict[str, set[int]] = {chat: set() for chat in "abc"}  # a chat keeps them until nothing of it is there

    def tidied() -> dict[str, set[int]]:
        return {chat: has if has & there else set() for chat, has in claims.items()}

    for _ in range(150):
        number, chat = dice.randrange(6), dice.choice("abc")
        match dice.randrange(5):
            case 0 | 1:
                written(tmp_path, number, chat)
                there.add(number)
                claims[chat].add(number)
            case 2:
                erase_chats(tmp_path, [chat], for_good=False)
                claims[chat] = set()
                there &= set().union(*claims.values())
                claims = tidied()
            case 3 if there:
                os.truncate(dice.choice([block.path for block in stored_blocks(tmp_path)]), dice.randrange(200))
                (gone,) = (one for one in there if found(tmp_path, one) is None)
                there.remove(gone)
            case _:
                _, removed = trim(tmp_path, dice.choice((BUDGET, 700)))
                left = {one for one in there if found(tmp_path, one) is not None}
                assert len(left) == len(there) - len(removed)
                there = left
                claims = tidied() if removed else claims
        for one in range(6):
            assert found(tmp_path, one) == (parts_of(one, 3) if one in there else None)
