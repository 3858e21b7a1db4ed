"""Size of the largest step: the scheduler plans no larger one, and backends and `fit` count memory for it."""

MAX_ROWS = 512  # decodes and chunks of prompts together
BULK_SPANS = 4  # of prompts that are read in bulk, which make larger steps
LEAST_CHUNK = 64  # rows that are left to prompts however many sequences decode
SPAN_ROWS = 320  # of an image that one step computes whole: 280 are the most that fit into it by the rule of Gemma 4
BESIDE_SPANS = MAX_ROWS - SPAN_ROWS  # sequences that may run at once where one has such an image
SCORED_ROWS = 64  # whose logits are wanted as the model gives them, at a time: 39 MB with a vocabulary of 152k
FEW_SEQUENCES = 16  # that may run side by side in the smallest cache, as far as it has room
MAX_CANDIDATES = 256  # best tokens of a row that a step finds
SEQUENCE_TOKENS = 256  # of the context that make room for one more in a larger cache


def max_rows(span: int) -> int:
    """Rows of the largest step where prompts are read in bulk by `span` tokens; 0: no bulk kernels."""
    return max(MAX_ROWS, BULK_SPANS * span)


def max_sequences(ctx: int) -> int:
    """Sequences that may run at once beside a cache for `ctx` tokens: for each a row of logits finds room in memory."""
    return min(max(FEW_SEQUENCES, ctx // SEQUENCE_TOKENS), MAX_ROWS - LEAST_CHUNK)
