"""Split the text of a server into thinking and answer where the server leaves the tags in it."""

import re
from collections.abc import Iterator

from localrun.base.events import Channel
from localrun.text.harmony import ASSISTANT
from localrun.text.reasoning import KNOWN_TAGS, ReasoningTags, Splitter

# Not those that are words, and one for each opening.
_TAGS = tuple({tags.open: tags for _, tags in reversed(KNOWN_TAGS) if tags.open[0] in "<["}.values())
_CLOSES = {tags.close: tags for tags in _TAGS if tags.close != "<|end|>"}
_CLOSE_LINE = re.compile(rf"^[ \t]*({'|'.join(map(re.escape, _CLOSES))})[ \t]*$", re.MULTILINE)


class RemoteText:
    """Text of a server: `push` takes text, `flush` returns what was held back.

    Only tags that begin an answer are taken for such. `opened`: those of a thought that the prompt has opened already.
    """

    def __init__(self, opened: ReasoningTags | None = None) -> None:
        self._splitter: Splitter | None = opened.splitter(inside=True) if opened else None
        self._has_begun = opened is not None
        self._ends_at_answer = True  # with the answer there are no more tags, as there are in Harmony
        self._held = ""

    def push(self, text: str) -> Iterator[tuple[Channel, str]]:
        """The pieces that are certain, in order."""
        if not self._has_begun:
            self._held += text
            if not self._begins():
                return
            text, self._held = self._held, ""
        yield from self._split(text)

    def flush(self) -> Iterator[tuple[Channel, str]]:
        """Text that was held back, as it might have been a tag."""
        held, self._held = self._held, ""
        if held:
            yield "answer", held
        if self._splitter is not None:
            yield from self._splitter.flush()

    def _begins(self) -> bool:
        """Whether there is text enough to tell; then the splitter is chosen, if one is needed."""
        begun = self._held.lstrip()
        tags = next((tags for tags in _TAGS if begun.startswith(tags.open)), None)
        if tags is None:
            self._has_begun = not any(tags.open.startswith(begun) for tags in _TAGS)
        else:
            self._has_begun, self._ends_at_answer, self._held = True, not tags.headers, begun
            self._splitter = tags.splitter(ASSISTANT)
        return self._has_begun

    def _split(self, text: str) -> Iterator[tuple[Channel, str]]:
        """A character at a time, so that a tag within the answer is text wherever the stream is cut."""
        at = 0
        merged: list[tuple[Channel, str]] = []
        while self._splitter is not None and at < len(text):
            pieces = self._splitter.push(text[at])
            at += 1
            if self._ends_at_answer and any(channel == "answer" and piece.strip() for channel, piece in pieces):
                pieces += self._splitter.flush()
                self._splitter = None
            _merge(merged, pieces)
        if at < len(text):
            _merge(merged, [("answer", text[at:])])
        yield from merged


def closed_thought(text: str) -> tuple[str, str, ReasoningTags] | None:
    """Thought, answer and tags of a text that closes a thought, on a line of its own, without having opened it."""
    found = _CLOSE_LINE.search(text)
    if found is None or not text[: found.start()].strip():
        return None
    return text[: found.start()].rstrip("\r\n"), text[found.end() :].lstrip("\r\n"), _CLOSES[found[1]]


def _merge(pieces: list[tuple[Channel, str]], more: list[tuple[Channel, str]]) -> None:
    """Append pieces; one of the channel of the last is joined to it."""
    for channel, text in more:
        if pieces and pieces[-1][0] == channel:
            pieces[-1] = (channel, pieces[-1][1] + text)
        else:
            pieces.append((channel, text))
