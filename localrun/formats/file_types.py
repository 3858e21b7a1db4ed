"""Type of a file by its first bytes: to name the mistake instead of saying "bad magic"."""

import re

from localrun.base.dataclass import dataclass

HEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class FileType:
    """A kind of file that is not a model we read. `code` is the error's, `hint` what to do about it."""

    name: str
    code: str = "UNKNOWN_FORMAT"
    hint: str = ""


_PICKLE_HINT = "pickled weights can run code when loaded: get the .safetensors or .gguf of this model"
_PICKLE = FileType("a Python pickle (an old .bin/.pt/.pth checkpoint)", "PICKLE", _PICKLE_HINT)
_ARCHIVE = "unpack it first, or download the .gguf or .safetensors itself"
_OLD_GGML = FileType("a GGML file from before GGUF", hint="get the model as GGUF")
_SAFETENSORS = FileType("a safetensors file", hint="give the folder it is in")

_MAGICS: tuple[tuple[bytes, FileType], ...] = (
    (b"GGUF", FileType("a GGUF file")),
    (b"FUGG", FileType("a big-endian GGUF file", "BIG_ENDIAN", "get the little-endian file")),
    *((magic, _OLD_GGML) for name in (b"ggml", b"ggmf", b"ggjt", b"ggla") for magic in (name, name[::-1])),
    (b"PK\x03\x04", FileType("a zip archive (most likely a PyTorch checkpoint)", "PICKLE", _PICKLE_HINT)),
    (b"PK\x05\x06", FileType("an empty zip archive", hint=_ARCHIVE)),
    *((b"\x80" + bytes([protocol]), _PICKLE) for protocol in range(1, 6)),
    (b"version https://git-lfs", FileType("a git-lfs pointer, not the file itself", hint="run `git lfs pull`")),
    (b"7z\xbc\xaf\x27\x1c", FileType("a 7z archive", hint=_ARCHIVE)),
    (b"\x1f\x8b", FileType("a gzip archive", hint=_ARCHIVE)),
    (b"\x28\xb5\x2f\xfd", FileType("a zstd archive", hint=_ARCHIVE)),
    (b"\xfd7zXZ\x00", FileType("an xz archive", hint=_ARCHIVE)),
    (b"BZh", FileType("a bzip2 archive", hint=_ARCHIVE)),
    (b"Rar!", FileType("a rar archive", hint=_ARCHIVE)),
    (b"\x93NUMPY", FileType("a NumPy array file")),
    (b"\x89HDF", FileType("an HDF5 file (Keras weights)")),
    (b"\x7fELF", FileType("a program, not a model")),
    (b"MZ", FileType("a Windows program, not a model")),
    (b"\0\5\x16\7", FileType("what macOS notes about another file (AppleDouble)", hint="name the file without `._`")),
    (b"%PDF", FileType("a PDF document", hint="to ask a model about it, write @ and its name in a chat")),
)
_TEXT_KINDS: tuple[tuple[re.Pattern[bytes], FileType], ...] = (
    (
        re.compile(rb"\s*<(!doctype|html|head|\?xml|!--)", re.IGNORECASE),
        FileType("a web page, most likely a login or error page saved in place of the file"),
    ),
    (re.compile(rb"\s*[{\[]"), FileType("a JSON text", hint="give the model's folder, or its .gguf file")),
)


def recognise(head: bytes) -> FileType:
    """The kind of a file from its first HEAD_BYTES bytes."""
    if not head:
        return FileType("an empty file", "TRUNCATED")
    for magic, kind in _MAGICS:
        if head.startswith(magic):
            return kind
    for pattern, kind in _TEXT_KINDS:
        if pattern.match(head):
            return kind
    if is_safetensors(head):
        return _SAFETENSORS
    if head[257:262] == b"ustar":
        return FileType("a tar archive", hint=_ARCHIVE)
    if not head.strip(b"\0"):
        return FileType("a file of zeros, most likely an unfinished download")
    return FileType("neither GGUF nor safetensors")


def is_safetensors(head: bytes) -> bool:
    """Whether a header length and an opening brace stand where safetensors has them."""
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32
