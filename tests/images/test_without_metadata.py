"""An image without metadata has the pixels it had, stands as it stood, and tells nothing else."""

import random
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from localrun.base.errors import ImageError
from localrun.images.open import open_image
from localrun.images.without_metadata import without_metadata

SECRETS = (b"Leica", b"48.8584", b"<x:xmpmeta", b"by me", b"thumbnail")
XMP = b"<x:xmpmeta>48.8584, 2.2945</x:xmpmeta>"
ICC = b"\0" * 36 + b"acsp" + b"\0" * 88  # what a reader takes for a profile


def photo(kind: str, orientation: int = 1, **more: Any) -> bytes:
    """A photo with a camera, a place, a comment and XMP."""
    pixels = np.random.default_rng(7).integers(0, 256, (21, 34, 3), dtype=np.uint8)
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = orientation, "Leica"
    gps = exif.get_ifd(0x8825)
    gps[1], gps[2], gps[3], gps[4] = "N", (48.0, 51.0, 30.24), "E", (2.0, 17.0, 40.2)
    exif[0x9286] = "48.8584"
    file = BytesIO()
    Image.fromarray(pixels).save(file, kind, exif=exif, **more)
    return file.getvalue()


def png() -> dict[str, Any]:
    told = PngImagePlugin.PngInfo()
    told.add_text("Comment", "by me")
    told.add_itxt("XML:com.adobe.xmp", XMP.decode(), zip=False)
    return {"pnginfo": told, "icc_profile": ICC}


KINDS: list[tuple[str, str, dict[str, Any]]] = [
    ("JPEG", ".jpg", {"comment": b"by me", "xmp": XMP, "icc_profile": ICC}),
    ("JPEG", ".jpg", {"comment": b"by me", "progressive": True, "restart_marker_blocks": 1}),
    ("PNG", ".png", png()),
    ("WEBP", ".webp", {"xmp": XMP, "icc_profile": ICC, "lossless": True}),
    ("WEBP", ".webp", {"xmp": XMP}),
]


@pytest.mark.parametrize(("kind", "suffix", "more"), KINDS)
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_nothing_is_left_but_the_picture(kind: str, suffix: str, more: dict[str, Any], orientation: int) -> None:
    data = photo(kind, orientation, **more) + b"a thumbnail behind its end" * (kind == "JPEG")
    bare, found = without_metadata(data)
    assert found == suffix
    assert not [secret for secret in SECRETS if secret in bare]
    with Image.open(BytesIO(bare)) as image:
        exif = image.getexif()
        assert dict(exif) == ({} if orientation == 1 else {0x0112: orientation})
        assert not exif.get_ifd(0x8825)
        assert image.info.get("icc_profile") == more.get("icc_profile")
    assert np.array_equal(np.asarray(open_image(bare).rgb), np.asarray(open_image(data).rgb))
    assert without_metadata(bare) == (bare, suffix), "what has none stays as it is"


@pytest.mark.parametrize("kind", ["TIFF", "GIF", "BMP"])
def test_other_formats_become_png(kind: str) -> None:
    data = photo(kind, 6 if kind == "TIFF" else 1)
    bare, suffix = without_metadata(data)
    assert suffix == ".png"
    assert not [secret for secret in SECRETS if secret in bare]
    assert np.array_equal(np.asarray(open_image(bare).rgb), np.asarray(open_image(data).rgb))


def test_a_phones_second_picture_goes_too() -> None:
    """An MPO file: a JPEG with another one behind it, and a table of both."""
    file = BytesIO()
    first, second = (Image.open(BytesIO(photo("JPEG", 1))) for _ in range(2))
    first.save(file, "MPO", save_all=True, append_images=[second])
    bare, suffix = without_metadata(file.getvalue())
    assert suffix == ".jpg"
    with Image.open(BytesIO(bare)) as image:
        assert (image.format, getattr(image, "n_frames", 1)) == ("JPEG", 1)


def test_broken_files_are_errors_or_images_without_secrets() -> None:
    dice = random.Random(5)
    n_bare = 0
    for kind, _, more in KINDS:
        data = photo(kind, 6, **more)
        for _ in range(60):
            broken = bytearray(data)
            for _ in range(dice.randint(1, 4)):
                broken[dice.randrange(len(broken))] = dice.randrange(256)
            cut = bytes(broken[: dice.choice((len(broken), dice.randrange(len(broken))))])
            try:
                bare, _ = without_metadata(cut)
            except ImageError:
                continue
            n_bare += 1
            assert XMP not in bare
            assert b"Leica" not in bare
    assert n_bare > 20


def test_a_file_of_countless_parts_is_compressed_again() -> None:
    data = photo("WEBP", 6)
    bare, suffix = without_metadata(riff(data[12:] + b"junk\0\0\0\0" * (1 << 17)))
    assert suffix == ".png"
    assert np.array_equal(np.asarray(open_image(bare).rgb), np.asarray(open_image(data).rgb))


def riff(parts: bytes) -> bytes:
    return b"RIFF" + (len(parts) + 4).to_bytes(4, "little") + b"WEBP" + parts
