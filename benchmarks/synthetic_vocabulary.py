"""A vocabulary for models with random weights."""

import gguf

CONTROLS = ("<|im_start|>", "<|im_end|>", "<|end|>")
THOUGHTS = ("<think>", "</think>")
# Of templates and questions that are timed, a token each as in trained vocabularies; Ġ is a space. None begins with two
# letters that stand in one before it, whose merges would break it up.
WORDS = ("assistant", "system", "user", "And", "Ġthen", "Ġpoint")


def add_vocabulary(writer: gguf.GGUFWriter, size: int) -> None:
    """A byte-level vocabulary that both engines accept: bytes, words, some of digits, tags of thoughts, controls."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [*map(chr, printable), *(chr(256 + i) for i in range(len(others)))]
    starts = [word[: end + 1] for word in WORDS for end in range(1, len(word))]
    n_words = size - len(letters) - len(starts) - len(THOUGHTS) - len(CONTROLS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*letters, *starts, *(f"w{i}" for i in range(n_words)), *THOUGHTS, *CONTROLS])
    writer.add_token_types([1] * (size - len(THOUGHTS) - len(CONTROLS)) + [4] * len(THOUGHTS) + [3] * len(CONTROLS))
    writer.add_token_merges([f"{start[:-1]} {start[-1]}" for start in starts])
    writer.add_eos_token_id(size - 1)
    writer.add_eot_token_id(size - 2)
