"""The table of `localrun fit`: memory by precision and context, and what its numbers mean."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from localrun.base.image_words import cost_words
from localrun.base.units import gib, tps
from localrun.cli.console import write, write_table
from localrun.fit.estimate import FLOOR_MEANING, Fit, FitRow, speed_mark
from localrun.fit.precisions import is_extreme
from localrun.fit.quality import MEANING, kld_text, weight_kld

if TYPE_CHECKING:
    from localrun.engine.image_cost import ImageCost


def show_fit(name: str, machine: dict[str, Any], table: Fit) -> None:
    """Show what fits this machine, and what is recommended."""
    free = "if all of it is free" if machine["what_if"] else f"free of {gib(machine['total_bytes'])}"
    write(f"{name}: memory by context, with {gib(machine['budget_bytes'])} {free}\n\n")
    contexts = sorted({row.ctx for row in table.rows})
    header = ("PRECISION", "KV", "WEIGHTS", "KLD", *(f"{ctx:,}" for ctx in contexts), "LONGEST", "SPEED")
    keys = dict.fromkeys((row.precision, row.kv_codec) for row in table.rows)
    of_keys = [{row.ctx: row for row in table.rows if (row.precision, row.kv_codec) == key} for key in keys]
    largest = max((row.total_bytes for row in table.rows), default=0)
    write_table([header, *(_line([of_key[ctx] for ctx in contexts], largest) for of_key in of_keys)])
    _show_meaning(table.rows)
    _show_recommended(table)


def _line(rows: list[FitRow], largest: int) -> tuple[str, ...]:
    """The cells of a precision and a codec, by context, in the unit of the `largest`."""
    first = rows[0]
    nats = weight_kld(first.precision)
    return (
        first.precision,
        first.kv_codec,
        ("≈" if first.approximate else "") + gib(first.weights_bytes, largest),
        "-" if nats is None else kld_text(nats),
        *(_cell(row, largest) for row in rows),
        f"{first.max_ctx:,}" if first.max_ctx else "-",
        speed_mark(first) + tps(first.est_decode_tps) if any(row.verdict != "no" for row in rows) else "-",
    )


def _show_meaning(rows: Sequence[FitRow]) -> None:
    """Show what marks and numbers of the table mean."""
    from_disk = " with * weights stay on disk, and it is slow;" if any(row.verdict == "disk" for row in rows) else ""
    write(f"\nA number fits; (in brackets) only with everything else closed;{from_disk} - does not.\n")
    if rows and rows[0].adapter_bytes:
        write(f"Weights include {gib(rows[0].adapter_bytes)} of adapters, which every token reads.\n")
    guessed, busy = any(not row.est_is_measured for row in rows), any(row.est_is_floor for row in rows)
    limits = "are estimated from the limits of this machine" if guessed else "are measured here"
    write(f"Speeds {'with ~ ' if guessed and not busy else ''}{limits}{FLOOR_MEANING if busy else ''}.\n")
    if any(weight_kld(row.precision) is not None for row in rows):
        write(f"{MEANING}\n")
    extreme = dict.fromkeys(row.precision for row in rows if is_extreme(row.precision))
    if extreme:
        write(f"About two bits per weight or fewer, answers get visibly worse: {', '.join(extreme)}.\n")


def _show_recommended(table: Fit) -> None:
    found = table.recommended
    if found is None:
        write(f"None is recommended: {table.reason}.\n")
        return
    cache = "" if found.kv_codec == "f16" else f" and the KV cache as {found.kv_codec}"
    write(f"Recommended: {found.precision} with a context of {found.ctx:,}{cache}: {table.reason}.\n")
    if found.kept_kv_bytes:
        write(f"Cached chats may use up to {gib(found.kept_kv_bytes)} more of the free memory.\n")


def _cell(row: FitRow, largest: int) -> str:
    size = gib(row.total_bytes, largest)
    return {"fits": size, "tight": f"({size})", "disk": f"{size}*", "no": "-"}[row.verdict]


def image_words(images: "ImageCost", table: Fit) -> str:
    """Tokens and memory of an image, and whether the recommended row has room for it."""
    row = table.recommended
    fits = None if row is None else row.images_fit
    room = {None: "", True: ", for which there is room", False: ", for which there is no room"}[fits]
    return f"Images: {cost_words(images.as_fields())}{room}.\n"
