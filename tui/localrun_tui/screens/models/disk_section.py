"""The list of models on disk."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from textual.content import Content

from localrun.base.errors import LocalrunError
from localrun.base.settings import read_settings
from localrun.hub.disk.obstacles import stored_obstacle
from localrun.hub.disk.stored import StoredModel
from localrun.hub.resolve import resolve
from localrun_tui.screens.models import model_items as items
from localrun_tui.screens.models.model_card import ModelCard, stored_card
from localrun_tui.screens.models.model_rows import DiskRow, disk_rows
from localrun_tui.screens.models.section import Section
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.model_list import Item, ModelList


class DiskSection(Section[DiskRow]):
    KNOWS_DISK = True
    TITLE, HINT, COLUMNS = "On disk", "filter what is on disk, or the path of a model", items.DISK_COLUMNS
    ELSEWHERE = "Enter, then → looks for them in the catalogue, and → again on the hub."

    def __init__(self, budget: Callable[[], int], id: str) -> None:
        super().__init__(budget, id)
        self._cards: dict[Path, ModelCard | None] = {}  # None: its file is being looked at

    def reload(self) -> None:
        def work(task: Task) -> tuple[list[DiskRow], Path | None]:
            return disk_rows(), _default_path()

        def done(answer: tuple[list[DiskRow], Path | None]) -> None:
            rows, default = answer
            empty = "No model is on this machine yet.\nThe catalogue (→) shows good ones; f opens a file or folder."
            self.show(items.disk_items(rows, default), empty)

        self.load(work, done)

    def show_only(self, models: list[StoredModel]) -> None:
        """Show these instead, such as those of a folder that is not searched."""
        self.show(items.disk_items([DiskRow(model, obstacle=stored_obstacle(model)) for model in models]), "")

    def detail(self, item: Item[DiskRow]) -> Content:
        """Card of a model, once its file was read."""
        path = item.value.model.path
        if path not in self._cards:
            self._cards[path] = None
            run_in_background(
                self, lambda task: stored_card(item.value.model, self.budget()), partial(self._keep, path)
            )
        card = self._cards[path]
        return items.disk_detail(item.value, card)

    def _keep(self, path: Path, card: ModelCard) -> None:
        self._cards[path] = card
        self.post_message(ModelList.Highlighted())


def _default_path() -> Path | None:
    """Where the model is that answers when none is named; None without a setting, or when it is gone."""
    name = read_settings().model
    try:
        return resolve(name).path if name else None
    except LocalrunError:
        return None
