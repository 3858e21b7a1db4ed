"""Progress of a reading in parts, and the time that it still takes."""

import time

from localrun.base.units import ms
from localrun.chat.long_text.in_parts import ReadingPlan
from localrun.chat.long_text.part_reader import PartReader

_TELLS, _SECONDS = 0.05, 2.0  # of the first part: when so much is read, for so long, the speed is known


class ReadingPace:
    """Seconds a part by the plan at first, then by what is read of the first part, then by the parts that were read;
    those known before took no time."""

    def __init__(self, plan: ReadingPlan) -> None:
        self._n_known = self._n_read = plan.n_known
        self._began = self._ended = time.monotonic()  # the reading, and the last part of it
        left = len(plan.pieces) - plan.n_known
        self._each = plan.seconds / left if plan.seconds is not None and left else None  # seconds a part
        reading = plan.speed.seconds(plan.tokens_left, 0) if plan.speed is not None else 0.0
        self._with_note = plan.seconds / reading if plan.seconds is not None and reading else 1.0  # in times of reading

    def words(self, reader: PartReader, share: float) -> str:
        """How far it is, in words; `share` of the part under way is read, and its note is written then."""
        n, of, left = reader.n_read, reader.n_parts, self._seconds_left(reader, share)
        if n == of:
            return "putting the notes together"
        time_left = f" · {ms(1000 * left)} left" if left is not None and left >= 1 else ""
        return f"part {n + 1:,} of {of:,}: {f'{share:.0%}' if share < 1 else 'its note'}{time_left}"

    def _seconds_left(self, reader: PartReader, share: float) -> float | None:
        """Seconds that are left; None where no speed is known yet."""
        now = time.monotonic()
        if reader.n_read > self._n_read:
            self._n_read, self._ended = reader.n_read, now
            self._each = (now - self._began) / (self._n_read - self._n_known)
        elif self._n_read == self._n_known and _TELLS <= share < 1 and now - self._ended >= _SECONDS:
            self._each = self._with_note * (now - self._ended) / share
        if self._each is None:
            return None
        return max(self._each * (reader.n_parts - reader.n_read) - (now - self._ended), 0.0)
