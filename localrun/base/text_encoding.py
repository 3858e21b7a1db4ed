"""The encoding of a text file."""

import codecs


def encoding_of(begin: bytes) -> str:
    """UTF-16 where a file begins with the mark of it, as many of Windows do; else UTF-8, whose mark is left out."""
    return "utf-16" if begin.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
