"""A case of a self-test or of a layout on an emulated device, told on stdin; leaves with 3 if the result is wrong."""

import json
import sys
from collections.abc import Mapping

from localrun_testing import cuda_linear, metal_linear
from localrun_testing.gpu_cases import CASES, Case, Name, device_of

LAYOUT_CASES: Mapping[Name, Mapping[str, Case]] = {
    "cuda": cuda_linear.LAYOUT_CASES,
    "metal": metal_linear.LAYOUT_CASES,
}


def main() -> int:
    given = json.load(sys.stdin)
    platform = given["platform"]
    device = device_of(platform, **given["device"])
    name = given["case"]
    if wrong := {**CASES[platform], **LAYOUT_CASES[platform]}[name](device):
        print(f"wrong result: {name}: {wrong}")
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
