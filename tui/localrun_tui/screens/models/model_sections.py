"""The four lists of models, and what a row of them opens."""

from typing import Any

from textual.content import Content

from localrun.backends.registry import usual_memory
from localrun.base.units import gib
from localrun.hub.catalogue_rows import CatalogueRow
from localrun.hub.disk.stored import StoredModel
from localrun.hub.precision_offer import Subject
from localrun.hub.remote.preview import find_on_hub
from localrun_tui.screens.models.catalogue_section import CatalogueSection
from localrun_tui.screens.models.disk_section import DiskSection
from localrun_tui.screens.models.hub_section import HubSection
from localrun_tui.screens.models.model_rows import DiskRow, HubRow
from localrun_tui.screens.models.remote_section import RemoteSection
from localrun_tui.screens.models.section import Section
from localrun_tui.widgets.columns import say

SECTIONS: dict[str, type[Section[Any]]] = {
    "disk": DiskSection,
    "catalogue": CatalogueSection,
    "hub": HubSection,
    "remote": RemoteSection,
}


def subject_of(row: DiskRow | CatalogueRow | HubRow) -> Subject:
    """The subject of the precision menu for a row."""
    if isinstance(row, HubRow):
        repo = row.found.repo
        return Subject(repo, wanted=find_on_hub(repo))
    if isinstance(row, CatalogueRow):
        return Subject(row.name, wanted=find_on_hub(row.name))
    return subject_of_stored(row.model)


def subject_of_stored(model: StoredModel) -> Subject:
    """The same for a model on disk."""
    return Subject(model.name, model, find_on_hub(model.name) if model.source == "hub" else None)


def machine_line() -> Content:
    """One line about the machine."""
    now = usual_memory()
    return say(f"{gib(now.available)} of {gib(now.total)} memory free", "$foreground-muted")
