"""Verdicts whether models of the hub fit this machine, from their size or shape alone."""

from localrun.backends.registry import usual_backend
from localrun.base.errors import LocalrunError
from localrun.fit.disk_rate import may_map
from localrun.fit.estimate import USUAL_CONTEXT, Fit, FitRow, Verdict
from localrun.fit.plan import margin_of
from localrun.fit.precisions import bits_of
from localrun.hub.downloads.disk_space import packing_room
from localrun.hub.fits import fit_preview
from localrun.hub.network.access import Access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import RepoPreview, find_on_hub, preview

_USUAL_PRECISION = "Q4_K_M"
_MAPPABLE = 2 / 3  # of a model, at least: networks of dense layers, and more of mixtures
_BEST_FIRST: tuple[Verdict, ...] = ("fits", "tight", "disk", "no")


def catalogue_fit(name: str, budget: int) -> tuple[RepoPreview | None, Fit | None]:
    """Preview of a catalogue model, and what of it fits in `budget` bytes; opens no connection."""
    wanted = find_on_hub(name)
    try:
        assert wanted is not None
        found = preview(Http(Access(offline=True)), wanted)
        return found, fit_preview(found, budget, USUAL_CONTEXT)
    except LocalrunError:  # the catalogue does not know its shape
        return None, None


def in_codec(fit: Fit, row: FitRow, codec: str | None) -> FitRow:
    """The same precision and context with a KV cache in `codec`; the row itself where there is no such one."""
    key = row.precision, row.weights_bytes, row.ctx
    same = (one for one in fit.rows if (one.precision, one.weights_bytes, one.ctx) == key)
    return next((one for one in same if one.kv_codec == codec), row)


def verdict_of(fit: Fit) -> Verdict:
    """Verdict of the recommended row."""
    return fit.recommended.verdict if fit.recommended else "no"


def verdicts(fit: Fit) -> dict[str, Verdict]:
    """The best verdict of each precision."""
    found: dict[str, Verdict] = {}
    for row in fit.rows:
        found[row.precision] = min(found.get(row.precision, "no"), row.verdict, key=_BEST_FIRST.index)
    return found


def rough_verdict(n_params: int, budget: int) -> Verdict:
    """Verdict for a model with `n_params` parameters at its default precision."""
    weights = int(n_params * bits_of(_USUAL_PRECISION) / 8)
    backend = usual_backend()
    needed, usable = weights + backend.program_bytes, budget - margin_of(budget)
    if needed <= budget:
        return "fits" if needed <= usable else "tight"
    over = needed - usable
    may_stay = over <= weights * _MAPPABLE and may_map(backend) and over <= packing_room(download=weights)
    return "disk" if may_stay else "no"
