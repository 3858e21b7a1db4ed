"""Drafts by blocks (DSpark): a pass guesses several tokens at once, from a cache of what the model gave of a text."""

from collections.abc import Sequence

import numpy as np

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.store import CacheStore
from localrun.engine.generation import GenerationState
from localrun.engine.runner import RowSpan, Runner, cache_input
from localrun.engine.speculation.draft_program import DraftProgram
from localrun.engine.speculation.draft_text import DraftText, Guess
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.model_drafts import LEAST_CHANCE, ModelDrafts, drafted
from localrun.model.config import BlockGuess
from localrun.model.dspark_weights import BlockHead


class BlockProgram(DraftProgram):
    """A program that stores what a model gave of a text, and one that guesses the block of tokens after it."""

    def __init__(
        self,
        runner: Runner,
        store: CacheStore,
        n_tokens: int,
        hidden_size: int,
        blocks: Runner,
        block: BlockGuess,
        head: BlockHead,
        most_rows: int,
    ) -> None:
        """`hidden_size`: of the rows that the model gives. `blocks` reads and writes the cache of `runner`.

        `most_rows`: of logits that memory was planned for; those of one block are computed in any case.
        """
        super().__init__(runner, store, n_tokens, hidden_size)
        self.blocks, self.block, self.head, self.most_rows = blocks, block, head, most_rows

    def block_after(self, texts: Sequence[DraftText], newest: Sequence[int], depth: int) -> list[list[Guess]]:
        """Guess at most `depth` tokens after the newest one of each text, as long as all are likely to be right; its
        entries are all there. Raises OutOfBlocks."""
        size, masks = self.block.size, [self.block.mask_id] * (self.block.size - 1)
        spans, views = [], []
        for text, token in zip(texts, newest, strict=True):
            self.store.extend(text.cache, text.n, text.n + size)
            spans.append(RowSpan([token, *masks], text.n, last=text.n + size - 1))
            views.append(cache_input(self.blocks.groups, text.cache, text.n, size))
        rows = range(size * len(texts))
        logits = self.blocks.compute(spans, views, rows)
        hidden = self.blocks.executor.hidden(len(rows))
        assert hidden is not None
        found = []
        for first, token in zip(rows[::size], newest, strict=True):
            ahead = range(first, first + min(depth, size))
            known = [row for row in ahead if bool(logits.finite[row])]
            found.append(self._chosen([logits.row(row) for row in known], hidden[known], token))
        return found

    def _chosen(self, logits: Sequence[np.ndarray], hidden: np.ndarray, token: int) -> list[Guess]:
        """Guesses after a token, one a row."""
        found, all_right = list[Guess](), 1.0
        for row, normed in zip(logits, hidden, strict=True):
            token, chance = self.head.likeliest(row, normed, token)
            all_right *= chance
            if token >= self.n_tokens or (found and all_right < LEAST_CHANCE):
                break
            found.append(Guess(token, chance, None))
        return found


class BlockDrafts(ModelDrafts):
    """Texts whose next tokens are guessed in blocks."""

    program: BlockProgram

    def draft(self, sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        """At most `depth` tokens after each sequence; none after one whose text is far behind."""
        most = max(1, self.program.most_rows // self.program.block.size)
        ready = [s for s in sequences if self._is_ready(s)][:most]
        texts = {s.number: text for s in ready if (text := self.texts[s.number]) is not None}
        found: dict[int, list[Guess]] = {}
        try:
            for s in ready:
                self._read_waiting(s, texts[s.number])
            if ready:
                blocks = self.program.block_after(list(texts.values()), [s.token_ids[-1] for s in ready], depth)
                found = dict(zip(texts, blocks, strict=True))
        except OutOfBlocks:
            for s in ready:
                self._give_up(s)
        for number, guesses in found.items():
            texts[number].guess = guesses[0] if guesses else None
        return [drafted(found.get(s.number, ())) for s in sequences]

    def close(self) -> None:
        self.program.blocks.executor.close()
        super().close()
