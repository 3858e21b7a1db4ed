"""Words of a message as a sentence of their own."""


def sentence(words: str) -> str:
    """The words with a capital and a full stop: `memory is short` -> `Memory is short.`"""
    return f"{words[:1].upper()}{words[1:]}."
