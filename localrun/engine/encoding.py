"""Encoding of the images that a prompt still needs, on a thread of its own beside the engine's."""

import threading
import time
from collections.abc import Callable, Sequence

from localrun.base.events import ImageProgress
from localrun.engine.images import PlacedImage
from localrun.ops.interface import CancelFlag, StepCancelled


class Encoding:
    """One run over some images, in their order. `wake` is called when it is over; `error` is why it failed."""

    def __init__(
        self, places: Sequence[PlacedImage], tell: Callable[[ImageProgress], None], wake: Callable[[], None]
    ) -> None:
        """`tell`: hears of its progress, on the thread."""
        self.is_over = False
        self.error: Exception | None = None
        self.seconds = 0.0  # of images that were not encoded before
        self._places, self._tell, self._wake = places, tell, wake
        self._cancel = CancelFlag()
        self._encoded: set[int] = set()  # numbers of those whose encoding was told of: others were kept
        threading.Thread(target=self._run, name="localrun-images", daemon=True).start()

    def give_up(self) -> None:
        """Cancel it; what is encoded by then stays."""
        self._cancel.set()

    def _run(self) -> None:
        try:
            for number, place in enumerate(self._places):
                told, started = self._telling(number), time.perf_counter()
                rows = place.source.rows(told, self._cancel)
                self.seconds += time.perf_counter() - started if number in self._encoded else 0.0
                assert all(len(part) == place.source.span.n_rows for part in (rows.rows, *rows.added))
                place.rows = rows
        except StepCancelled:
            pass
        except Exception as error:  # of one request: the engine ends that with it
            self.error = error
        self.is_over = True
        self._wake()

    def _telling(self, number: int) -> Callable[[float], None]:
        def tell(share: float) -> None:
            self._encoded.add(number)
            self._tell(ImageProgress(number, len(self._places), share))

        return tell
