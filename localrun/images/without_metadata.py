"""Image files without what they tell besides the picture: no EXIF, so no place and no camera, no XMP, no comments.

Pixels are not compressed again where the format is one of those below; others become PNG. How an image stands upright
is kept, as its EXIF alone says so. Formats: ITU T.81 B (JPEG), the PNG specification 3, and WebP's container.
"""

import re
import struct
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice

from localrun.base.errors import ImageError
from localrun.images.open import ORIENTATION_TAG, image_size, open_image, opened

KEPT_SEGMENTS = {0xE0: b"JFIF\0", 0xE2: b"ICC_PROFILE\0", 0xEE: b"Adobe"}  # of JPEG's APPn, by how they begin
COMMENT, SCAN, END = 0xFE, 0xDA, 0xD9
MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.S)
MOST_PARTS = 1 << 16  # of a file; one of more is compressed again
PICTURE, COLOURS = (b"IHDR", b"PLTE", b"IDAT", b"IEND"), (b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"sBIT")
KEPT_CHUNKS = frozenset((*PICTURE, *COLOURS, b"bKGD", b"pHYs", b"acTL", b"fcTL", b"fdAT"))  # of PNG
KEPT_PARTS = frozenset((b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"))  # of WebP
WEBP_EXIF, WEBP_XMP = 0x08, 0x04  # flags of its VP8X


def without_metadata(data: bytes) -> tuple[bytes, str]:
    """An image file without metadata, and its format as a suffix. Raises ImageError where it cannot be opened."""
    size, upright = image_size(data), orientation_of(data)
    for begin, suffix, strip in FORMATS:
        if data.startswith(begin):
            try:
                bare = strip(data, upright)
                if image_size(bare) == size:
                    return bare, suffix
            except (ImageError, struct.error, IndexError, ValueError):
                pass  # it is not built as its format says, which decoders put up with
    file = BytesIO()
    open_image(data).rgb.save(file, "PNG")
    return file.getvalue(), ".png"


def orientation_of(data: bytes) -> int:
    """The orientation in the EXIF of an image file, 1 (upright) to 8."""
    with opened(data) as image:
        found = image.getexif().get(ORIENTATION_TAG, 1)
        return found if found in range(1, 9) else 1


def exif(orientation: int) -> bytes:
    """EXIF with an orientation only."""
    tag = struct.pack(">HHIHH", ORIENTATION_TAG, 3, 1, orientation, 0)  # one number of 16 bits
    return b"MM\0\x2a" + struct.pack(">IH", 8, 1) + tag + bytes(4)


def few(parts: Iterator[bytes]) -> list[bytes]:
    """The parts of a file. Raises ValueError for more than MOST_PARTS."""
    found = list(islice(parts, MOST_PARTS + 1))
    if len(found) > MOST_PARTS:
        raise ValueError("too many parts")
    return found


def bare_jpeg(data: bytes, orientation: int) -> bytes:
    parts = few(jpeg_parts(data))
    if orientation != 1:
        held = b"Exif\0\0" + exif(orientation)
        at = 1 + (parts[1][1] == 0xE0)  # behind the mark of the file, and JFIF's own segment
        parts.insert(at, b"\xff\xe1" + struct.pack(">H", len(held) + 2) + held)
    return b"".join(parts)


def jpeg_parts(data: bytes) -> Iterator[bytes]:
    """The segments of a JPEG that are kept, scans with their data; nothing of what lies behind its end."""
    yield data[:2]
    at = 2
    while (kind := data[at + 1]) != END:
        if data[at] != 0xFF or kind == 0xFF:
            raise ValueError("no marker")
        (length,) = struct.unpack_from(">H", data, at + 2)
        stop = at + 2 + length
        if kind == SCAN:
            stop = scan_end(data, stop)
        is_foreign = kind == COMMENT or (0xE0 <= kind <= 0xEF)
        if not is_foreign or data.startswith(KEPT_SEGMENTS.get(kind, b"\xff"), at + 4):
            yield data[at:stop]
        at = stop
    yield data[at : at + 2]


def scan_end(data: bytes, at: int) -> int:
    """Where the data of a scan end: at a marker that is neither a stuffed byte nor a restart."""
    found = MARKER.search(data, at)
    if found is None:
        raise ValueError("a scan without an end")
    return found.start()


def bare_png(data: bytes, orientation: int) -> bytes:
    chunks = [chunk for chunk in few(png_chunks(data)) if chunk[4:8] in KEPT_CHUNKS]
    if orientation != 1:
        held = b"eXIf" + exif(orientation)
        chunks.insert(1, struct.pack(">I", len(held) - 4) + held + struct.pack(">I", zlib.crc32(held)))
    return data[:8] + b"".join(chunks)


def png_chunks(data: bytes) -> Iterator[bytes]:
    """Whole chunks up to the last one, IEND."""
    at, kind = 8, b""
    while kind != b"IEND":
        (length,) = struct.unpack_from(">I", data, at)
        kind, stop = data[at + 4 : at + 8], at + 12 + length
        yield data[at:stop]
        at = stop


def bare_webp(data: bytes, orientation: int) -> bytes:
    parts = []
    for part in few(webp_parts(data)):
        if part.startswith(b"VP8X"):
            flags = part[8] & ~(WEBP_EXIF | WEBP_XMP) | (WEBP_EXIF if orientation != 1 else 0)
            part = part[:8] + bytes([flags]) + part[9:]
        if part[:4] in KEPT_PARTS:
            parts.append(part)
    if orientation != 1:
        parts.append(b"EXIF" + struct.pack("<I", len(exif(orientation))) + exif(orientation))
    body = b"WEBP" + b"".join(parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_parts(data: bytes) -> Iterator[bytes]:
    """Whole chunks of the container; each has an even number of bytes."""
    if data[8:12] != b"WEBP":
        raise ValueError("another container")
    at, end = 12, min(len(data), 8 + struct.unpack_from("<I", data, 4)[0])
    while at < end:
        (length,) = struct.unpack_from("<I", data, at + 4)
        stop = at + 8 + length + length % 2
        yield data[at:stop]
        at = stop


FORMATS: tuple[tuple[bytes, str, Callable[[bytes, int], bytes]], ...] = (
    (b"\xff\xd8", ".jpg", bare_jpeg),
    (b"\x89PNG\r\n\x1a\n", ".png", bare_png),
    (b"RIFF", ".webp", bare_webp),
)
