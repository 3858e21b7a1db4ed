"""SentencePiece's compiled normalization: the size of a trie, the trie, and replacements that end with NUL."""

_MAX_REPLACEMENT = 256  # bytes; the longest in use is a word of Arabic in 33


def character_map_problem(data: bytes) -> str:
    """The flaw of a character map, or nothing."""
    n_trie_bytes = int.from_bytes(data[:4], "little")
    replacements = data[4 + n_trie_bytes :]
    if not n_trie_bytes or n_trie_bytes % 4 or not replacements:
        return "the character map is cut short"
    if max(map(len, replacements.split(b"\0"))) > _MAX_REPLACEMENT:
        return "the character map makes long texts of single characters"
    return ""
