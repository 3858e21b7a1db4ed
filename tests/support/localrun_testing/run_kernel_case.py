"""A case of the self-test or of a layout on an emulated device, told on stdin; leaves with 3 if the result is wrong."""

import json
import sys

from localrun.backends.cuda.emulated_device import EmulatedDevice
from localrun.backends.cuda.self_test_cases import CASES
from localrun_testing.cuda_linear import LAYOUT_CASES


def main() -> int:
    given = json.load(sys.stdin)
    seed, poison = given["schedule"]
    device = EmulatedDevice(sanitizer=given["sanitizer"], seed=seed, poison=poison, replace=given["replace"])
    for name in CASES if given["case"] == "all" else [given["case"]]:
        if wrong := {**CASES, **LAYOUT_CASES}[name](device):
            print(f"wrong result: {name}: {wrong}")
            return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
