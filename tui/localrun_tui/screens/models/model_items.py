"""Rows of models for their lists, and the text about the highlighted one."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from textual.content import Content

from localrun.base.units import gib
from localrun.hub.catalogue import shown_name
from localrun.hub.catalogue_rows import CatalogueRow
from localrun_tui.screens.models.model_card import ModelCard, catalogue_card
from localrun_tui.screens.models.model_rows import (
    SOURCES,
    DiskRow,
    HubRow,
    ServerModel,
    copies_note,
    size_of,
    sizes,
    speed,
    used_when,
)
from localrun_tui.screens.models.verdicts import CANNOT, cannot_be_run, verdict_text
from localrun_tui.widgets.columns import Column, Row, say
from localrun_tui.widgets.fact import lines
from localrun_tui.widgets.model_list import Item

DISK_COLUMNS = (
    Column("NAME"),
    Column("PRECISION", 10),
    Column("SIZE", 9, right=True),
    Column("USED", 11, from_width=64),
    Column("SOURCE", 13, from_width=88),  # below that the names need the room
)
CATALOGUE_COLUMNS = (
    Column("MODEL"),
    Column("PARAMS", 7, right=True),
    Column("LICENCE", 11, from_width=72),
    Column("HERE", 9),
    Column("BEST AS", 8, from_width=64),
    Column("SPEED", 11, right=True),
)
HUB_COLUMNS = (
    Column("REPOSITORY"),
    Column("PARAMS", 7, right=True),
    Column("LICENCE", 12, from_width=90),
    Column("DOWNLOADS", 10, right=True),
    Column("HERE", 9),
)
REMOTE_COLUMNS = (
    Column("MODEL"),
    Column("CONTEXT", 9, right=True),
    Column("SERVER", 16),
    Column("ADDRESS", 30, from_width=100),
)
_MUTED = "$foreground-muted"


def disk_items(rows: Sequence[DiskRow], default: Path | None = None) -> list[Item[DiskRow]]:
    """Rows with the names that are shown everywhere; with the owners of repositories where two would be named alike."""
    largest = max((row.model.bytes for row in rows), default=0)
    shown = {row.model.name: shown_name(row.model.name) for row in rows}
    alike = Counter(shown.values())
    titles = {name: short if alike[short] == 1 else name for name, short in shown.items()}
    return [_disk_item(row, titles[row.model.name], row.model.path == default, largest) for row in rows]


def _disk_item(row: DiskRow, title: str, is_default: bool, largest: int) -> Item[DiskRow]:
    model = row.model
    name = say(title)
    if is_default:
        name += Content.styled("  default", "$text-accent")
    if row.obstacle:
        name += Content.styled("  cannot be run", "$text-warning")
    if row.sees:
        name += Content.styled("  sees", _MUTED)
    cells = (
        name,
        say(model.precision or "?"),
        say(gib(model.bytes, largest)),
        say(used_when(model.last_used), _MUTED),
        say(SOURCES[model.source], _MUTED),
    )
    return Item(f"{model.path}:{model.name}", Row(DISK_COLUMNS, cells), row, words=model.name)


def disk_detail(row: DiskRow, card: ModelCard | None) -> Content:
    about = card.content() if card else say("reading what it is…", _MUTED)
    note = cannot_be_run(row.obstacle, row.model.name) if row.obstacle else copies_note(row)
    return lines(say(note, "$text-warning"), about) if note else about


def catalogue_item(row: CatalogueRow, is_suggested: bool) -> Item[CatalogueRow]:
    name = say(row.entry["title"])
    if is_suggested:
        name += Content.styled("  ★", "$text-accent")
    if row.on_disk:
        name += Content.styled("  on disk", _MUTED)
    if row.entry.get("sees"):
        name += Content.styled("  sees", _MUTED)
    cells = (
        name,
        say(size_of(row.n_params)),
        say(row.entry["licence"], _MUTED),
        CANNOT if row.obstacle else verdict_text(row.verdict if row.n_params else None),
        say(row.best.precision if row.best else ""),
        say(speed(row.best)),
    )
    return Item(row.name, Row(CATALOGUE_COLUMNS, cells, say(row.entry["note"], _MUTED)), row)


def catalogue_detail(row: CatalogueRow, is_suggested: bool) -> Content:
    about = catalogue_card(row).content()
    if row.obstacle:
        return lines(say(cannot_be_run(row.obstacle, row.name, row.n_params), "$text-warning"), about)
    if row.best is None:
        return lines(say("none of its precisions fits the free memory of this machine", "$text-error"), about)
    star = "★ begin with it: " if is_suggested else ""
    return lines(say(f"{star}{row.best.precision}, {sizes(row.best)}"), about)


def hub_item(row: HubRow) -> Item[HubRow]:
    found = row.found
    name = say(found.repo)
    if found.gated:
        name += Content.styled("  asks for consent", "$text-warning")
    if found.sees:
        name += Content.styled("  sees", _MUTED)
    cells = (
        name,
        say(size_of(found.n_params)),
        say(found.licence, _MUTED),
        say(f"{found.downloads:,}"),
        CANNOT if row.obstacle else verdict_text(row.verdict, about=True),
    )
    return Item(found.repo, Row(HUB_COLUMNS, cells), row)


def hub_detail(row: HubRow) -> Content:
    found = row.found
    context = f"{found.max_context:,} tokens of context at most" if found.max_context else ""
    licence = f"licence {found.licence}" if found.licence else "no licence named"
    about = " · ".join(part for part in (found.arch, context, licence) if part)
    gate = "its authors want you to accept a licence on its page first" if found.gated else ""
    gate = cannot_be_run(row.obstacle, found.repo, found.n_params) if row.obstacle else gate
    return lines(say(about, _MUTED), say(gate, "$text-warning")) if gate else say(about, _MUTED)


def remote_item(row: ServerModel) -> Item[ServerModel]:
    endpoint = row.endpoint
    name = say(row.problem, "$text-warning") if row.problem else say(row.model)
    ctx = say(f"{row.ctx:,}" if row.ctx else "", _MUTED)
    cells = (name, ctx, say(endpoint.name, _MUTED), say(endpoint.url, _MUTED))
    return Item(f"{endpoint.name}\n{row.model}", Row(REMOTE_COLUMNS, cells), row)


def remote_detail(row: ServerModel) -> Content:
    if row.problem:
        return lines(say(row.problem, "$text-warning"), say(row.hint, _MUTED))
    where = say(f"runs on {row.endpoint.name}: what you write is sent to {row.endpoint.url}", "$text-warning")
    return lines(where, say(row.about, _MUTED)) if row.about else where
