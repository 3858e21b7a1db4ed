"""What torch is asked, by a library of ours that writes its calls down."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from localrun_testing.emulator.metal import EmulatedCompiler

from localrun.backends.metal.device import MetalDevice, MetalKernel
from localrun.backends.metal.source import KERNELS

TEXTS = {"one.metal": '#include "two.metal"\nkernel void a() {}\n', "two.metal": "#pragma once\n// two\n"}
BLOCK = (32, 2, 1)


class Library:
    """Every kernel there could be."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **options: self.calls.append((name, args, options))


class Compiler:
    """Keeps the libraries it makes."""

    def __init__(self) -> None:
        self.libraries: list[Library] = []

    def __call__(self, text: str) -> Library:
        self.libraries.append(Library(text))
        return self.libraries[-1]


@pytest.fixture
def compiler() -> Compiler:
    return Compiler()


def device(compiler: Compiler, family: int = 7) -> MetalDevice:
    return MetalDevice(compiler, "cpu", family, replace=TEXTS)


def test_a_launch_counts_threads_and_sends_numbers_in_32_bits(compiler: Compiler) -> None:
    gpu, x = device(compiler), torch.arange(8.0)[4:]
    launch = gpu.kernel("one.metal", "a").bind((3, 5, 2), BLOCK, x, 7, None, 0.5)
    for _ in range(2):
        launch()
    (library,) = compiler.libraries
    (first, second) = library.calls
    assert first == second
    name, args, options = first
    assert name == "a"
    assert args[0] is x  # torch takes its offset into account
    assert args[1:] == (7, gpu.nothing, 0.5, 0b1011)
    assert options == {"threads": (96, 10, 2), "group_size": BLOCK, "arg_casts": {1: "int32", 4: "int32"}}


def test_a_grid_of_nothing_launches_nothing(compiler: Compiler) -> None:
    device(compiler).kernel("one.metal", "a").bind((3, 0, 1), BLOCK, 1)()
    assert compiler.libraries[0].calls == []


def test_a_text_is_compiled_once_with_its_macros_and_includes(compiler: Compiler) -> None:
    gpu = device(compiler, family=9)
    kernels = [gpu.kernel("one.metal", name, N=2) for name in ("a", "b", "a")]
    assert kernels[0] is kernels[2]
    (library,) = compiler.libraries
    assert library.text.startswith("#define LR_FAMILY 9\n#define N 2\n")
    assert library.text.count("// two") == 1
    gpu.kernel("one.metal", "a", N=3)
    assert len(compiler.libraries) == 2


def test_every_kernel_says_how_many_threads_it_has_at_most() -> None:
    """Else registers decide, and a launch may fail in the middle of an answer on some GPU."""
    for path in KERNELS.folder().glob("*.metal"):
        text = path.read_text()
        assert len(re.findall(r"^LR_THREADS\(.+\)\nkernel void ", text, re.MULTILINE)) == text.count("kernel void ")


@pytest.mark.parametrize(
    ("shader", "says"),
    [
        (SimpleNamespace(max_threads_per_threadgroup=32), "at most 32 threads"),
        (SimpleNamespace(max_threads_per_threadgroup=64, thread_execution_width=16), "16 threads on this GPU"),
    ],
)
def test_a_gpu_that_runs_fewer_threads_is_noticed_before_a_launch(shader: Any, says: str, compiler: Compiler) -> None:
    kernel = MetalKernel(device(compiler), "a", shader)
    with pytest.raises(ValueError, match=says):
        kernel.bind((1, 1, 1), BLOCK)


def test_the_emulator_refuses_more_threads_than_a_kernel_names() -> None:
    text = "#include <metal_stdlib>\nkernel void a(device int* x [[buffer(0)]]) {}\n"
    for words, most in (("", 1024), ("[[max_total_threads_per_threadgroup(2 * 32)]] ", 64)):
        shader = EmulatedCompiler().compile_shader(text.replace("kernel", words + "kernel")).a
        assert shader.max_threads_per_threadgroup == most
        with pytest.raises(ValueError, match=f"{most} limit"):
            shader(torch.zeros(1, dtype=torch.int32), threads=2 * most, group_size=2 * most)


@pytest.mark.parametrize(
    ("block", "arguments", "says"),
    [
        ((48, 1, 1), (), "32, 64"),
        ((1024, 2, 1), (), "1024"),
        ((0, 1, 1), (), "threads"),
        (BLOCK, (1 << 31,), "no int32"),
        (BLOCK, (torch.zeros(4, 4).t(),), "contiguous"),
        (BLOCK, (torch.zeros(1, device="meta"),), "on cpu"),
        (BLOCK, (None,) * 31, "more than 30"),
    ],
)
def test_what_cannot_be_launched_is_not_bound(
    block: tuple[int, int, int], arguments: tuple[Any, ...], says: str, compiler: Compiler
) -> None:
    with pytest.raises(ValueError, match=says):
        device(compiler).kernel("one.metal", "a").bind((1, 1, 1), block, *arguments)
