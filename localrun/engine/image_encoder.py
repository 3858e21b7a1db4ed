"""The images of requests: planned without their pixels, encoded once, and kept in memory for the next time."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from localrun.base.dataclass import dataclass
from localrun.base.errors import ImageError
from localrun.base.image_file import bytes_of
from localrun.base.image_size import SIZES
from localrun.base.request import RequestImage
from localrun.base.views import ImageView, SizeView
from localrun.engine.encode_rate import EncodeRate
from localrun.engine.images import ImageSource, RequestImages
from localrun.ops.image_rows import EncodeProgress, ImagePlan, ImageRows, ImageSpan, Projector, image_digest
from localrun.ops.interface import CancelFlag, StepCancelled
from localrun.ops.largest_step import SPAN_ROWS
from localrun.storage.image_rows import ImageRowFiles
from localrun.text.image_tokens import ImageTokens, KnownImages, PromptImage
from localrun.text.tokenizer import Tokenizer

KEPT_BYTES = 64 << 20  # of encoded images in memory: of Qwen3.5 4B, six of 1,024 tokens
LOOK_SECONDS = 0.1  # between looks at a cancellation, while another image is encoded


@dataclass(frozen=True, slots=True)
class SeenImages:
    """The images of a request: as a prompt has them, by their keys, and as the engine does."""

    known: KnownImages
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
        rate: EncodeRate | None = None,
    ) -> None:
        """`open_files`: called with the first image; None: nothing is kept on disk. `sees_itself`: rows of an image see
        each other both ways, so that one step computes them all."""
        self.projector, self.open_files, self.sees_itself = projector, open_files, sees_itself
        self.rate = rate or EncodeRate()
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
            plan, digest = self._planned(image)
            known[image.key] = PromptImage(digest, plan.n_rows)
            span = ImageSpan(digest, plan.n_rows, plan.grid, self.sees_itself)
            sources[digest] = ImageSource(span, partial(self.rows, image, plan, digest, chat))
        return SeenImages(known, RequestImages(self.tokens.placeholder, sources))

    def view(self, image: RequestImage) -> ImageView:
        """Tokens and seconds of an image in every size; it has none where it is refused."""
        sizes = {}
        for name, most_rows in SIZES.items():
            try:
                plan, digest = self._planned(replace(image, most_rows=most_rows))
            except ImageError:
                continue
            is_encoded = digest in self._kept or (self.files is not None and self.files.has(digest, plan.n_rows))
            sizes[name] = SizeView(plan.n_rows, 0.0 if is_encoded else self.rate.seconds(plan.tflop))
        return ImageView(image.sha256, sizes)

    def _planned(self, image: RequestImage) -> tuple[ImagePlan, bytes]:
        """The plan of an image and its digest. Raises ImageError."""
        most = min(image.most_rows, SPAN_ROWS) if self.sees_itself else image.most_rows
        plan = self.projector.plan(image.width, image.height, most)
        return plan, image_digest(image.sha256, self.projector.identity, plan)

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
                self._keep(digest, self._on_disk(digest, plan) or self._encoded(image, plan, progress, cancel))
            self._kept.move_to_end(digest)
            rows = self._kept[digest]
            if chat and self.files is not None:
                self.files.save(digest, plan.n_rows, [part.tobytes() for part in (rows.rows, *rows.added)], chat)
            return rows
        finally:
            self._lock.release()

    def _encoded(self, image: RequestImage, plan: ImagePlan, progress: EncodeProgress, cancel: CancelFlag) -> ImageRows:
        data = bytes_of(image)
        began = time.perf_counter()
        rows = self.projector.encode(data, plan, progress, cancel)
        self.rate.note(plan.tflop, time.perf_counter() - began)
        return rows

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


def n_bytes(rows: ImageRows) -> int:
    return rows.rows.nbytes + sum(part.nbytes for part in rows.added)
