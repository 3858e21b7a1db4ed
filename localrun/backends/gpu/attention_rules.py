"""How kernels of attention are told what an instruction says, the same on every platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localrun.backends.gpu.scratch import UNIT_TOKENS

if TYPE_CHECKING:
    from torch import Tensor

    from localrun.backends.gpu.step_tensors import StepTensors
    from localrun.ops.instructions import Attention, RopeAppend

LOG2_E = 1.4426950408889634
NORMS = {"none": 0, "head": 1, "row": 2}  # as rope_append counts them


def rules(op: Attention) -> tuple[int, int, float, float]:
    """Window, sink window, scale and softcap as kernels take them: scores are powers of two."""
    scale = op.scale if op.softcap else op.scale * LOG2_E
    return op.window or 0, op.sink_window or 0, scale, op.softcap or 0.0


def places(op: Attention, n_units: int) -> int:
    """Units that one row may see where the longest text has `n_units`."""
    reach = op.window or op.sink_window
    return n_units if not reach else min(n_units, (reach - 2) // UNIT_TOKENS + 2 + (op.sink_window is not None))


def angles(op: RopeAppend, step: StepTensors) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """Cosines and sines, then those that queries take towards block 0; None where nothing turns."""
    if op.rope is None:
        return None, None, None, None
    plain = step.cos[op.rope], step.sin[op.rope]
    return (*plain, step.sink_cos[op.rope], step.sink_sin[op.rope]) if op.sink_query else (*plain, None, None)
