"""GPT-2's byte alphabet: every byte written as one printable character, so that merges work on text."""

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(0x100) if byte not in _PRINTABLE]

CHAR_TO_BYTE: dict[str, int] = {chr(byte): byte for byte in _PRINTABLE}
CHAR_TO_BYTE |= {chr(0x100 + n): byte for n, byte in enumerate(_OTHERS)}
BYTE_TO_CHAR: dict[int, str] = {byte: char for char, byte in CHAR_TO_BYTE.items()}


def from_byte_level(token: str) -> bytes:
    """The bytes a token stands for; text outside the alphabet (an added token) stands for itself."""
    try:
        return bytes([CHAR_TO_BYTE[char] for char in token])
    except KeyError:
        return token.encode()
