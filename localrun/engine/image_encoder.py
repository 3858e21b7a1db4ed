"""The images of requests: planned without their pixels, encoded once, and kept in memory for the next time."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256

import numpy as np

from localrun.base.errors import ImageError
from localrun.base.image_file import read_image
from localrun.base.request import RequestImage
from localrun.engine.images import ImageSource, RequestImages
from localrun.ops.image_rows import EncodeProgress, ImagePlan, ImageRows, ImageSpan, Projector, image_digest
from localrun.ops.interface import CancelFlag, StepCancelled
from localrun.ops.largest_step import SPAN_ROWS
from localrun.storage.image_rows import ImageRowFiles
from localrun.text.image_tokens import ImageTokens, PromptImage
from localrun.text.tokenizer import Tokenizer

KEPT_BYTES = 64 << 20  # of encoded images in memory: of Qwen3.5 4B, six of 1,024 tokens
LOOK_SECONDS = 0.1  # between looks at a cancellation, while another image is encoded


@dataclass(frozen=True, slots=True)
class SeenImages:
    """The images of a request: as a prompt has them, by their sha256, and as the engine does."""

    known: Mapping[str, PromptImage]
    sources: RequestImages | None


NO_IMAGES = SeenImages({}, None)


class ImageEncoder:
    """A projector with what it has encoded, in memory and on disk. Used from any thread: it encodes one image at a
    time."""

    def __init__(
        self,
        projector: Projector,
        tokenizer: Tokenizer,
        open_files: Callable[[], ImageRowFiles | None] = lambda: None,
        kept_bytes: int = KEPT_BYTES,
        sees_itself: bool = False,
    ) -> None:
        """`open_files`: called with the first image; None: nothing is kept on disk. `sees_itself`: rows of an image see
        each other both ways, so that one step computes them all."""
        self.projector, self.open_files, self.sees_itself = projector, open_files, sees_itself
        marks = projector.marks
        self.tokens = ImageTokens.of(tokenizer, marks.placeholder, marks.before, marks.after)
        self.kept_bytes = kept_bytes
        self._kept: OrderedDict[bytes, ImageRows] = OrderedDict()  # the least recently used first
        self._lock = threading.Lock()

    @property
    def n_bytes(self) -> int:
        """Bytes held: the loaded half that sees, and encoded images."""
        return self.projector.n_bytes + sum(map(n_bytes, list(self._kept.values())))

    @cached_property
    def files(self) -> ImageRowFiles | None:
        return self.open_files()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about images on disk."""
        files = vars(self).get("files")
        return () if files is None else files.notes

    def see(self, images: Sequence[RequestImage], chat: str = "") -> SeenImages:
        """Plan the images of a request. `chat`: that is stored, and has them; empty: none. Raises ImageError for an
        image of an impossible shape."""
        known, sources = {}, {}
        for image in images:
            most = min(image.most_rows, SPAN_ROWS) if self.sees_itself else image.most_rows
            plan = self.projector.plan(image.width, image.height, most)
            digest = image_digest(image.sha256, self.projector.identity, plan)
            known[image.sha256] = PromptImage(digest, plan.n_rows)
            span = ImageSpan(digest, plan.n_rows, plan.grid, self.sees_itself)
            sources[digest] = ImageSource(span, partial(self.rows, image, plan, digest, chat))
        return SeenImages(known, RequestImages(self.tokens.placeholder, sources))

    def rows(
        self,
        image: RequestImage,
        plan: ImagePlan,
        digest: bytes,
        chat: str,
        progress: EncodeProgress,
        cancel: CancelFlag,
    ) -> ImageRows:
        """The rows of an image, encoded unless they are kept. Raises StepCancelled or ImageError."""
        while not self._lock.acquire(timeout=LOOK_SECONDS):
            if cancel.is_set():
                raise StepCancelled
        try:
            if digest not in self._kept:
                found = self._on_disk(digest, plan)
                self._keep(digest, found or self.projector.encode(bytes_of(image), plan, progress, cancel))
            self._kept.move_to_end(digest)
            rows = self._kept[digest]
            if chat and self.files is not None:
                self.files.save(digest, plan.n_rows, [part.tobytes() for part in (rows.rows, *rows.added)], chat)
            return rows
        finally:
            self._lock.release()

    def _on_disk(self, digest: bytes, plan: ImagePlan) -> ImageRows | None:
        """The rows of an image as an earlier process encoded them."""
        found = None if self.files is None else self.files.load(digest, plan.n_rows)
        if found is None:
            return None
        rows, *added = (np.frombuffer(part, np.float32).reshape(plan.n_rows, -1) for part in found)
        return ImageRows(rows, tuple(added))

    def _keep(self, digest: bytes, rows: ImageRows) -> None:
        self._kept[digest] = rows
        while len(self._kept) > 1 and sum(map(n_bytes, self._kept.values())) > self.kept_bytes:
            self._kept.popitem(last=False)


def bytes_of(image: RequestImage) -> bytes:
    """The bytes of an image's file. Raises ImageError where it is gone or has become another."""
    data = image.data or (read_image(image.path) if image.path is not None else b"")
    if sha256(data).hexdigest() != image.sha256:
        raise ImageError("CHANGED", "the image is not the one that was attached", "attach it again")
    return data


def n_bytes(rows: ImageRows) -> int:
    return rows.rows.nbytes + sum(part.nbytes for part in rows.added)
