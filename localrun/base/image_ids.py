"""Ids that stand for the rows of an image among the token ids of a text.

Such an id is a whole number made of the digest of the image and the number of the row, far above every token id. So two
texts are equal where their ids are, images included.
"""

from collections.abc import Iterable, Iterator, Sequence

from localrun.base.errors import UsageError

DIGEST_BYTES = 16
_ROW_BITS = 32  # the highest of them stays free: cache/bulk.py marks keys by it
MAX_ROWS = 1 << 20  # of one image


def image_ids(digest: bytes, n_rows: int) -> list[int]:
    """The ids of all rows of an image, in their order."""
    first = image_id(digest, 0)
    return list(range(first, first + n_rows))


def image_id(digest: bytes, row: int) -> int:
    assert len(digest) == DIGEST_BYTES
    assert any(digest)
    return int.from_bytes(digest, "little") << _ROW_BITS | row


def is_image(any_id: int) -> bool:
    return any_id >> _ROW_BITS > 0


def has_images(ids: Iterable[int]) -> bool:
    return max(ids, default=0) >> _ROW_BITS > 0


def digest_of(any_id: int) -> bytes:
    """The digest of the image that a row belongs to."""
    return (any_id >> _ROW_BITS).to_bytes(DIGEST_BYTES, "little")


def images_in(ids: Sequence[int]) -> Iterator[tuple[int, bytes, int]]:
    """Every image among the ids: its place, its digest, its number of rows. Raises UsageError where rows are missing
    or out of order."""
    place = 0
    while place < len(ids):
        if not is_image(ids[place]):
            place += 1
            continue
        start, digest = place, digest_of(ids[place])
        while place < len(ids) and ids[place] == image_id(digest, place - start):
            place += 1
        if place == start:
            raise UsageError("the rows of an image are not whole, or not in their order", "begin the chat anew")
        yield start, digest, place - start


def without_images(ids: Iterable[int], token_id: int) -> list[int]:
    """The ids with that of a token in the place of every row of an image."""
    return [token_id if is_image(one) else one for one in ids]


def tokens_alone(ids: Iterable[int]) -> list[int]:
    """The ids of tokens, without rows of images."""
    return [one for one in ids if not is_image(one)]
