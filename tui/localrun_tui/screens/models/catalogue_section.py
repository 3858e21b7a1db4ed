"""The list of the catalogue."""

from textual.content import Content

from localrun.backends.registry import usual_memory
from localrun.hub.catalogue_rows import CatalogueRow, catalogue_rows, first_model, unmeasured_rows
from localrun.hub.disk.library import scan
from localrun_tui.screens.models import model_items as items
from localrun_tui.screens.models.section import Section
from localrun_tui.widgets.columns import say
from localrun_tui.widgets.model_list import Item


class CatalogueSection(Section[CatalogueRow]):
    KNOWS_DISK = True
    TITLE, HINT, COLUMNS = "Catalogue", "filter the catalogue: qwen, coder, 4b, apache", items.CATALOGUE_COLUMNS
    ELSEWHERE = "Enter, then → looks for them on the hub."
    suggested = ""
    _is_measured = False

    def reload(self) -> None:
        """List the names at once, and what fits of each a moment later."""

        def named(rows: list[CatalogueRow]) -> None:
            self.show([items.catalogue_item(row, False) for row in rows], "")
            self.load(lambda task: catalogue_rows(self.budget(), scan()), measured)

        def measured(rows: list[CatalogueRow]) -> None:
            untouched = not self._is_measured and self.highlighted is next(iter(self.items), None)
            self._is_measured = True
            first = first_model(rows, usual_memory().total)
            self.suggested = first.name if first else ""
            rows.sort(key=lambda row: row.name != self.suggested)  # it goes first, the others by size
            self.show([items.catalogue_item(row, row.name == self.suggested) for row in rows], "")
            if untouched:
                self.highlight(self.suggested)

        if self._is_measured:
            self.load(lambda task: catalogue_rows(self.budget(), scan()), measured)
        else:
            self.load(lambda task: unmeasured_rows(usual_memory().total), named)

    def detail(self, item: Item[CatalogueRow]) -> Content:
        if not self._is_measured:
            return say("looking at what fits this machine…", "$foreground-muted")
        return items.catalogue_detail(item.value, item.value.name == self.suggested)
