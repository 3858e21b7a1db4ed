"""From the logits of a step to the next tokens of its sequences."""

from collections.abc import Sequence as SequenceOf

from localrun.engine.philox import uniforms
from localrun.engine.sequence import Sequence
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw


def pick(logits: Logits, wanted: SequenceOf[tuple[int, Sequence]]) -> list[int]:
    """The next token of each sequence, chosen by its settings from its row; neighbours change nothing."""
    chains = [sequence.request.settings for _, sequence in wanted]
    u = uniforms([s.request.seed for _, s in wanted], [s.n_tokens for _, s in wanted])
    return logits.choose(
        [
            Draw(row, chain.top_k, chain.temperature, chain.top_p, chain.min_p, draw)
            for (row, _), chain, draw in zip(wanted, chains, u, strict=True)
        ]
    )
