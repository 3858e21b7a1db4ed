"""An answer growing on the screen: takes what the engine has said, and draws no more often than it can afford."""

import os
import time

from textual.content import Content

from localrun.base.events import Channel
from localrun.base.units import ms

from .message_view import MessageView
from .meters import bar
from .status_line import eta
from .turn import Turn

# Of a core that drawing may take. On few cores the engine has all of them, and waits for what is taken from one.
_SHARE = 0.12 if (os.cpu_count() or 1) > 4 else 0.04
_LONGEST = 0.4  # seconds without a new picture, however busy this thread is
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveAnswer:
    """`view` shows what `turn` has brought so far."""

    def __init__(self, turn: Turn, view: MessageView) -> None:
        self.turn = turn
        self.view = view
        self._drawn = (0.0, time.thread_time())  # when last: on the clock, and in processor time of this thread
        self._shown: dict[Channel, int] = {"answer": 0, "thinking": 0}  # characters
        self._thought: float | None = None  # seconds until the answer began

    def draw(self) -> None:
        """Show what is new, unless the last time was too costly to be here again so soon."""
        now, worked = time.monotonic(), time.thread_time()
        at, before = self._drawn
        if worked - before > (now - at) * _SHARE and now - at < _LONGEST:
            return
        self._drawn = now, worked
        self.show_new()
        self.view.note = self._note()
        self.view.changed()

    def show_new(self) -> None:
        """Show the text that came since the last time."""
        thinking, answer = self._new("thinking", self.turn.thinking), self._new("answer", self.turn.text)
        now = time.monotonic() - self.turn.began
        if thinking:
            self.view.think(thinking)
            self.view.thinking_title = f"Thinking … {ms(now * 1000)}"
        if answer:
            if self._thought is None:
                self._thought = now
                self.view.thinking_title = f"Thought for {ms(now * 1000)}"
            self.view.feed(answer)

    def _new(self, channel: Channel, text: str) -> str:
        start, self._shown[channel] = self._shown[channel], len(text)
        return text[start:]

    def _note(self) -> Content:
        turn = self.turn
        spinner = _SPINNER[int(time.monotonic() * 10) % len(_SPINNER)]
        if turn.first_token is not None:
            return Content() if turn.text else Content.styled(f"{spinner} thinking", "$foreground-muted")
        prefill = turn.prefill
        if prefill is None or not prefill.total:
            return Content.styled(f"{spinner} starting", "$foreground-muted")
        parts = [f" {prefill.done:,} of {prefill.total:,} tokens"]
        if prefill.cached:
            parts.append(f"{prefill.cached:,} from the cache")
        left = eta(prefill, time.monotonic() - turn.began)
        if left is not None:
            parts.append(f"{ms(left * 1000)} left")
        line = Content.assemble(
            (f"{spinner} reading ", "$foreground-muted"),
            bar(prefill.done / prefill.total, 10, "$warning"),
            (" · ".join(parts), "$foreground-muted"),
        )
        return line + Content.styled(f"\n{prefill.note}", "$foreground-muted") if prefill.note else line
