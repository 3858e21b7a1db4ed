"""Groups of columns in any order (`g_idx`), as GPTQ writes them when it sorts columns by activation size.

Where the matrix is held packed, its columns are sorted by group, and what it is multiplied with is put into that order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.base.dataclass import dataclass
from localrun.formats.checkpoints.joined import (
    ROUTERS,
    Joined,
    JoinedTensor,
    ReadRows,
    appears_as,
    misfit,
)
from localrun.formats.source import TensorInfo

if TYPE_CHECKING:
    import numpy as np

_UNSORTED = (*ROUTERS, "lm_head.weight", "embed_tokens.weight")  # beside experts, and what is shared by all tokens
_OF_MIXTURES = ("expert", "shared", "switch_mlp", "sparse_moe")


def may_be_sorted(name: str) -> bool:
    """Whether a matrix is multiplied where its columns may be in an order of their own."""
    return not name.endswith(_UNSORTED) and not any(part in name for part in _OF_MIXTURES)


def read_groups(
    read_rows: ReadRows, part: TensorInfo, n_groups: int, group: int, is_ordered: bool
) -> np.ndarray | None:
    """Group of each column; None where groups are contiguous, which a file also writes as all 0 or all -1.

    Raises ModelFileError for invalid groups, and for any order where the config says there is none.
    """
    import numpy as np

    from localrun.formats.checkpoints.parts import read_bytes

    groups = read_bytes(read_rows, part).view("<i4")
    if (groups == -1).all() or (groups == 0).all() or np.array_equal(groups, np.arange(len(groups)) // group):
        return None
    if groups.min() < 0 or groups.max() >= n_groups:
        raise misfit(part, f"names groups of which there are not as many: there are {n_groups:,}")
    if not is_ordered:
        raise misfit(part, "puts columns into groups in another order than the config says")
    return groups


def sorted_columns(part: TensorInfo, groups: np.ndarray, group: int) -> np.ndarray:
    """The columns in the order of their groups. ModelFileError where a group has more or fewer than the others."""
    import numpy as np

    order = groups.argsort(kind="stable")
    if not np.array_equal(groups[order], np.arange(len(groups)) // group):
        raise misfit(part, f"names groups that do not have {group:,} columns each")
    return order


@dataclass(frozen=True)
class ColumnOrder(JoinedTensor):
    """The column of the file that each column of a sorted matrix is; `parts` is what names the groups."""

    n_groups: int
    group: int

    def read(self, read_rows: ReadRows, first_row: int, n_rows: int) -> bytearray:
        import numpy as np

        (part,) = self.parts
        groups = read_groups(read_rows, part, self.n_groups, self.group, is_ordered=True)
        order = np.arange(part.shape[0]) if groups is None else sorted_columns(part, groups, self.group)
        return bytearray(order.astype("<i4").data)


def with_order(name: str, part: TensorInfo, n_groups: int, group: int) -> Joined:
    """The order of a sorted matrix's columns, by its name."""
    order = name.removesuffix("weight") + "order"
    return {order: ColumnOrder(appears_as(order, part.shape, "I32", part), (part,), n_groups, group)}
