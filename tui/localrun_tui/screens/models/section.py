"""A list of models that fills itself in the background."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from textual.content import Content

from localrun_tui.screens.downloads.downloads import downloads_of
from localrun_tui.screens.downloads.downloads_queue import Downloads
from localrun_tui.screens.models.open_path import how_to_open
from localrun_tui.state.background import Task, run_in_background
from localrun_tui.widgets.columns import Column
from localrun_tui.widgets.model_list import Item, ModelList

T = TypeVar("T")


class Section(ModelList[T]):
    """A list that fills itself. `budget` gives the bytes that a model may take."""

    TITLE: ClassVar[str]
    HINT: ClassVar[str]  # in the empty box above
    ELSEWHERE: ClassVar[str] = ""  # where words may be found that are not here
    COLUMNS: ClassVar[tuple[Column, ...]]
    KNOWS_DISK: ClassVar[bool] = False  # whether its rows depend on what is on disk

    def __init__(self, budget: Callable[[], int], id: str) -> None:
        super().__init__(self.COLUMNS, id=id)
        self.budget = budget
        self._reading: Task | None = None
        self._n_arrived = 0  # downloads that are done

    def on_mount(self) -> None:
        if self.KNOWS_DISK:
            downloads = downloads_of(self)
            self._n_arrived = downloads.n_arrived
            downloads.changed.subscribe(self, self._look_for_arrived)

    def _look_for_arrived(self, downloads: Downloads) -> None:
        """Read the list again when a download is done."""
        if downloads.n_arrived > self._n_arrived and self._reading is not None:
            self.reload()
        self._n_arrived = downloads.n_arrived

    def on_show(self) -> None:
        if self._reading is None:
            self.reload()

    def on_unmount(self) -> None:
        if self._reading is not None:
            self._reading.cancel()

    def reload(self) -> None:
        """Read everything again."""
        raise NotImplementedError

    def look_for(self, words: str) -> None:
        """Search for the typed text, which may be a path."""
        self.filter(words, how_to_open(words), self.ELSEWHERE)

    def detail(self, item: Item[T]) -> Content:
        """A line or two about the highlighted one."""
        raise NotImplementedError

    def load(self, work: Callable[[Task], Any], done: Callable[[Any], None]) -> None:
        """Do `work` in the background, in the place of what was under way."""
        if self._reading is not None:
            self._reading.cancel()
        self._reading = run_in_background(self, work, done, self.show_error)
