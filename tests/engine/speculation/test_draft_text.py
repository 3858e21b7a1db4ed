"""Text of a program that drafts: which hidden rows are new, and what names its entries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from localrun.cache.groups import make_groups
from localrun.cache.kinds.attention import AttentionCache
from localrun.cache.store import CacheStore
from localrun.engine.speculation.draft_text import DraftText, keys_of
from localrun.ops.kv import KV_CODECS

STORE = CacheStore(make_groups([AttentionCache(1, 8, 8, None)], [KV_CODECS["f16"]]), [4])


def rows(start: int, n: int) -> np.ndarray:
    """Rows that say their own number."""
    return np.arange(start, start + n, dtype=np.float32)[:, None]


@given(st.integers(0, 5), st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 6)), max_size=12))
def test_every_hidden_row_is_read_once_and_in_order(first: int, steps: list[tuple[int, int, int]]) -> None:
    """Steps may begin with rows that are known, as after a state was taken back, and never after ones that are not."""
    text = DraftText(STORE.open_private(), lead=1, first=first)
    ids, end, read = list(range(1000)), first, list[float]()
    for back, n, wanted in steps:
        start = max(0, end - back)
        text.keep(start, rows(start, n + end - start))
        end += n
        n_read = min(wanted, text.waiting.n)
        if n_read:
            read += text.waiting.take(n_read)[:, 0].tolist()
            text.computed(ids, n_read)
    assert read == list(range(first, text.end))
    assert text.end + text.waiting.n == end
    assert text.missing(ids)[:1] == [ids[text.end + 1]]


def test_rows_after_a_gap_are_left() -> None:
    text = DraftText(STORE.open_private(), lead=1)
    text.keep(2, rows(2, 3))
    assert text.waiting.n == 0


def test_entries_of_texts_that_begin_with_another_token_have_another_name() -> None:
    """The first entry of a layer is made of the first hidden row, too."""
    assert keys_of([1, 2, 3, 4], 1, 0, 3)[1:] == keys_of([9, 2, 3, 4], 1, 0, 3)[1:] == [3, 4]
    assert keys_of([1, 2, 3, 4], 1, 0, 3)[0] != keys_of([9, 2, 3, 4], 1, 0, 3)[0]
    assert keys_of([1, 2, 3, 4], 0, 0, 3) == [1, 2, 3]
    assert keys_of([1, 2, 3, 4], 1, 1, 2) == [3, 4]
