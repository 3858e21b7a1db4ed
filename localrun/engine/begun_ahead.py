"""Steps that may begin before the tokens of the one before them are known. Ints only, no tensors."""

from collections.abc import Sequence

from localrun.cache.blocks import OutOfBlocks
from localrun.cache.store import CacheStore
from localrun.engine.step_plan import StepWork
from localrun.ops.kv import BLOCK_TOKENS
from localrun.ops.largest_step import MAX_CANDIDATES


def reserve_ahead(store: CacheStore, work: Sequence[StepWork]) -> bool:
    """Whether the step after one with this work may begin ahead; it then has its blocks, which were free or the tree's
    alone."""
    if not work or not all(map(goes_on, work)):
        return False
    try:
        for one in work:
            assert one.sequence.cache is not None
            store.reserve_ahead(one.sequence.cache)
    except OutOfBlocks:
        return False
    return True


def goes_on(work: StepWork) -> bool:
    """Whether a token follows for which nothing is needed but the best candidates: the step after that may begin before
    the token is known."""
    s, n = work.sequence, work.sequence.n_computed + 1
    settings, request = s.request.settings, s.request
    penalties = settings.repeat_penalty != 1.0 or settings.presence_penalty or settings.frequency_penalty
    is_last = s.n_to_come <= 1 or s.cancelled.is_set()
    of_row = penalties or request.logit_bias or request.logprobs is not None or s.constraint is not None
    decides = settings.temperature <= 0 or 0 < settings.top_k <= MAX_CANDIDATES
    is_alone = work.n_rows == 1 and work.ends and not work.scored and s.images is None
    return bool(is_alone and decides and not of_row and not is_last and n % BLOCK_TOKENS)
