"""Rows of the lists of models, read from disk, catalogue and hub. No widgets; call it on a thread."""

import time
from collections.abc import Sequence
from dataclasses import replace

from localrun.base.dataclass import dataclass
from localrun.base.units import count, gib
from localrun.client.remote.endpoint import Endpoint
from localrun.fit.estimate import FitRow, Verdict, speed_mark
from localrun.hub.disk.aliases import without_aliases
from localrun.hub.disk.duplicates import find_duplicates, reclaimable
from localrun.hub.disk.library import scan
from localrun.hub.disk.obstacles import sees_images, stored_obstacle
from localrun.hub.disk.stored import StoredModel
from localrun.hub.remote.api import FoundModel
from localrun.hub.verdicts import rough_verdict
from localrun.model.capability import obstacle_of

SOURCES = {
    "builtin": "localrun",
    "models": "models folder",
    "hub": "Hugging Face",
    "lmstudio": "LM Studio",
    "ollama": "Ollama",
    "path": "a file",
}


FLOOR_WORDS = "≥: measured while others computed"


@dataclass(frozen=True, slots=True)
class DiskRow:
    """A model on disk. `copies`: in how many places the same bytes are; `extra` bytes would be free with one.

    `obstacle` here and below: why this version cannot run it.
    """

    model: StoredModel
    copies: int = 1
    extra: int = 0
    obstacle: str = ""
    sees: bool = False


@dataclass(frozen=True, slots=True)
class HubRow:
    """A find on the hub; `verdict` is a guess from the number of parameters, None where the hub does not say."""

    found: FoundModel
    verdict: Verdict | None
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class ServerModel:
    """A model on a server; or, with a `problem`, why there is none, perhaps none yet. `ctx` 0: it does not say.
    `about`: what its engine says of it.

    `endpoint` is the server as it is kept, which may name another model, or none.
    """

    endpoint: Endpoint
    model: str = ""
    problem: str = ""
    hint: str = ""
    ctx: int = 0
    asking: bool = False
    about: str = ""

    @property
    def choice(self) -> Endpoint:
        """The server, to answer with this model."""
        return replace(self.endpoint, model=self.model)


def disk_rows() -> list[DiskRow]:
    """Everything on disk, the last used first."""
    models = without_aliases(scan())
    copies = {}
    for group in find_duplicates(models):
        for model in group:
            copies[model.path] = len(group), reclaimable(group)
    rows = [
        DiskRow(model, *copies.get(model.path, (1, 0)), stored_obstacle(model), sees_images(model)) for model in models
    ]
    return sorted(rows, key=lambda row: (-(row.model.last_used or 0.0), row.model.name.lower(), row.model.bytes))


def hub_rows(found: Sequence[FoundModel], budget: int) -> list[HubRow]:
    return [
        HubRow(one, rough_verdict(one.n_params, budget) if one.n_params else None, obstacle_of(one.arch))
        for one in found
    ]


def used_when(seconds: float | None, now: float | None = None) -> str:
    """`today`, `3 days ago`, a date; empty for never."""
    if seconds is None:
        return ""
    today = time.localtime(time.time() if now is None else now)
    day = time.localtime(seconds)
    days = _day_number(today) - _day_number(day)
    if days <= 0:
        return "today"
    if days == 1:
        return "yesterday"
    return f"{days} days ago" if days < 14 else time.strftime("%Y-%m-%d", day)


def size_of(n_params: int) -> str:
    """`4.02 B`; empty when it is not known."""
    return count(n_params) if n_params else ""


def speed(row: FitRow | None) -> str:
    """`~11 tok/s`, marked as by `speed_mark`; empty when nothing fits."""
    if row is None or row.verdict == "no":
        return ""
    rate, about = row.est_decode_tps, speed_mark(row)
    if rate >= 1000:
        return f"{about}{rate / 1000:.0f}k tok/s"
    return f"{about}{rate:.0f} tok/s" if rate >= 10 else f"{about}{rate:.{1 if rate >= 1 else 2}f} tok/s"


def speed_words(row: FitRow) -> str:
    """The same in a sentence, which says what ≥ means."""
    return f"{speed(row)} ({FLOOR_WORDS})" if row.est_is_floor and speed(row) else speed(row)


def sizes(row: FitRow) -> str:
    """Sizes of a precision of the catalogue: the same words and figures wherever a model is offered."""
    return f"≈{gib(row.file_bytes)} to download, ≈{gib(row.total_bytes)} of memory"


def copies_note(row: DiskRow) -> str:
    """Note for the user about the same bytes in several places."""
    return f"the same bytes {row.copies} times: {gib(row.extra)} could be free" if row.copies > 1 else ""


def _day_number(day: time.struct_time) -> int:
    return int(time.mktime((day.tm_year, day.tm_mon, day.tm_mday, 12, 0, 0, 0, 0, -1)) // 86400)
