"""For a conftest.py whose tests run kernels on the emulated GPU, which the linkers of other systems cannot build."""

import sys

import pytest


@pytest.fixture(autouse=True, scope="session")
def emulator() -> None:
    if sys.platform != "linux":
        pytest.skip("the emulator of CUDA kernels is for Linux: not for windows and macos")
