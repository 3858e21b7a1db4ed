"""Groups of columns in any order (`g_idx`), as GPTQ leaves them that takes columns by the size of activations."""

import numpy as np

from localrun.formats.checkpoints.joined import ReadRows, misfit
from localrun.formats.checkpoints.parts import read_bytes
from localrun.formats.source import TensorInfo


def read_groups(
    read_rows: ReadRows, part: TensorInfo, n_groups: int, group: int, is_ordered: bool
) -> np.ndarray | None:
    """The group of each column; None where they lie one after the other, which a file tells by 0 or -1 for all, too.

    Raises ModelFileError for groups that there are not, and for any order where the config says that there is none.
    """
    groups = read_bytes(read_rows, part).view("<i4")
    if (groups == -1).all() or (groups == 0).all() or np.array_equal(groups, np.arange(len(groups)) // group):
        return None
    if groups.min() < 0 or groups.max() >= n_groups:
        raise misfit(part, f"names groups of which there are not as many: there are {n_groups:,}")
    if not is_ordered:
        raise misfit(part, "puts columns into groups in another order than the config says")
    return groups
