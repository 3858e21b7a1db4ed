"""Logits that wait for a constraint: what may come next is not computed yet."""

from collections.abc import Iterator

from localrun.engine.generation import GenerationState
from localrun.engine.next_tokens import EndedWork
from localrun.engine.step_plan import StepWork
from localrun.ops.interface import Logits


class LateLogits:
    """Copies of rows, so that the steps of other sequences go on meanwhile."""

    def __init__(self) -> None:
        self.kept: dict[int, tuple[StepWork, Logits]] = {}  # by number of the sequence

    def keep(self, logits: Logits, ended: EndedWork, n_accepted: int) -> None:
        """Keep the row after `n_accepted` drafts."""
        sequence, rows = ended.work.sequence, [ended.rows[n_accepted]]
        if sequence.request.logprobs is not None:
            rows.append(ended.raw_rows[n_accepted])
        self.kept[sequence.number] = ended.work._replace(drafts=()), logits.copied(rows)

    def take_ready(self) -> Iterator[tuple[Logits, EndedWork]]:
        """Remove and return those whose next token can be chosen by now."""
        for number, (work, logits) in list(self.kept.items()):
            sequence = work.sequence
            if sequence.cache is None or sequence.n_uncomputed:  # it goes on already, or has to compute them again
                del self.kept[number]
            elif sequence.constraint is None or sequence.constraint.can_choose():
                del self.kept[number]
                yield logits, EndedWork(work, [0], [1])

    def forget(self, sequence: GenerationState) -> None:
        """Forget a sequence that has ended."""
        self.kept.pop(sequence.number, None)
