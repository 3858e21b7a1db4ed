"""Detect that an answer repeats the same token ids over and over."""

from collections.abc import Hashable, Sequence

MIN_TOKENS = 512
MIN_TIMES = 4
MAX_PERIOD = 512
SENTENCE_TOKENS, SENTENCE_TIMES, MIN_SENTENCES = 6, 20, 160  # of a sentence, how often it came, and of all of them
CHECK_TOKENS = 64  # between checks: one costs about 2,048 comparisons, so a token costs about 32


def loop_period(ids: Sequence[Hashable]) -> int:
    """How many tokens repeat at the end of `ids`, if that is a loop; 0 if it is none.

    A loop is an end of at least 512 tokens that is the same 1 … 512 tokens again and again, four times or more. What
    people want is shorter or not exact: a row of "ha", a rule below a heading, a table of zeros ends within 512 tokens,
    and lists, counts and tables of different figures change something each time round. A model that repeats itself
    without a change for so long has nothing in front of it but its own repetition, and does not stop. A whole sentence,
    of six tokens or more, shows that sooner: at its twentieth time, where that makes 160 tokens.
    """
    latest = ids[: -MIN_TIMES * MAX_PERIOD - 1 : -1]  # newest first: an end of the text is a prefix here
    # Knuth, Morris, Pratt 1977: borders[n-1] is the longest prefix that also ends the first n, so n - border is the
    # shortest period of the first n.
    borders = [0] * len(latest)
    border = 0
    for index in range(1, len(latest)):
        while border and latest[index] != latest[border]:
            border = borders[border - 1]
        border += latest[index] == latest[border]
        borders[index] = border
        length, period = index + 1, index + 1 - border
        if length >= MIN_TOKENS and length >= MIN_TIMES * period:
            return period
        if period >= SENTENCE_TOKENS and length >= max(MIN_SENTENCES, SENTENCE_TIMES * period):
            return period
    return 0
