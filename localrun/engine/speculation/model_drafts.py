"""Drafts by a second program, the layer of a model that drafts or a smaller model: its texts are kept in step with all
answers, and decide none of them."""

import math
from collections.abc import Sequence

import numpy as np

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.node import common_prefix
from localrun.engine.generation import GenerationState
from localrun.engine.speculation.draft_program import DraftProgram
from localrun.engine.speculation.draft_text import DraftText, Guess
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.step_plan import StepPlan

MOST_WAITING = 512  # hidden rows of a text that are kept to be read; up to twice as many until some are left out
CHUNK = 256  # entries that a text which is behind reads at once
BESIDE = 16  # likewise in the pass that drafts
MOST_TEXTS = 31  # that are drafted for at once
LEAST_CHANCE = 0.3  # that all tokens of a draft are right, for another one after them


class ModelDrafts:
    """A program that drafts, and its text of every answer."""

    def __init__(self, program: DraftProgram, name: str) -> None:
        """`name`: of the drafter, for people."""
        self.program, self.name = program, name
        self.texts: dict[int, DraftText | None] = {}  # by number of the sequence; None: there was no room for it
        self.ended: list[tuple[GenerationState, DraftText]] = []  # answers that may be gone on with

    def follow(self, plan: StepPlan, starts: Sequence[int], hidden: np.ndarray | None) -> None:
        """Keep the hidden rows of a step whose tokens are chosen; its work began at the tokens `starts`.

        They are read once a draft is wished for: a prompt takes no longer for it. Of long ones the newest rows count.
        """
        if self.ended:
            self.read_ended()
        if not self.program.hidden_size or hidden is None:
            return
        row = 0
        for work, start in zip(plan.work, starts, strict=True):
            sequence, end = work.sequence, start + work.n
            if sequence.cache is not None and (text := self._text(sequence, start)) is not None:
                if work.drafts:
                    end += common_prefix(work.drafts, sequence.token_ids[end : end + len(work.drafts)])
                text.keep(start, hidden[row : row + end - start])
                if text.waiting.n >= 2 * MOST_WAITING:
                    self._make_room(sequence, text)
            row += work.n_rows

    def n_behind(self, sequence: GenerationState) -> int:
        """Entries that are missing, where they are more than the pass that drafts reads."""
        text = self._opened(sequence)
        n_missing = 0 if text is None else self._n_missing(sequence, text)
        return n_missing if n_missing > BESIDE else 0

    def catch_up(self, sequence: GenerationState) -> int:
        """Read some of the missing entries -> their number; 0 where there was no room."""
        text = self._opened(sequence)
        assert text is not None
        n = min(CHUNK, self._n_missing(sequence, text) - 1)
        try:
            self.program.read(text, sequence.token_ids, n)
        except OutOfBlocks:
            self._give_up(sequence)
            return 0
        return n

    def draft(self, sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        """At most `depth` tokens after each sequence; none after one whose text is far behind."""
        ready = [s for s in sequences if self._is_ready(s)][:MOST_TEXTS]
        texts = {s.number: text for s in ready if (text := self.texts[s.number]) is not None}
        try:
            behind = [s for s in ready if texts[s.number].missing(s.token_ids)]
            if behind:
                self.program.guess([texts[s.number] for s in behind], [s.token_ids for s in behind])
            guesses = {n: [text.guess] for n, text in texts.items() if text.guess is not None}
            self._go_on(texts, guesses, depth)
        except OutOfBlocks:
            for sequence in ready:
                self._give_up(sequence)
            guesses = {}
        return [drafted(guesses.get(s.number, ())) for s in sequences]

    def forget(self, sequence: GenerationState) -> None:
        """Let go of the text of a sequence; of one that has ended the tree keeps the entries."""
        text = self.texts.pop(sequence.number, None)
        if text is None:
            return
        if sequence.stop_reason is None:
            self.program.store.abandon(text.cache)
        else:
            self.ended.append((sequence, text))

    def read_ended(self) -> None:
        """Read the rest of answers that ended, where drafts were made for them: the next turn goes on there."""
        while self.ended:
            sequence, text = self.ended.pop()
            try:
                if text.guess is not None or sequence.is_warm_up:
                    self._read_waiting(sequence, text)
            except OutOfBlocks:
                self.program.store.abandon(text.cache)
            else:
                self.program.close(text)

    def close(self) -> None:
        """Give memory back, before the model's threads end."""
        for _, text in self.ended:
            self.program.close(text)
        self.ended.clear()
        self.program.runner.executor.close()

    def _make_room(self, sequence: GenerationState, text: DraftText) -> None:
        """Leave out the oldest of the hidden rows that wait; a warm-up has the time to read all of them."""
        if not sequence.is_warm_up:
            self.texts[sequence.number] = self.program.restart(text, MOST_WAITING)
            return
        try:
            self._read_waiting(sequence, text)
        except OutOfBlocks:
            self._give_up(sequence)

    def _read_waiting(self, sequence: GenerationState, text: DraftText) -> None:
        """Read all entries whose hidden rows wait, but the one after the newest token. Raises OutOfBlocks."""
        while n := min(text.waiting.n, len(text.missing(sequence.token_ids)), CHUNK):
            self.program.read(text, sequence.token_ids, n)

    def _go_on(self, texts: dict[int, DraftText], guesses: dict[int, list[Guess]], depth: int) -> None:
        """Add guesses after guesses, as long as all of one text are likely to be right."""
        for ahead in range(depth - 1):
            going = [n for n, found in guesses.items() if len(found) == ahead + 1 and chance(found) >= LEAST_CHANCE]
            if not going:
                return
            last = [guesses[n][-1] for n in going]
            for n, guess in zip(going, self.program.guess_on([texts[n] for n in going], last, ahead), strict=True):
                guesses[n] += [] if guess is None else [guess]

    def _text(self, sequence: GenerationState, start: int) -> DraftText | None:
        """The text of a sequence, opened where there is none yet; None where there is no room, or it has images."""
        if sequence.images is None and sequence.number not in self.texts:
            try:
                self.texts[sequence.number] = self.program.open(sequence, start)
            except OutOfBlocks:
                self.texts[sequence.number] = None
        text = self.texts.get(sequence.number)
        if text is not None and start > text.end + text.waiting.n:  # rows were left out while guesses did not pay
            self.program.close(text)
            text = self.texts[sequence.number] = self.program.open_at(start)
        return text

    def _opened(self, sequence: GenerationState) -> DraftText | None:
        """The text of a sequence, as far as it can be read: a layer reads what the model has computed."""
        if not self.program.hidden_size:
            return self._text(sequence, 0)
        text = self.texts.get(sequence.number)
        return None if text is None or text.waiting.n < self._n_missing(sequence, text) else text

    def _n_missing(self, sequence: GenerationState, text: DraftText) -> int:
        return sequence.n_tokens - self.program.lead - text.end

    def _is_ready(self, sequence: GenerationState) -> bool:
        """Whether the entries up to its newest token can be read in the pass that drafts."""
        text = self._opened(sequence)
        return text is not None and self._n_missing(sequence, text) <= BESIDE

    def _give_up(self, sequence: GenerationState) -> None:
        """Draft nothing more for a sequence, for lack of room."""
        text = self.texts.get(sequence.number)
        self.texts[sequence.number] = None
        if text is not None:
            self.program.store.abandon(text.cache)


def chance(guesses: Sequence[Guess]) -> float:
    """How likely it is that all of these are right."""
    return math.prod(guess.chance for guess in guesses)


def drafted(guesses: Sequence[Guess]) -> DraftedTokens:
    """A draft of guesses; evidence for it is what they are likely to be right by, on the average."""
    if not guesses:
        return DraftedTokens()
    return DraftedTokens.likely([guess.token for guess in guesses], chance(guesses) ** (1 / len(guesses)))
