"""The precisions of one model, on disk and on the hub together, and what each would need."""

from collections.abc import Callable
from dataclasses import field, replace
from typing import get_args

from localrun.base.dataclass import dataclass
from localrun.base.errors import HubError, LocalrunError
from localrun.base.settings import Settings, read_settings
from localrun.fit.codecs import BEST_FIRST
from localrun.fit.estimate import USUAL_CONTEXT, Fit, FitRow, Verdict
from localrun.fit.precisions import bits_of
from localrun.formats.requantize import PRECISIONS
from localrun.hub.disk.aliases import without_aliases
from localrun.hub.disk.gone import stored_is_gone
from localrun.hub.disk.library import scan
from localrun.hub.disk.stored import StoredModel
from localrun.hub.fits import fit_preview, fit_stored
from localrun.hub.names import same_precision
from localrun.hub.network.access import read_access
from localrun.hub.network.http import Http
from localrun.hub.remote.preview import RepoPreview, Wanted, preview, preview_or_guess
from localrun.hub.remote.variants import Variant
from localrun.hub.resolve import known_models

OnCancel = Callable[[Callable[[], None]], object]
NEVER_AUTO = ("q4",)  # it breaks some models, so it is for those who ask for it


@dataclass(frozen=True, slots=True)
class Subject:
    """The model that the menu is about: on disk, on the hub, or both. `stored` is highlighted first."""

    name: str
    stored: StoredModel | None = None
    wanted: Wanted | None = None


@dataclass(frozen=True, slots=True)
class PrecisionChoice:
    """One line of the menu. `bytes` are on disk or to download; `fit` is None where the needs are unknown."""

    name: str
    bytes: int
    weights_bytes: int
    bits: float
    approximate: bool = False
    stored: StoredModel | None = None
    variant: Variant | None = None
    fit: FitRow | None = None
    recommended: bool = False

    @property
    def key(self) -> str:
        return f"{self.name} {self.weights_bytes}"

    def means(self, row: FitRow) -> bool:
        return (self.name, self.weights_bytes) == (row.precision, row.weights_bytes)


@dataclass(frozen=True, slots=True)
class Offer:
    """Everything known about the precisions of a model.

    `notes` are for the user, a download starts from `found`, and `wished` are the settings that the menu starts with,
    without a context that the model was not made for.
    """

    subject: Subject
    precisions: tuple[PrecisionChoice, ...]
    fit: Fit
    found: RepoPreview | None = None
    notes: tuple[str, ...] = ()
    wished: Settings = field(default_factory=Settings)

    @property
    def contexts(self) -> tuple[int, ...]:
        """Contexts to choose from, in tokens."""
        return tuple(sorted({row.ctx for row in self.fit.rows}))

    @property
    def codecs(self) -> tuple[str, ...]:
        """KV codecs to choose from, the finest first."""
        return tuple(dict.fromkeys(row.kv_codec for row in self.fit.rows))

    @property
    def usual_context(self) -> int:
        """The context for verdicts when none was chosen."""
        best = self.fit.recommended
        usual = [n for n in self.contexts if n <= USUAL_CONTEXT] or list(self.contexts[:1]) or [USUAL_CONTEXT]
        return best.ctx if best else max(usual)

    def context_for(self, ctx: int) -> int:
        """The tabulated context for `ctx`: the same or the next longer one; for 0 the usual one."""
        longer = [n for n in self.contexts if n >= ctx] or list(self.contexts[-1:])
        return longer[0] if ctx and longer else self.usual_context

    def lines(self, ctx: int, kv: str) -> list[PrecisionChoice]:
        """Lines of the menu for a context (0: the usual) and a codec ("auto": the finest that fits), smallest first."""
        best = self.fit.recommended
        found = []
        for one in self.precisions:
            row = self._row(one, self.context_for(ctx), kv)
            found.append(replace(one, fit=row, recommended=best is not None and one.means(best)))
        return sorted(found, key=lambda one: (one.weights_bytes, one.bits))

    def _row(self, one: PrecisionChoice, ctx: int, kv: str) -> FitRow | None:
        is_free = kv == "auto" or (kv in BEST_FIRST and kv not in self.codecs)  # what cannot be had is not taken
        codecs = [codec for codec in self.codecs if codec not in NEVER_AUTO] if is_free else [kv]
        rows = [row for row in self.fit.rows if one.means(row) and row.ctx == ctx and row.kv_codec in codecs]
        chosen = [row for row in rows if row.recommended]
        for verdict in get_args(Verdict):
            chosen = chosen or [row for row in rows if row.verdict == verdict]
        return min(chosen, key=lambda row: self.codecs.index(row.kv_codec), default=None)


def read_offer(
    subject: Subject, budget: Callable[[], int], on_cancel: OnCancel, tell: Callable[[str], object] = lambda text: None
) -> Offer:
    """Collect the precisions on disk and, where it can be reached, on the hub.

    `on_cancel` receives a function that stops the search, `tell` what it waits for. Raises LocalrunError when there is
    nothing to offer.
    """
    notes: list[str] = []
    stored = _on_disk(subject)
    if subject.stored is not None and not subject.stored.path.exists():  # since it was listed
        gone = stored_is_gone(subject.stored, subject.stored.path)
        stored = [one for one in stored if one.path != subject.stored.path]
        if not stored and subject.wanted is None:
            raise gone
        notes.append(gone.message)
    found = None
    if subject.wanted is not None:
        try:
            ask = preview if stored else preview_or_guess  # what is on disk is known better than the catalogue knows it
            found = _ask_hub(ask, replace(subject.wanted, precision=""), on_cancel, tell)
        except LocalrunError as error:
            if not stored:
                raise
            notes.append(f"only what is on disk: {error.message}")
    from_hub = [_hub_offer(subject, found, budget(), notes)] if found else []
    from_disk = [_disk_offer(subject, stored, budget())] if stored else []
    is_guess = found is not None and found.approximate  # then the file knows better
    offer = merge(subject, from_disk + from_hub if is_guess else from_hub + from_disk, found, notes)
    wished = read_settings()
    if wished.ctx and offer.contexts and wished.ctx > offer.contexts[-1]:
        most = f"{offer.contexts[-1]:,}"
        notes.append(f"{wished.ctx:,} tokens of context are set, and it was made for {most}: it begins with auto")
        wished = replace(wished, ctx=None)
    return replace(offer, wished=wished, notes=tuple(notes))


def _on_disk(subject: Subject) -> list[StoredModel]:
    """All precisions on disk: those beside a stored model, or those of a repository."""
    if subject.stored is not None:
        mine = (subject.stored.name, subject.stored.source)
        here = [model for model in scan() if (model.name, model.source) == mine]
        return without_aliases(here) or [subject.stored]
    found = known_models(subject.name)
    found += [one for one in known_models(subject.name.rpartition("/")[2]) if one.source != "hub"]  # of no repository
    return without_aliases({one.path: one for one in found}.values())


def _ask_hub(
    ask: Callable[[Http, Wanted], RepoPreview], wanted: Wanted, on_cancel: OnCancel, tell: Callable[[str], object]
) -> RepoPreview:
    http = Http(read_access(), tell)
    on_cancel(http.close)
    try:
        return ask(http, wanted)
    finally:
        http.close()


def _hub_offer(subject: Subject, found: RepoPreview, budget: int, notes: list[str]) -> Offer:
    """Offer of the hub. Candidates past the variants are quantised from the original while loading."""
    original = next((variant for variant in found.variants if variant.format == "safetensors"), None)
    precisions = []
    for number, one in enumerate(found.candidates):
        variant = found.variants[number] if number < len(found.variants) else original
        size = variant.bytes if variant else one.file_bytes
        precisions.append(
            PrecisionChoice(one.precision, size, one.weights_bytes, one.bits, one.approximate, variant=variant)
        )
    try:
        fit = _with_wished(fit_preview(found, budget), lambda ctx: fit_preview(found, budget, ctx))
    except HubError as error:  # its shape cannot be read
        notes.append(error.message)
        fit = Fit((), "")
    if found.approximate:
        notes.append(f"{found.unreachable or 'offline'}: sizes are estimated from the public shape (≈)")
    if found.obstacle and found.shape is not None:
        notes.append(f"this version cannot run it: {found.obstacle}")
    else:
        notes += [f"{precision} cannot be read: {why}" for precision, why in found.unreadable.items()]
    return Offer(subject, tuple(precisions), fit)


def _disk_offer(subject: Subject, stored: list[StoredModel], budget: int) -> Offer:
    """Offer of precisions on disk; unreadable files are left out, unless none remains."""
    precisions: list[PrecisionChoice] = []
    readable, failures = [], []
    for model in stored:
        try:
            rows = fit_stored([model], budget).rows
        except LocalrunError as error:
            failures.append(error)
            continue
        readable.append(model)
        for name, weights, guess in dict.fromkeys((row.precision, row.weights_bytes, row.approximate) for row in rows):
            made = replace(model, precision=name)
            precisions.append(PrecisionChoice(name, model.bytes, weights, bits_of(name), guess, stored=made))
    if not precisions:
        raise failures[0]
    fit = _with_wished(fit_stored(readable, budget), lambda ctx: fit_stored(readable, budget, ctx))
    return Offer(subject, tuple(precisions), fit)


def _with_wished(fit: Fit, fit_at: Callable[[int], Fit]) -> Fit:
    """Rows for the context of the settings too, where it is not one of the usual ones."""
    wished = read_settings().ctx
    if not wished or any(row.ctx == wished for row in fit.rows):
        return fit
    known = {row.ctx for row in fit.rows}
    more = [replace(row, recommended=False) for row in fit_at(wished).rows if row.ctx not in known]
    return replace(fit, rows=(*fit.rows, *more))


def merge(subject: Subject, offers: list[Offer], found: RepoPreview | None, notes: list[str]) -> Offer:
    """Merge offers into one menu: one line for each precision; the first recommendation counts."""
    precisions: list[PrecisionChoice] = []
    rows: list[FitRow] = []
    reason = ""
    for offer in offers:
        advised = any(row.recommended for row in rows)
        rows += [replace(row, recommended=row.recommended and not advised) for row in offer.fit.rows]
        reason = reason if advised else offer.fit.reason
        before = list(precisions)
        for one in offer.precisions:
            same = [number for number, other in enumerate(before) if _is_stored_as(other, one)]
            for number in same:
                precisions[number] = replace(precisions[number], stored=_made(one.stored, precisions[number].name))
            if not same and not any(_is_stored_as(one, other) for other in before):
                precisions.append(one)
    return Offer(subject, tuple(precisions), Fit(tuple(rows), reason), found, tuple(notes))


def _is_stored_as(offered: PrecisionChoice, one: PrecisionChoice) -> bool:
    """Whether an offer of the hub is on disk as `one`: the same precision, or the original it is made from."""
    if one.stored is None or (offered.variant is not None and offered.variant.format != one.stored.format):
        return False
    made_from = offered.name in PRECISIONS and one.stored.format == "safetensors"
    return made_from or same_precision(offered.name, one.name)


def _made(stored: StoredModel | None, precision: str) -> StoredModel | None:
    """The original on disk, to be loaded in another precision."""
    return replace(stored, precision=precision) if stored and precision in PRECISIONS else stored
