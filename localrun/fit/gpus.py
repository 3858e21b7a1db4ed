"""GPUs of a what-if: how many, on how many machines, how large, and how fast their memory is where that is known."""

import re

from localrun.base.dataclass import dataclass

MOST_GPUS, MOST_NODES = 64, 1024  # of a machine, and machines
_TEXT = re.compile(r"(?:(\d{1,4})\s*[x×*]\s*)?(\S.*)")

# GiB that the driver reports, and GB/s of the vendors' data sheets (the SXM form where there are several).
_KNOWN = {
    "A10": (22.0, 600),
    "A100": (79.0, 2039),
    "A100-40": (39.0, 1555),
    "A6000": (47.0, 768),
    "B200": (179.0, 8000),
    "H100": (79.0, 3350),
    "H200": (140.0, 4800),
    "L4": (22.0, 300),
    "L40S": (44.0, 864),
    "RTX3090": (24.0, 936),
    "RTX4090": (23.9, 1008),
    "RTX5090": (31.8, 1792),
}


@dataclass(frozen=True, slots=True)
class Gpus:
    """Like GPUs: `each` in every one of `nodes` machines. `read_bytes` a second of the memory of one; 0: unknown."""

    each: int
    nbytes: int  # of one
    nodes: int = 1
    read_bytes: float = 0.0
    name: str = ""

    @property
    def count(self) -> int:
        return self.each * self.nodes


def parse_gpus(text: str, nodes: int = 1) -> Gpus:
    """GPUs of `4x80GiB` or `8xH100`; one where there is no number before it. ValueError for anything else."""
    match = _TEXT.fullmatch(text.strip())
    each, what = (int(match[1] or 1), match[2].strip()) if match else (0, "")
    if not 1 <= each <= MOST_GPUS or not 1 <= nodes <= MOST_NODES:
        raise ValueError(f"1 to {MOST_GPUS} GPUs a machine, and 1 to {MOST_NODES} machines")
    name = what.upper().replace(" ", "")
    if name in _KNOWN:
        gib, gbps = _KNOWN[name]
        return Gpus(each, int(gib * (1 << 30)), nodes, gbps * 1e9, name)
    size = re.fullmatch(r"(\d{1,4}(?:\.\d+)?)\s*G(?:i?B)?", what, re.IGNORECASE)
    if size is None or float(size[1]) < 1:
        raise ValueError(f"such as 4x80GiB, or one of {', '.join(_KNOWN)}")
    return Gpus(each, int(float(size[1]) * (1 << 30)), nodes)
