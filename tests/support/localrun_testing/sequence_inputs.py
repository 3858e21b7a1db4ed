"""Where a sequence's blocks are, without a cache that counts them."""

from collections.abc import Sequence

from localrun.ops.interface import SequenceInput


def sequence_input(blocks: Sequence[tuple[int, ...]], length: int, n_groups: int) -> SequenceInput:
    """Block tables by group from blocks by position."""
    table = tuple(tuple(block[group] for block in blocks) for group in range(n_groups))
    return SequenceInput(length, table, first=(0,) * n_groups)
