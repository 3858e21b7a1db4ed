"""How long encoding an image takes: by the last one that was encoded, else by the rates of this machine."""

from localrun.backends.interface import Backend
from localrun.fit.machine_rates import known_rates, learn_encoding


class EncodeRate:
    """Seconds of images to come. Used from any thread."""

    def __init__(self, backend: Backend | None = None) -> None:
        """`backend`: that computes; None: nothing is known before an image was encoded."""
        self.backend = backend
        self._tflops = 0.0  # teraflops a second that the last image took; 0: none was encoded

    def note(self, tflop: float, seconds: float) -> None:
        """An image of so many teraflops was encoded."""
        if tflop <= 0 or seconds <= 0:
            return
        self._tflops = tflop / seconds
        if self.backend is not None:
            learn_encoding(tflop, seconds, self.backend)

    def seconds(self, tflop: float) -> float | None:
        """About the seconds of an image; None where nothing is known."""
        if self._tflops:
            return tflop / self._tflops
        rates = None if self.backend is None else known_rates(self.backend)
        return None if rates is None else rates.encode_seconds(tflop)
