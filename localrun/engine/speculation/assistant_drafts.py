"""Drafts by an assistant, which reads the model's cache and keeps none: for each answer the newest hidden row."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from localrun.engine.generation import GenerationState
from localrun.engine.runner import RowSpan, Runner, cache_input
from localrun.engine.speculation.draft_program import guess_of
from localrun.engine.speculation.draft_text import Guess
from localrun.engine.speculation.drafter import DraftedTokens
from localrun.engine.speculation.model_drafts import LEAST_CHANCE, MOST_TEXTS, chance, drafted
from localrun.engine.step_plan import StepPlan
from localrun.model.assistant_weights import TokenClusters
from localrun.model.config import Clusters
from localrun.ops.interface import Logits


class LastRow(NamedTuple):
    """Tokens of a text that the model has computed, and its hidden row of the last of them, f32 [body]."""

    n_computed: int
    hidden: np.ndarray


class AssistantDrafts:
    """An assistant, whose guesses all stand at the position of the next token."""

    def __init__(
        self,
        runner: Runner,
        n_tokens: int,
        name: str,
        tokens: TokenClusters | None = None,
        clusters: Clusters | None = None,
    ) -> None:
        """`n_tokens`: that the model knows. `tokens`: those of clusters, where the runner's logits are of clusters, the
        likeliest of which are searched."""
        self.runner, self.n_tokens, self.name = runner, n_tokens, name
        self.tokens, self.clusters = tokens, clusters
        self.rows: dict[int, LastRow] = {}  # by number of the sequence

    def follow(self, plan: StepPlan, starts: Sequence[int], hidden: np.ndarray | None) -> None:
        """Keep the row that the newest token of each sequence was chosen from."""
        end = 0
        for work, start in zip(plan.work, starts, strict=True):
            first, end = end, end + work.n_rows
            n = work.sequence.n_tokens - 1 - start  # of the rows, that the sequence went on with
            if hidden is not None and 0 < n <= work.n_rows and work.sequence.images is None:
                self.rows[work.sequence.number] = LastRow(start + n, hidden[first + n - 1].copy())

    def n_behind(self, sequence: GenerationState) -> int:
        """Nothing is to be read: the model's cache has it."""
        return 0

    def catch_up(self, sequence: GenerationState) -> int:
        return 0

    def draft(self, sequences: Sequence[GenerationState], depth: int) -> list[DraftedTokens]:
        """At most `depth` tokens after each sequence, as long as all of one are likely to be right."""
        ready = [s for s in sequences if self._is_ready(s)][:MOST_TEXTS]
        guesses: dict[int, list[Guess]] = {s.number: [] for s in ready}
        for ahead in range(depth):
            going = [s for s in ready if len(guesses[s.number]) == ahead and chance(guesses[s.number]) >= LEAST_CHANCE]
            if not going:
                break
            for s, guess in zip(going, self._guess(going, guesses), strict=True):
                guesses[s.number] += [] if guess is None else [guess]
        return [drafted(guesses.get(s.number, ())) for s in sequences]

    def forget(self, sequence: GenerationState) -> None:
        self.rows.pop(sequence.number, None)

    def close(self) -> None:
        self.runner.executor.close()

    def _is_ready(self, sequence: GenerationState) -> bool:
        row = self.rows.get(sequence.number)
        return row is not None and row.n_computed == sequence.n_computed == sequence.n_tokens - 1

    def _guess(self, going: Sequence[GenerationState], guesses: dict[int, list[Guess]]) -> list[Guess | None]:
        """A guess after the newest token of each sequence and its guesses."""
        spans, views, given = [], [], []
        for s in going:
            assert s.cache is not None
            before, last = guesses[s.number], s.n_tokens - 2
            hidden = before[-1].hidden if before else self.rows[s.number].hidden
            assert hidden is not None
            given.append(hidden)
            spans.append(RowSpan([before[-1].token if before else s.token_ids[-1]], last, ahead=1))
            views.append(cache_input(self.runner.groups, s.cache, last, 1))
        logits = self.runner.compute(spans, views, range(len(going)), given=np.stack(given))
        beside = self.runner.executor.beside(len(going))
        assert beside is not None
        found = [self._found(logits, row, beside[row].copy()) for row in range(len(going))]
        return [guess if guess is not None and guess.token < self.n_tokens else None for guess in found]

    def _found(self, logits: Logits, row: int, hidden: np.ndarray) -> Guess | None:
        """The likeliest token of a row, among all, or among those of the likeliest clusters."""
        if self.tokens is None or self.clusters is None:
            return guess_of(logits, row, hidden)
        normed = self.runner.executor.hidden(row + 1)
        if normed is None or not bool(logits.finite[row]):
            return None
        tokens, scores = self.tokens.logits(normed[row], logits.top_ids[row, : self.clusters.n_used])
        best = int(scores.argmax())
        if not np.isfinite(scores[best]):
            return None
        return Guess(int(tokens[best]), 1 / float(np.exp(scores - scores[best]).sum()), hidden)
