"""The plugin that runs the emulator's tests on a GPU, tried on copies of tensors that the emulator computes on."""

import pytest
import torch
from localrun_testing import gpu_mirror
from localrun_testing.emulator.cuda import EmulatedDevice

from localrun.backends.cuda.self_test import CASES
from localrun.backends.gpu import elementwise


@pytest.fixture
def mirrored(monkeypatch: pytest.MonkeyPatch) -> EmulatedDevice:
    gpu_mirror.install(monkeypatch, on_copies=True)
    return EmulatedDevice()


@pytest.mark.parametrize("name", ["gates", "norm", "linear in bulk"])
def test_cases_pass_on_copies(name: str, mirrored: EmulatedDevice) -> None:
    assert CASES[name](mirrored) == ""
    assert isinstance(mirrored.kernel("elementwise.cu", "scale"), gpu_mirror.MirroredKernel)


def test_results_come_back_into_views_of_a_storage(mirrored: EmulatedDevice) -> None:
    memory = torch.arange(12.0)
    x, out = memory[2:4].view(1, 2), memory[6:8].view(1, 2)
    elementwise.scale(mirrored, x, 10.0, out)()
    assert memory.tolist() == [0, 1, 2, 3, 4, 5, 20, 30, 8, 9, 10, 11]


def test_wrong_arguments_are_refused_when_they_are_bound(mirrored: EmulatedDevice) -> None:
    with pytest.raises(ValueError, match="takes 4 arguments, not 1"):
        mirrored.kernel("elementwise.cu", "scale").bind((1, 1, 1), (32, 1, 1), torch.zeros(2))


def test_devices_with_a_text_of_their_own_stay_emulated(mirrored: EmulatedDevice) -> None:
    text = '#include "device.cuh"\nextern "C" __global__ void scale(int n) {}'
    one = EmulatedDevice(replace={"elementwise.cu": text})
    assert not isinstance(one.kernel("elementwise.cu", "scale"), gpu_mirror.MirroredKernel)
