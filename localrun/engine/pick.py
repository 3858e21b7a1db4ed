"""From the logits of a step to the next tokens of its sequences."""

from collections.abc import Sequence as SequenceOf

import numpy as np

from localrun.engine.philox import uniform, uniforms
from localrun.engine.sampler import choose, choose_of_row
from localrun.engine.sampler_rows import UNDECIDED, choose_rows
from localrun.engine.sequence import Sequence
from localrun.ops.interface import Logits

FEW_ROWS = 12  # up to so many are faster one by one (benchmarks/step_overhead.py)


def pick(logits: Logits, row: int, sequence: Sequence) -> int:
    """The next token of one row: the argmax, or the sampler chain on candidates and, where needed, on the full row."""
    settings = sequence.request.settings
    if settings.temperature <= 0:
        return int(logits.argmax[row])
    u = uniform(sequence.request.seed, sequence.n_tokens)
    ids, logsumexp = logits.top_ids[row], float(logits.logsumexp[row])
    token = choose(ids, logits.top_values[row], logsumexp, len(ids) == logits.rows.shape[-1], settings, u)
    return choose_of_row(logits.row(row), logsumexp, settings, u) if token is None else token


def pick_of_candidates(logits: Logits, wanted: SequenceOf[tuple[int, Sequence]]) -> dict[int, int]:
    """What `pick` gives for rows and their sequences, by row, as far as candidates tell: for all of them at once.

    Nothing where there are too few for that to be worth it.
    """
    return pick_rows(logits, wanted) if len(wanted) > FEW_ROWS else {}


def pick_rows(logits: Logits, wanted: SequenceOf[tuple[int, Sequence]]) -> dict[int, int]:
    """Likewise, however few they are."""
    argmax = logits.argmax.tolist()
    found = {row: argmax[row] for row, s in wanted if s.request.settings.temperature <= 0}
    sampled = [(row, s) for row, s in wanted if row not in found]
    if sampled:
        rows = np.array([row for row, _ in sampled])
        ids = logits.top_ids[rows]
        draws = uniforms([s.request.seed for _, s in sampled], [s.n_tokens for _, s in sampled])
        chains = [s.request.settings for _, s in sampled]
        is_whole = ids.shape[1] == logits.rows.shape[-1]
        tokens = choose_rows(ids, logits.top_values[rows], logits.logsumexp[rows], is_whole, chains, draws).tolist()
        found |= {row: token for (row, _), token in zip(sampled, tokens, strict=True) if token != UNDECIDED}
    return found
