"""The models of the catalogue on this machine: what fits of each, and which one to begin with."""

import math
from collections.abc import Sequence, Set

from localrun.base.dataclass import dataclass
from localrun.base.settings import read_settings
from localrun.fit.estimate import FLUENT_TPS, FitRow, Verdict
from localrun.fit.shape import ModelShape
from localrun.hub.catalogue import CatalogueModel, search_catalogue, suggestions
from localrun.hub.disk.stored import StoredModel
from localrun.hub.verdicts import catalogue_fit, in_codec


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """One model of the catalogue. `best` is what this machine would run; None where nothing fits or is known."""

    name: str
    entry: CatalogueModel
    shape: ModelShape | None
    best: FitRow | None
    on_disk: bool

    @property
    def n_params(self) -> int:
        return self.shape.n_params if self.shape else 0

    @property
    def obstacle(self) -> str:
        return self.shape.obstacle if self.shape else ""

    @property
    def verdict(self) -> Verdict:
        return self.best.verdict if self.best else "no"

    @property
    def is_fluent(self) -> bool:
        """Whether it fits, and answers about as fast as one reads."""
        return self.best is not None and self.verdict == "fits" and self.best.est_decode_tps >= FLUENT_TPS


def unmeasured_rows(total_memory: int) -> list[CatalogueRow]:
    """Every model of the catalogue, before it is known how it would run on this machine; the likely one first."""
    rows = [CatalogueRow(name, entry, None, None, False) for name, entry in search_catalogue("").items()]
    likely = next(iter(suggestions(total_memory)), "")
    return sorted(rows, key=lambda row: row.name != likely)


def catalogue_rows(budget: int, stored: Sequence[StoredModel]) -> list[CatalogueRow]:
    """Every model of the catalogue with what fits in `budget` bytes; opens no connection."""
    codec = read_settings().kv
    there = {model.name.lower() for model in stored}
    return [_row(name, entry, budget, codec, there) for name, entry in search_catalogue("").items()]


def _row(name: str, entry: CatalogueModel, budget: int, codec: str | None, there: Set[str]) -> CatalogueRow:
    found, fit = catalogue_fit(name, budget)
    repos = {str(entry[key]).lower() for key in ("gguf", "safetensors") if entry.get(key)}
    shape, best = found.shape if found else None, fit.recommended if fit else None
    if fit and best:
        best = in_codec(fit, best, codec)
    return CatalogueRow(name, entry, shape, best, bool(there & {name.lower(), *repos}))


def first_model(rows: Sequence[CatalogueRow], total_memory: int) -> CatalogueRow | None:
    """The model to begin with: the largest suggested one that fits and is fluent; where none is, a smaller model.

    A speed that was measured beside other programs rules out no suggested model: the smallest that fits stays the
    advice until it is measured again, whatever these programs leave of the machine at the moment.
    """
    fitting = {row.name: row for row in rows if row.verdict == "fits"}
    usual = [fitting[name] for name in suggestions(total_memory) if name in fitting]
    if fluent := next((row for row in usual if row.is_fluent), None):
        return fluent
    if usual and usual[-1].best and usual[-1].best.est_is_floor:
        return usual[-1]
    most = usual[-1].n_params if usual else math.inf
    return max((row for row in fitting.values() if row.n_params <= most), key=_rank, default=None)


def _rank(row: CatalogueRow) -> tuple[bool, float]:
    """Rank of a model: among fluent ones the largest, among others the fastest goes first."""
    speed = row.best.est_decode_tps if row.best else 0.0
    return row.is_fluent, float(row.n_params) if row.is_fluent else speed
