"""A fold above the editor with the image that was attached last: how it looks, and the sizes it may be sent in."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from localrun.base.content import ImagePart
from localrun.base.errors import LocalrunError
from localrun.base.sanitize import clean
from localrun.base.views import ImageView
from localrun.chat.image_sizes import size_lines, view_of
from localrun_tui.widgets.picture import Picture

if TYPE_CHECKING:
    from PIL.Image import Image

    from localrun.chat.images import ImageShelf

SIDE = 160  # pixels of the copy that is drawn
LEAST_HEIGHT, LEAST_WIDTH = 22, 60  # of a screen that has room for the fold, and for the picture in it
KEYS = "F9 another size · /image folds this"


class ImageFold(Horizontal):
    """Hidden without an image, on a low screen, and while it is folded away."""

    def __init__(self, shelf: Callable[[], Awaitable[ImageShelf]]) -> None:
        """`shelf` has the bytes of attached images."""
        super().__init__(id="image-fold")
        self._shelf = shelf
        self.picture = Picture()
        self.words = Static("", id="image-words", markup=False)
        self.image: ImagePart | None = None
        self.is_folded = False
        self._lines: list[str] = []
        self._problem = ""  # why the image cannot be drawn

    def compose(self) -> ComposeResult:
        yield self.picture
        yield self.words

    def follow(self, images: Sequence[ImagePart], views: Sequence[ImageView], blind: str) -> None:
        """Show the last image with its costs; `blind`: the reason why the model sees none, if so."""
        before = self.image
        self.image = images[-1] if images else None
        self.settle()
        if self.image is None:
            self.picture.show(None)
            return
        if before is None or before.sha256 != self.image.sha256:
            self._problem = ""
            self.picture.show(None)
            self.run_worker(self._draw(self.image), exclusive=True)
        self._lines = [f"⚠ {blind}"] if blind else size_lines(self.image, view_of(self.image, views))
        self._tell()

    def fold(self) -> None:
        """Fold it away, or unfold it."""
        self.is_folded = not self.is_folded
        self.settle()

    def settle(self) -> None:
        """Show it where there is an image and room."""
        self.display = self.image is not None and not self.is_folded and self.app.size.height >= LEAST_HEIGHT
        self.picture.display = self.app.size.width >= LEAST_WIDTH

    async def _draw(self, part: ImagePart) -> None:
        shelf = await self._shelf()
        try:
            image = await asyncio.to_thread(_small, shelf, part)
        except LocalrunError as error:
            image, self._problem = None, f"⚠ {error.message}: {error.hint}"
            self._tell()
        if self.image is not None and self.image.sha256 == part.sha256:
            self.picture.show(image)

    def _tell(self) -> None:
        """Show the words beside the picture."""
        if self.image is not None:
            lines = [self._problem] if self._problem else [*self._lines, KEYS]
            self.words.update(clean("\n".join([self.image.chip, *lines])))


def _small(shelf: ImageShelf, part: ImagePart) -> Image:
    """A small copy of an attached image. Raises ImageError where its bytes are gone or have changed."""
    from localrun.images.thumbnail import thumbnail

    return thumbnail(shelf.data(part), SIDE)
