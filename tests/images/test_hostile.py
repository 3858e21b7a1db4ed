"""Files that were made to hurt: one named error or an image, little memory, little time, no crash."""

import json
import subprocess
import sys
from io import BytesIO

import numpy as np
from PIL import Image

from localrun.images.open import FORMATS

LARGE = (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x00\x00\x80\x00")
FILMS = ("PNG", "WEBP", "GIF", "TIFF", "MPO")

# Runs in a process of its own, so that a crash is seen and the most memory is its own.
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from localrun.base.errors import ImageError
from localrun.images.open import image_size, open_image

files = sys.stdin.buffer.read()
codes, slowest, at = {}, 0.0, 0
while at < len(files):
    size = int.from_bytes(files[at : at + 4], "big")
    data = files[at + 4 : at + 4 + size]
    at += 4 + size
    began = time.process_time()
    try:
        image_size(data)
        open_image(data)
        code = "OPENED"
    except ImageError as error:
        code = error.code
    slowest = max(slowest, time.process_time() - began)
    codes[code] = codes.get(code, 0) + 1
status = Path("/proc/self/status")  # what getrusage tells begins with the memory of the parent
lines = [line.split() for line in status.read_text().splitlines()] if status.exists() else []
kib = next((int(line[1]) for line in lines if line[0] == "VmHWM:"), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(json.dumps([codes, slowest, kib << 10]))
"""


def sound_files() -> list[bytes]:
    drawn = np.random.default_rng(3).integers(0, 256, (37, 53, 4), dtype=np.uint8)
    files = []
    for kind in (*FORMATS, "MPO"):
        for mode in ("RGB", "RGBA", "P", "L"):
            image, file = Image.fromarray(drawn).convert("RGB").convert(mode), BytesIO()
            try:
                image.save(file, kind, **({"save_all": True, "append_images": [image]} if kind in FILMS else {}))
            except (OSError, ValueError):  # a mode that the format has not
                continue
            files.append(file.getvalue())
    return files


def damaged_files(count: int) -> list[bytes]:
    """Sound files with bytes changed, cut out, doubled, or set to numbers that overflow."""
    random, sound, files = np.random.default_rng(11), sound_files(), []
    for index in range(count):
        data = bytearray(sound[index % len(sound)])
        for _ in range(int(random.integers(1, 9))):
            at = int(random.integers(0, min(len(data), 200 if index % 2 else len(data))))
            kind = random.integers(0, 4)
            if kind == 0:
                data[at] = int(random.integers(0, 256))
            elif kind == 1:
                data[at : at + 4] = [b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\x00\x00\x80\x00"][
                    random.integers(0, 3)
                ]
            elif kind == 2:
                del data[at : at + int(random.integers(1, 60))]
            else:
                data[at:at] = data[at : at + int(random.integers(1, 60))]
            data = data or bytearray(b"\0")
        files.append(bytes(data))
    return files


def test_hostile_files_are_refused_or_opened() -> None:
    files = damaged_files(300)
    given = b"".join(len(file).to_bytes(4, "big") + file for file in files)
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    codes, slowest, most_bytes = json.loads(done.stdout)
    assert sum(codes.values()) == len(files)
    assert len(codes) >= 4, codes
    assert slowest < 10
    assert most_bytes < 1 << 30
