"""Earlier prompts, one by one from the newest on, and back to the draft."""

from collections.abc import Sequence

from localrun.base.content import Content, TextPart, text_of


class Recall:
    """Walks through `prompts`, oldest first, as long as what it showed last is not changed."""

    def __init__(self) -> None:
        self._prompts: list[Content] = []
        self._at = 0  # 0 is the draft, 1 the newest prompt
        self._draft: Content = (TextPart(""),)

    def step(self, back: int, typed: Content, prompts: Sequence[Content]) -> Content | None:
        """The prompt `back` steps further (1) or nearer (-1); None where there is none, or where the draft is not
        empty and was not recalled."""
        if self._at == 0 or typed != self._shown():
            if text_of(typed).strip():
                return None
            self._prompts = list(dict.fromkeys(reversed([content for content in prompts if text_of(content).strip()])))
            self._at, self._draft = 0, typed
        if self._at + back < 0 or not self._prompts:
            return None
        self._at = min(self._at + back, len(self._prompts))
        return self._shown()

    def _shown(self) -> Content:
        return self._prompts[self._at - 1] if self._at else self._draft
