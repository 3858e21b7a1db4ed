"""Consent to download a model that is not on disk: nothing is downloaded without it."""

import os

from localrun.backends.registry import usual_memory
from localrun.base.errors import HubError, LocalrunError, NotFoundError
from localrun.base.settings import read_settings
from localrun.base.units import gib
from localrun.cli.console import agreed, can_ask, note
from localrun.cli.downloads import choose, open_hub, pull
from localrun.cli.groups import HubOptions, ModelOptions
from localrun.hub.disk.stored import StoredModel
from localrun.hub.fits import fit_preview
from localrun.hub.remote.preview import RepoPreview, Wanted, find_on_hub, preview
from localrun.hub.remote.variants import Variant


def pull_missing(options: ModelOptions, hub: HubOptions, missing: NotFoundError) -> StoredModel:
    """Download the missing model: with --pull, or after a person at the terminal has agreed."""
    name = options.model or read_settings().model or ""
    wanted = find_on_hub(name, options.precision)
    if wanted is None or os.path.isfile(name):  # a file here that is no model
        raise missing
    return _download(wanted, hub, missing)


def _download(wanted: Wanted, hub: HubOptions, missing: NotFoundError) -> StoredModel:
    if not hub.pull and not can_ask():
        raise NotFoundError(missing.message, f"localrun pull {_spelling(wanted)}")
    with open_hub(hub.offline) as http:
        if http.access.offline:
            raise NotFoundError(missing.message, f"once there is a network: localrun pull {_spelling(wanted)}")
        found = preview(http, wanted)
        variant, why = choose(http, found)
        if not hub.pull and not _agrees(found, variant, why):
            raise NotFoundError(missing.message, f"localrun pull {_spelling(wanted)}, when you want it")
        return pull(http, found, variant)[0]


def _agrees(found: RepoPreview, variant: Variant, why: str) -> bool:
    note(f"{found.wanted.name} is not on this machine.\n{offer(found, variant, why)}")
    return agreed("Download it now?", usual=True)


def offer(found: RepoPreview, variant: Variant, why: str) -> str:
    """Describe the size, fit and licence of a model to a person who is asked to download it."""
    return "\n".join(
        (
            f"  from      {found.wanted.repo} ({found.licence or 'no licence named'})",
            f"  size      {gib(variant.bytes)} as {variant.precision or variant.format}: {why}",
            f"  fits      {fit_line(found, variant)}",
        )
    )


def fit_line(found: RepoPreview, variant: Variant) -> str:
    try:
        fit = fit_preview(found, usual_memory().available)
    except LocalrunError as error:
        return error.message if isinstance(error, HubError) else "unknown"
    rows = [row for row in fit.rows if row.precision == variant.precision and row.kv_codec == "f16"]
    if not rows:
        return "unknown"
    best = max(rows, key=lambda row: row.max_ctx)
    if best.verdict == "disk":
        left = f"{gib(best.mapped_bytes)} of its weights stay on disk"
        return f"only in part: {left}, about {best.est_decode_tps:g} tokens a second"
    if best.max_ctx == 0:
        return f"no: {gib(rows[0].total_bytes)} are needed, {gib(rows[0].budget_bytes)} are free"
    return f"up to {best.max_ctx:,} tokens of context, about {rows[0].est_decode_tps:g} tokens a second"


def _spelling(wanted: Wanted) -> str:
    return f"{wanted.name}:{wanted.precision}" if wanted.precision else wanted.name
