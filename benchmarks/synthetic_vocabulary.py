"""A vocabulary for models with random weights."""

import gguf

CONTROLS = ("<|im_start|>", "<|im_end|>", "<|end|>")
THOUGHTS = ("<think>", "</think>")


def add_vocabulary(writer: gguf.GGUFWriter, size: int) -> None:
    """A byte-level vocabulary that both engines accept: all bytes, words of digits, tags of thoughts, controls."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = [*map(chr, printable), *(chr(256 + i) for i in range(len(others)))]
    n_words = size - len(letters) - 1 - len(THOUGHTS) - len(CONTROLS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list([*letters, "ab", *(f"w{i}" for i in range(n_words)), *THOUGHTS, *CONTROLS])
    writer.add_token_types([1] * (size - len(THOUGHTS) - len(CONTROLS)) + [4] * len(THOUGHTS) + [3] * len(CONTROLS))
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(size - 1)
    writer.add_eot_token_id(size - 2)
