"""The self-test passes on the emulated device, is not run twice, and says what differs where something does."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from localrun_testing.emulator.metal import emulated_device

from localrun.backends.metal import availability, system
from localrun.backends.metal.backend import MetalBackend
from localrun.backends.metal.device import MetalDevice
from localrun.backends.metal.self_test import why_not
from localrun.backends.metal.source import KERNELS


def untouched() -> MetalDevice:
    """A device whose compiler fails."""

    def compile_shader(text: str) -> Any:
        raise SyntaxError("program_source:7: error: no such thing\nand more")

    return MetalDevice(compile_shader, "cpu")


def test_a_device_that_passes_is_asked_once_and_knows_how_it_multiplies() -> None:
    device, again = emulated_device(), untouched()
    assert why_not(device, "a Mac") == ""
    assert device.exact_matrices
    assert why_not(again, "a Mac") == ""
    assert again.exact_matrices
    assert "no such thing" in why_not(untouched(), "a Mac with another macOS")


def test_a_compiler_that_fails_is_the_reason() -> None:
    reason = why_not(untouched(), "a Mac")
    wrong = "norm: SyntaxError: program_source:7: error: no such thing"
    assert reason == f"the self-test of the Metal kernels failed: {wrong}"


def broken(file: str, right: str, wrong: str) -> MetalDevice:
    text = (KERNELS.folder() / file).read_text("utf-8")
    assert right in text
    return emulated_device(replace={file: text.replace(right, wrong)})


def test_a_device_that_computes_something_else_is_not_trusted() -> None:
    assert "failed: norm: norm off by" in why_not(
        broken("numbers.metal", "return 1.f / sqrt(", "return 0.999f / sqrt("), "a Mac"
    )


def test_a_device_whose_products_of_matrices_are_no_chains_of_fma_does_without() -> None:
    """As if it added what eight products come to."""
    chain = "simdgroup_multiply_accumulate(sums.chains[t][a][b], of_x[a], of_w, sums.chains[t][a][b]);"
    added = """{
        simdgroup_float8x8 eight;
        simdgroup_multiply(eight, of_x[a], of_w);
        for (int i = 0; i < 2; i++) sums.chains[t][a][b].thread_elements()[i] += eight.thread_elements()[i];
      }"""
    device = broken("many_sums.metal", chain, added)
    assert why_not(device, "a Mac") == ""
    assert not device.exact_matrices


def test_torch_compiles_for_the_family_of_the_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.delenv(availability.EMULATE, raising=False)
    monkeypatch.setattr(system, "chip", lambda: "Apple M4")

    def compile_shader(text: str) -> SimpleNamespace:
        texts.append(text)
        return SimpleNamespace(rms_norm=None)

    monkeypatch.setattr(torch.mps, "compile_shader", compile_shader)
    monkeypatch.setattr(torch, "zeros", lambda *size, device: None)
    MetalBackend().kernel_device.kernel("norm.metal", "rms_norm")
    assert "#define LR_FAMILY 9\n" in texts[0]
    assert texts[0].isascii()
