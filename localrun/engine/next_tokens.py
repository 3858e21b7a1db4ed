"""Choose the next tokens of sequences from the logits of a step."""

from collections.abc import Sequence

from localrun.engine.generation import GenerationState
from localrun.engine.philox import uniforms
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw


def sample_next(logits: Logits, wanted: Sequence[tuple[int, GenerationState]]) -> list[int]:
    """The next token of each sequence, chosen by its settings from its row; neighbours change nothing."""
    held = [(row, s) for row, s in wanted if s.constraint is not None and s.constraint.restricts]
    rows = {row for row, _ in held}
    sampled = [(row, s) for row, s in wanted if s.request.settings.temperature > 0 and row not in rows]
    drawn = dict(zip([row for row, _ in sampled], logits.choose(draws_of(sampled)), strict=True)) if sampled else {}
    for draw, (row, sequence) in zip(draws_of(held), held, strict=True):
        assert sequence.constraint is not None
        drawn[row] = sequence.constraint.choose(logits, draw)
    best = logits.argmax
    return [drawn[row] if row in drawn else int(best[row]) for row, _ in wanted]


def draws_of(sampled: Sequence[tuple[int, GenerationState]]) -> list[Draw]:
    """How the next token of each sequence is drawn."""
    numbers = uniforms([s.request.seed for _, s in sampled], [s.n_tokens for _, s in sampled])
    draws = []
    for (row, sequence), u in zip(sampled, numbers, strict=True):
        chain = sequence.request.settings
        draws.append(Draw(row, chain.top_k, chain.temperature, chain.top_p, chain.min_p, u))
    return draws
