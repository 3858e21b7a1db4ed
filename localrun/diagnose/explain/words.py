"""Texts of the topics, in the order for a newcomer, the same beside measured and predicted numbers.

No imports: `--help` and the palette read this module, too.
"""

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TopicWords:
    """`name` is for lists, `title` is the heading above the numbers."""

    name: str
    title: str
    text: str


WORDS: dict[str, TopicWords] = {
    "cache": TopicWords(
        "KV cache",
        "Why every answer keeps a KV cache",
        "To write a token the model compares it with everything before it: the keys and values of all earlier tokens. "
        "They never change once computed, so they are kept. Without the cache the whole text is read again for "
        "every token, and an answer costs the square of its length.",
    ),
    "phases": TopicWords(
        "Two phases",
        "Why the first token is slow and the next ones are fast",
        "A prompt is read many tokens together (prefill): each weight that comes from memory serves them all, so "
        "arithmetic is the limit. An answer comes token by token (decode): each needs all weights once more, so memory "
        "is the limit, and the arithmetic units wait.",
    ),
    "memory": TopicWords(
        "Memory",
        "What the KV cache takes, and what it is made of",
        "Every layer keeps a key and a value of every token: 2 · KV heads · size of a head, for each layer. Fewer KV "
        "heads than query heads (GQA; one alone is MQA) divide that; a codec keeps each number in 8 or 4 bits "
        "instead of 16.",
    ),
    "precision": TopicWords(
        "Precision",
        "What fewer bits a weight save, and what they cost",
        "A token of an answer reads all weights once, so half the bits are half the time, as long as memory is the "
        "limit. Each weight is rounded to one of 256, 16 or 4 steps of its group's scale: 8 bits are hard to tell from "
        "16, 4 bits cost a little, and 2 bits a lot.",
    ),
    "reuse": TopicWords(
        "Reuse",
        "Why the next turn of a chat begins at once",
        "A chat sends its whole text every turn. Its beginning was read before, and the keys and values of that "
        "are still there: the longest known beginning is looked up, and only what follows is read.",
    ),
    "window": TopicWords(
        "Window",
        "What a sliding window keeps, and what it forgets",
        "With a window each layer looks at the last tokens alone, and at the first block, which holds the attention "
        "steady. Blocks that no token will look at again are given back, so the cache stops growing, and a late token "
        "costs no more than an early one.",
    ),
    "batch": TopicWords(
        "Batching",
        "Why several answers at once are cheap",
        "Most of a token's time goes into reading weights. When several answers are under way, each weight that was "
        "read serves all of them: the total grows nearly with their number, until arithmetic or their caches are the "
        "limit.",
    ),
    "drafts": TopicWords(
        "Drafts",
        "Why several tokens of one answer can come in a step",
        "Reading the weights takes most of a step, and they serve further rows as they serve further answers. So "
        "tokens can be guessed, and all verified in one step: as long as the model would have chosen the guess, the "
        "next row counts, too.",
    ),
    "price": TopicWords(
        "Price",
        "Why output tokens cost more than input tokens",
        "Providers ask several times as much for a token written as for one read, and least for one they still have in "
        "their cache. The reason is the same here: time on the machine.",
    ),
}
