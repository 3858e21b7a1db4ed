"""From a row of logits to the next token of a sequence."""

from localrun.engine.philox import uniform
from localrun.engine.sampler import choose, choose_of_row
from localrun.engine.sequence import Sequence
from localrun.ops.interface import Logits


def pick(logits: Logits, row: int, sequence: Sequence) -> int:
    """The next token of one row: the argmax, or the sampler chain on candidates and, where needed, on the full row."""
    settings = sequence.request.settings
    if settings.temperature <= 0:
        return int(logits.argmax[row])
    u = uniform(sequence.request.seed, sequence.n_tokens)
    ids, logsumexp = logits.top_ids[row], float(logits.logsumexp[row])
    token = choose(ids, logits.top_values[row], logsumexp, len(ids) == logits.rows.shape[-1], settings, u)
    return choose_of_row(logits.row(row), logsumexp, settings, u) if token is None else token
