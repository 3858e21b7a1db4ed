"""A program that drafts, and its cache: entries are read, and tokens guessed after them."""

from collections.abc import Sequence
from math import exp

import numpy as np

from localrun.cache.store import CacheStore
from localrun.engine.generation import GenerationState
from localrun.engine.runner import RowSpan, Runner, cache_input
from localrun.engine.speculation.draft_text import DraftText, Guess, WaitingRows, keys_of
from localrun.ops.interface import Logits


class DraftProgram:
    """The layer of a model that drafts, or a smaller model; its prefix tree has the entries of earlier texts."""

    def __init__(self, runner: Runner, store: CacheStore, n_tokens: int, hidden_size: int = 0) -> None:
        """`n_tokens`: that the model knows. `hidden_size`: of the rows of the model that it reads beside the tokens;
        0: it reads tokens alone."""
        self.runner, self.store, self.n_tokens, self.hidden_size = runner, store, n_tokens, hidden_size
        self.lead = 1 if hidden_size else 0

    def open(self, sequence: GenerationState, start: int) -> DraftText:
        """The text of a sequence whose hidden rows are there from row `start` on. Raises OutOfBlocks."""
        ids, n_prompt = sequence.token_ids, max(1, sequence.n_prompt - self.lead)
        keys = keys_of(ids, self.lead, 0, len(ids))  # none of a single token
        cache = self.store.open(keys, n_prompt) if keys else self.store.open_empty(n_prompt)
        known = cache.reuse.start
        text = DraftText(cache, self.lead, keys=keys_of(ids, self.lead, 0, known), n=known)
        if not self.hidden_size or start <= known:
            return text
        if known and start == known + 1:  # a text ended there: its last row is gone, and so one entry is not exact
            text.waiting.add(np.zeros((1, self.hidden_size), np.float32))
            return text
        self.store.close(cache, ())
        return self.open_at(start)

    def open_at(self, start: int) -> DraftText:
        """A text whose first entry has this number."""
        return DraftText(self.store.open_private(), self.lead, first=start)

    def restart(self, text: DraftText, most: int) -> DraftText:
        """A text of the newest `most` hidden rows that wait; of the old one the tree keeps the entries."""
        first = text.end + max(0, text.waiting.n - most)
        waiting = WaitingRows(text.waiting.newest(min(most, text.waiting.n)))
        self.close(text)
        return DraftText(self.store.open_private(), self.lead, first=first, waiting=waiting)

    def close(self, text: DraftText) -> None:
        """Let go of a text; the tree keeps its entries."""
        self.store.close(text.cache, text.keys[: text.n])

    def read(self, text: DraftText, token_ids: Sequence[int], n: int) -> None:
        """Compute the next `n` entries of a text. Raises OutOfBlocks."""
        self._run(
            [text], [text.missing(token_ids)[:n]], [text.n], (), [text.waiting.take(n)] if self.hidden_size else []
        )
        self._count(text, token_ids, n)

    def guess(self, texts: Sequence[DraftText], token_ids: Sequence[Sequence[int]]) -> None:
        """Compute all missing entries of some texts, and guess the token after each. Raises OutOfBlocks."""
        missing = [text.missing(ids) for text, ids in zip(texts, token_ids, strict=True)]
        given = (
            [text.waiting.take(len(ids)) for text, ids in zip(texts, missing, strict=True)] if self.hidden_size else []
        )
        guesses = self._guesses(texts, missing, [text.n for text in texts], given)
        for text, ids, guess in zip(texts, token_ids, guesses, strict=True):
            self._count(text, ids, len(text.missing(ids)))
            text.guess = guess

    def guess_on(self, texts: Sequence[DraftText], before: Sequence[Guess], ahead: int) -> list[Guess | None]:
        """Guess the token after `ahead` + 1 guesses of each text, of which `before` is the last. Raises OutOfBlocks."""
        given = [guess.hidden[None] for guess in before if guess.hidden is not None]
        return self._guesses(texts, [[guess.token] for guess in before], [text.n + ahead for text in texts], given)

    def _count(self, text: DraftText, token_ids: Sequence[int], n: int) -> None:
        text.computed(token_ids, n)
        self.store.commit(text.cache, text.keys, text.n)

    def _guesses(
        self,
        texts: Sequence[DraftText],
        ids: Sequence[Sequence[int]],
        starts: Sequence[int],
        given: Sequence[np.ndarray],
    ) -> list[Guess | None]:
        last = [int(row) - 1 for row in np.cumsum([len(one) for one in ids])]
        logits = self._run(texts, ids, starts, last, given)
        rows = self.runner.executor.hidden(1 + last[-1]) if self.hidden_size else None
        found = [guess_of(logits, n, None if rows is None else rows[row].copy()) for n, row in enumerate(last)]
        return [guess if guess is not None and guess.token < self.n_tokens else None for guess in found]

    def _run(
        self,
        texts: Sequence[DraftText],
        ids: Sequence[Sequence[int]],
        starts: Sequence[int],
        logits_rows: Sequence[int],
        given: Sequence[np.ndarray],
    ) -> Logits:
        """A step over the tokens `ids` of texts from these positions on."""
        for text, one, start in zip(texts, ids, starts, strict=True):
            self.store.extend(text.cache, start, start + len(one))
        parts = zip(texts, ids, starts, strict=True)
        views = [cache_input(self.runner.groups, text.cache, start, len(one)) for text, one, start in parts]
        spans = [RowSpan(one, start) for one, start in zip(ids, starts, strict=True)]
        rows = np.concatenate(given) if given else None
        return self.runner.compute(spans, views, logits_rows, given=rows)


def guess_of(logits: Logits, row: int, hidden: np.ndarray | None) -> Guess | None:
    """The likeliest token of a row; None where the row is no number."""
    if not bool(logits.finite[row]):
        return None
    return Guess(int(logits.argmax[row]), exp(float(logits.top_values[row, 0]) - float(logits.logsumexp[row])), hidden)
