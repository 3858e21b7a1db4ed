"""From the logits of a step to the next tokens of its sequences."""

from collections.abc import Sequence as SequenceOf

from localrun.engine.philox import uniforms
from localrun.engine.sequence import Sequence
from localrun.ops.interface import Logits
from localrun.ops.sampling import Draw


def pick(logits: Logits, wanted: SequenceOf[tuple[int, Sequence]]) -> list[int]:
    """The next token of each sequence, chosen by its settings from its row; neighbours change nothing."""
    sampled = [sequence for _, sequence in wanted if sequence.request.settings.temperature > 0]
    draws = iter(uniforms([s.request.seed for s in sampled], [s.n_tokens for s in sampled]))
    chains = [(row, sequence.request.settings) for row, sequence in wanted]
    return logits.choose(
        [
            Draw(
                row,
                chain.top_k,
                chain.temperature,
                chain.top_p,
                chain.min_p,
                next(draws) if chain.temperature > 0 else 0.0,
            )
            for row, chain in chains
        ]
    )
