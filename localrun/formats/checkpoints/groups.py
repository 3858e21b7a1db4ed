"""Groups of columns in any order (`g_idx`), as GPTQ writes them when it sorts columns by activation size."""

import numpy as np

from localrun.formats.checkpoints.joined import ReadRows, misfit
from localrun.formats.checkpoints.parts import read_bytes
from localrun.formats.source import TensorInfo


def read_groups(
    read_rows: ReadRows, part: TensorInfo, n_groups: int, group: int, is_ordered: bool
) -> np.ndarray | None:
    """Group of each column; None where groups are contiguous, which a file also writes as all 0 or all -1.

    Raises ModelFileError for invalid groups, and for any order where the config says there is none.
    """
    groups = read_bytes(read_rows, part).view("<i4")
    if (groups == -1).all() or (groups == 0).all() or np.array_equal(groups, np.arange(len(groups)) // group):
        return None
    if groups.min() < 0 or groups.max() >= n_groups:
        raise misfit(part, f"names groups of which there are not as many: there are {n_groups:,}")
    if not is_ordered:
        raise misfit(part, "puts columns into groups in another order than the config says")
    return groups
