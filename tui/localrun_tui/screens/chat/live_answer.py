"""An answer growing on the screen: takes the new events, and draws as often as its share of the CPU allows."""

import os
import time

from localrun.base.content import has_calls
from localrun.base.events import Channel
from localrun_tui.screens.chat.message_notes import live_note, thinking_title
from localrun_tui.screens.chat.message_view import MessageView
from localrun_tui.state.turn import Turn

_FEW_CORES = (os.cpu_count() or 1) <= 4  # the engine has them all, and waits for what is taken from one
_SHARE = 0.015 if _FEW_CORES else 0.12  # of a core that drawing may take
_AHEAD = 1.25 if _FEW_CORES else 0.0  # seconds for which an answer has lines to grow into
_SHORTEST, _LONGEST = 0.12, 0.33  # seconds between two pictures


class LiveAnswer:
    """`view` shows the text of `turn` so far."""

    def __init__(self, turn: Turn, view: MessageView) -> None:
        self.turn = turn
        self.view = view
        view.growing_height.seconds = _AHEAD
        self._worked = time.thread_time()  # of this thread, when it last began to draw
        self._cost = 0.0  # of a picture in the mean: seconds of this thread until the next is begun
        self._shown: dict[Channel, int] = {"answer": 0, "thinking": 0}  # characters

    def draw(self) -> float:
        """Draw the new text; gives the seconds until the next drawing."""
        if not self.view.is_attached:  # another chat is shown
            return _LONGEST
        worked = time.thread_time()
        cost, self._worked = worked - self._worked, worked
        self._cost += (cost - self._cost) / 8
        self.show_new()
        self.view.document.note = live_note(self.turn)
        self.view.changed()
        return min(max(self._cost / _SHARE, _SHORTEST), _LONGEST)

    def show_new(self) -> None:
        """Show the text that came since the last time."""
        thinking, answer = self._new("thinking", self.turn.thinking), self._new("answer", self._text())
        document = self.view.document
        document.thinking_title = thinking_title(self.turn)
        if thinking:
            document.think(thinking)
        if answer:
            document.feed(answer)

    def _text(self) -> str:
        content = self.turn.content
        if not has_calls(content):
            return self.turn.text
        from localrun_tui.screens.chat.call_lines import answer_markdown

        return answer_markdown(content)

    def _new(self, channel: Channel, text: str) -> str:
        start, self._shown[channel] = self._shown[channel], len(text)
        return text[start:]
