"""The card of a model: kind, purpose and fit in a few lines. No widgets."""

import time
from pathlib import Path

from textual.content import Content

from localrun.base.dataclass import dataclass
from localrun.base.errors import LocalrunError
from localrun.base.image_words import cost_words
from localrun.base.settings import read_settings
from localrun.fit.estimate import FitRow
from localrun.hub.catalogue import read_catalogue, shown_name
from localrun.hub.catalogue_rows import CatalogueRow
from localrun.hub.disk.stored import StoredModel
from localrun.hub.fits import fit_stored
from localrun.hub.projectors import images_on_disk
from localrun.hub.verdicts import in_codec
from localrun_tui.screens.models.memory_gauge import gauge
from localrun_tui.screens.models.model_rows import size_of, speed, speed_words
from localrun_tui.screens.models.verdicts import MEANING
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.fact import lines

_MUTED = "$foreground-muted"
_ROOM = 76  # cells of a line in a terminal of 80


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Empty texts, 0 and None are not known. `max_context` in tokens; `place` is where it is, or comes from."""

    title: str
    arch: str = ""
    n_params: int = 0
    max_context: int = 0
    licence: str = ""
    date: str = ""
    note: str = ""
    place: str = ""
    fit: FitRow | None = None
    images: str = ""  # what they cost; empty: it sees none

    def content(self) -> Content:
        """Six lines at most, and more of a long place."""
        context = f"up to {self.max_context:,} tokens" if self.max_context else ""
        params = f"{size_of(self.n_params)} parameters" if self.n_params else ""
        licence = f"licence {self.licence}" if self.licence else ""
        about = " · ".join(filter(None, (params, self.arch, context, licence, self.date)))
        first = say(self.title, "bold") + say(f"  {about}")
        shown = [first, *([say(self.note)] if self.note else [])]
        if self.images:
            shown.append(say(f"images: {self.images}", _MUTED))
        if self.fit is not None:
            shown.append(gauge(self.fit))
        fits = MEANING[self.fit.verdict] if self.fit else ""
        fits += f", {speed_words(self.fit)}" if self.fit and speed(self.fit) else ""
        last = " · ".join(filter(None, (fits, self.place)))
        return lines(*shown, *(say(words, _MUTED) for words in ([last] if len(last) <= _ROOM else [fits, self.place])))


def stored_card(model: StoredModel, budget: int) -> ModelCard:
    """Reads the head of its file. What cannot be read is left out."""
    from localrun.fit.shape import shape_of
    from localrun.formats.detect import open_model_file

    entry = next((one for one in read_catalogue().values() if _is_of(model.name, one)), None)
    is_ours = model.source == "builtin"  # its file is a part of localrun
    card = ModelCard(
        f"{shown_name(model.name)} {model.precision}".strip(),
        licence=entry["licence"] if entry else "",
        note=entry["note"] if entry else "",
        date="" if is_ours else _date(model.path),
        place="" if is_ours else str(model.path),
    )
    try:
        source = open_model_file(model.path)
        shape = shape_of(source)
        fit, codec = fit_stored([model], budget), read_settings().kv
    except LocalrunError:
        return card
    mine = [row for row in fit.rows if row.precision == model.precision] or list(fit.rows)
    best = next((row for row in mine if row.recommended), None) or max(
        (row for row in mine if row.verdict == "fits"), key=lambda row: row.ctx, default=mine[0] if mine else None
    )
    config = shape.config
    images = images_on_disk(model)
    return ModelCard(
        card.title,
        config.arch,
        source.n_params,
        config.max_context,
        card.licence,
        card.date,
        card.note,
        card.place,
        in_codec(fit, best, codec) if best else None,
        cost_words(images.as_fields()) if images else "",
    )


def catalogue_card(row: CatalogueRow) -> ModelCard:
    """Card of a model from the catalogue, with the precision that this machine would run."""
    entry, best = row.entry, row.best
    thinks = " Thinks first." if entry.get("thinking") else ""
    sees = " Sees images." if entry.get("sees") else ""
    return ModelCard(
        f"{entry['title']} {best.precision if best else ''}".strip(),
        row.shape.config.arch if row.shape else "",
        row.n_params,
        row.shape.config.max_context if row.shape else 0,
        entry["licence"],
        note=(thinks + sees).strip(),  # what else it is good for is in its row
        place=entry.get("gguf") or entry.get("safetensors", ""),
        fit=best,
    )


def _is_of(name: str, entry: object) -> bool:
    assert isinstance(entry, dict)
    names = (entry.get("gguf", ""), entry.get("safetensors", ""))
    return name.lower() in {one.lower() for one in names if one} or (name == "builtin" and "files" in entry)


def _date(path: Path) -> str:
    """Date of the file."""
    try:
        return time.strftime("since %Y-%m-%d", time.localtime(path.stat().st_mtime))
    except OSError:
        return ""
