"""Images of one prompt: where their rows lie, the angles of all rows, and what encoding gave."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from localrun.backends.executor import Executor
from localrun.base.dataclass import dataclass
from localrun.base.errors import UsageError
from localrun.base.image_ids import has_images, images_in, without_images
from localrun.ops.image_rows import EncodeProgress, ImageRows, ImageSpan
from localrun.ops.interface import CancelFlag, ImageBuffer
from localrun.ops.kv import BLOCK_TOKENS

NO_ROW = -1


@dataclass(frozen=True, slots=True)
class ImageSource:
    """An image of a request. `rows` encodes it, or finds it encoded; any thread may call it."""

    span: ImageSpan
    rows: Callable[[EncodeProgress, CancelFlag], ImageRows]


@dataclass(frozen=True, slots=True)
class RequestImages:
    """Images of a request by their digests, and the token that stands for each of their rows."""

    token_id: int
    sources: Mapping[bytes, ImageSource]


@dataclass(slots=True)
class PlacedImage:
    """An image from token `start` of a prompt on; its rows are there once somebody needed them."""

    start: int
    source: ImageSource
    rows: ImageRows | None = None

    @property
    def stop(self) -> int:
        return self.start + self.source.span.n_rows


class PromptImages:
    """The images of one prompt, in their order."""

    def __init__(self, prompt: Sequence[int], images: RequestImages) -> None:
        """Raises UsageError where the prompt has rows of other images, or not all of one."""
        self.places: list[PlacedImage] = []
        for start, digest, n_rows in images_in(prompt):
            source = images.sources.get(digest)
            if source is None or source.span.n_rows != n_rows:
                raise UsageError("the prompt has an image that the request does not bring", "send the image again")
            self.places.append(PlacedImage(start, source))
        self.has_spans = any(place.source.span.sees_itself for place in self.places)
        self.token_id = images.token_id
        self.token_ids = without_images(prompt, images.token_id)
        self._angles = angles_of(len(prompt), self.places)  # int64 [n_prompt, 3]
        self._behind = len(prompt) - self._next_angle()  # that much lower than its index is the angle of later text

    def angles(self, start: int, n: int) -> np.ndarray:
        """Angles (time, height, width) of tokens start … start + n - 1: int64 [n, 3]."""
        known = self._angles[start : start + n]
        if len(known) == n:
            return known
        first_after = max(start, len(self._angles))
        after = np.arange(first_after, start + n, dtype=np.int64) - self._behind
        return np.concatenate([known, np.repeat(after[:, None], 3, axis=1)])

    def within(self, start: int, stop: int) -> Iterator[PlacedImage]:
        """The images with rows among tokens start … stop - 1."""
        return (place for place in self.places if place.start < stop and place.stop > start)

    def reach(self, start: int, n: int) -> list[int]:
        """The last token that each of tokens start … start + n - 1 sees in layers whose attention has spans."""
        found = list(range(start, start + n))
        for place in self.within(start, start + n):
            if place.source.span.sees_itself:
                assert place.stop <= start + n, "an image that sees itself is cut"
                first = max(place.start, start)
                found[first - start : place.stop - start] = [place.stop - 1] * (place.stop - first)
        return found

    def whole(self, start: int, n: int, most: int) -> int:
        """Tokens from `start` on that may be computed together, about `n` of them and at most `most`: an image that
        sees itself is never cut. 0 where none may."""
        end = start + n
        cut = next((one for one in self.places if one.source.span.sees_itself and one.start < end < one.stop), None)
        if cut is None or not n:
            return n
        return cut.stop - start if cut.stop <= start + most else max(0, cut.start - start)

    def missing(self, start: int) -> list[PlacedImage]:
        """The images with rows from token `start` on that are not encoded."""
        return [place for place in self.places if place.stop > start and place.rows is None]

    def _next_angle(self) -> int:
        """The angle of the text after the prompt."""
        if not self.places:
            return len(self._angles)
        last = self.places[-1]
        angle = int(self._angles[last.start].min()) + last.source.span.n_angles
        return angle + len(self._angles) - last.stop


def check_images(prompt: Sequence[int], executor: Executor, window: int | None, longest: int) -> None:
    """Raise UsageError for images that cannot be computed in a text of at most `longest` tokens. Where a window hides
    some of them, angles towards the first block are capped, which an image in it does not bear."""
    if not executor.takes_images:
        raise UsageError("images cannot be read on this backend yet", "load the model in main memory: --backend cpu")
    if window is not None and window + BLOCK_TOKENS < longest and has_images(prompt[:BLOCK_TOKENS]):
        what = f"an image among the first {BLOCK_TOKENS} tokens cannot go along with a window"
        raise UsageError(what, "put text before it, or leave the window out")


def angles_of(n_tokens: int, places: Iterable[PlacedImage]) -> np.ndarray:
    """Angles of a prompt: text counts on from one after the highest of an image. int64 [n_tokens, 3]"""
    angles = np.zeros((n_tokens, 3), dtype=np.int64)
    token, angle = 0, 0
    for place in places:
        angles[token : place.start] = np.arange(angle, angle + place.start - token)[:, None]
        angle += place.start - token
        angles[place.start : place.stop] = angle + place.source.span.angles()
        token, angle = place.stop, angle + place.source.span.n_angles
    angles[token:] = np.arange(angle, angle + n_tokens - token)[:, None]
    return angles


def image_buffer(work: Sequence[tuple[PromptImages | None, int, int]]) -> ImageBuffer | None:
    """The rows of images of a step over tokens start … start + n - 1 of each (images, start, n); None where there are
    none."""
    buffer_row: list[int] = []
    found: list[tuple[ImageRows, slice]] = []
    n_found = 0
    for images, start, n in work:
        rows = [NO_ROW] * n
        for place in () if images is None else images.within(start, start + n):
            assert place.rows is not None
            first, last = max(place.start, start), min(place.stop, start + n)
            rows[first - start : last - start] = range(n_found, n_found + last - first)
            n_found += last - first
            found.append((place.rows, slice(first - place.start, last - place.start)))
        buffer_row += rows
    if not found:
        return None
    added = zip(*([each[part] for each in rows.added] for rows, part in found), strict=True)
    return ImageBuffer(buffer_row, joined(rows.rows[part] for rows, part in found), tuple(map(joined, added)))


def joined(parts: Iterable[np.ndarray]) -> np.ndarray:
    """A copy of the rows, one below the other: f32."""
    return np.concatenate(list(parts), dtype=np.float32)
