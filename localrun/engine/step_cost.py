"""Cost of steps, learnt from earlier ones, and the prompt chunks that it allows. No tensors."""

ALONE_SECONDS = 1.0  # of a prefill chunk when no other sequence waits
SHARED_SECONDS = 0.2  # a prefill chunk while others decode
WATCHED_SECONDS = 0.1  # at most, beside an interactive answer that decodes
WATCHED_DECODES = 1.25  # likewise, in steps that only decode: a token then takes little more than twice as long
LEAST_SHARE = 0.25  # of the rate alone, that a prompt beside such an answer is read at
MOST_SHARE = 0.6  # of the time of such steps, that this may take
PROBE_STEPS = 32  # with chunks, after which one without measures decoding again
LEAST_ROWS = 4  # of a chunk beside a watched answer
SMOOTHING = 0.5  # weight of the old value beside a new measurement


class StepCost:
    """Rows and seconds of prefill, and what decoding takes by itself."""

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.rows_per_second = float(block_tokens)  # the first chunk is a block, and is measured
        self.decode_seconds: float | None = None  # of a step that only decodes
        self.beside_per_second: float | None = None  # rows of prompts, in the time that a step takes more for them
        self._n_since_probe = PROBE_STEPS

    def observe(self, n_decodes: int, n_read: int, seconds: float) -> None:
        """Record a step: how many answers it decoded, how many prompt rows it read, and its seconds."""
        if seconds <= 0:
            return
        if not n_read:
            self.decode_seconds = _smoothed(self.decode_seconds, seconds)
            self._n_since_probe = 0
            return
        if n_decodes + n_read >= self.block_tokens:
            self.rows_per_second = _smoothed(self.rows_per_second, (n_decodes + n_read) / seconds)
        if n_decodes and self.decode_seconds is not None:
            more = max(seconds - self.decode_seconds, seconds / n_read)  # not none at all, where timings differ
            self.beside_per_second = _smoothed(self.beside_per_second, n_read / more)

    def rows(self, beside_decodes: bool) -> int:
        """Prompt rows of a step without interactive answers: a block at least."""
        seconds = SHARED_SECONDS if beside_decodes else ALONE_SECONDS
        return max(self.block_tokens, int(self.rows_per_second * seconds))

    def rows_beside_watched(self) -> int:
        """Prompt rows of a step beside an interactive answer; now and then 0, to measure a step without any.

        Few enough for the answer to go on smoothly, enough for a prompt to get on at a quarter of its rate alone.
        """
        self._n_since_probe += 1
        if self._n_since_probe > PROBE_STEPS:
            self._n_since_probe = 0
            return 0
        speed = self.beside_per_second or self.rows_per_second
        return max(LEAST_ROWS, int(speed * self._seconds_beside(speed)))

    def _seconds_beside(self, speed: float) -> float:
        decode = self.decode_seconds
        if decode is None:
            return WATCHED_SECONDS
        share = min(LEAST_SHARE * self.rows_per_second / speed, MOST_SHARE)
        return max(min(WATCHED_DECODES * decode, WATCHED_SECONDS), decode * share / (1 - share))


def _smoothed(before: float | None, now: float) -> float:
    return now if before is None else SMOOTHING * before + (1 - SMOOTHING) * now
