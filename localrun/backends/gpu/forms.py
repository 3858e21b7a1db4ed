"""Forms in which the operations of a program pass numbers to each other. Torch-free."""

from collections.abc import Callable, Sequence

from localrun.backends.gpu.supports import gathers, is_mixed
from localrun.base.dataclass import dataclass
from localrun.ops.cache_layer import CacheLayer
from localrun.ops.instructions import Instruction, Linear, Moe, Norm
from localrun.ops.layouts import Packed
from localrun.ops.recording import Recorded
from localrun.ops.widths import slot_widths


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is kept: `width` numbers a row, as f32, quantised, or both."""

    width: int
    plain: bool
    coded: bool

    def nbytes(self, rows: int) -> int:
        return (plain_bytes(self.width) * self.plain + coded_bytes(self.width) * self.coded) * rows


def plain_bytes(width: int) -> int:
    return 4 * width


def coded_bytes(width: int) -> int:
    """Codes, and for 32 of them a scale and a sum, of whole tiles of 64 columns."""
    n_codes = -(-width // 64) * 64
    return n_codes + n_codes // 32 * 8


def slot_forms(
    recorded: Sequence[Recorded],
    layers: Sequence[CacheLayer],
    reads_codes: Callable[[Packed], bool],
    in_bulk: bool = False,
) -> dict[int, Form]:
    """Forms of all slots but the logits.

    `reads_codes`: whether linears with a matrix read quantised rows; with `in_bulk` they may read any of them as f32,
    too.
    """
    plain, coded = slots_read(recorded, reads_codes)
    plain |= coded if in_bulk else set()
    widths = slot_widths(recorded[:-1], layers)
    return {slot: Form(width, slot in plain, slot in coded) for slot, width in widths.items()}


def slots_read(recorded: Sequence[Recorded], reads_codes: Callable[[Packed], bool]) -> tuple[set[int], set[int]]:
    """Slots that are wanted as f32, and those that some linear reads quantised: norms alone give these at once."""
    plain, coded = set[int](), set[int]()
    for each in recorded:
        op = each.instruction
        if not isinstance(op, Norm):
            plain.update(each.results)
        for name, slot in each.reads.items():
            forms = {reads_codes(weight) for weight in matrices_of(op, name)} or {False}
            if True in forms:
                coded.add(slot)
            if False in forms or isinstance(op, Moe):  # routers are floats in most files
                plain.add(slot)
    return plain, coded


def matrices_of(op: Instruction, operand: str) -> list[Packed]:
    """The matrices that kernels multiply an operand with."""
    if isinstance(op, Linear) and operand == "a" and not gathers(op):
        return [weight.packed for weight in op.weights]
    if not isinstance(op, Moe) or not is_mixed(op) or operand not in ("a", "chosen_by"):
        return []
    if operand == "chosen_by" or op.shared is None:
        return [op.router.weight, *(weight.packed for weight in op.experts.widening if operand == "a")]
    widening = (*op.experts.widening, *op.shared.expert.widening)
    return [op.router.weight, *(weight.packed for weight in widening), *filter(None, [op.shared.gate])]
