"""The software model of AMX that tests run the unit on: right, and as strict as the processor."""

import struct
import subprocess
from functools import cache

import numpy as np
import pytest
from localrun_testing.instruction_sets import MODEL_FLAGS, SOURCES, SUPPORT, compiled, native, tool

MISTAKES = (
    "too many rows", "too many bytes", "no rows", "no bytes", "other tokens", "other steps", "other columns",
    "broken group", "reserved", "palette", "no shapes", "released", "no shape", "twice",
)  # fmt: skip


@pytest.fixture(scope="module")
def driver() -> str:
    if "avx2" not in native():
        pytest.skip("the model is of vectors of an instruction set that this machine lacks")
    return built(*MODEL_FLAGS.split())


@cache
def built(*flags: str) -> str:
    options = ["-std=c++17", "-O1", "-mavx2", "-mfma", "-ffp-contract=off", *flags, f"-I{SOURCES}"]
    return str(compiled([tool("c++"), *options], SUPPORT / "amx_driver.cpp"))


def product(driver: str, shape: tuple[int, int, int], memory: np.ndarray) -> np.ndarray:
    data = struct.pack("<3i", *shape) + memory.tobytes()
    done = subprocess.run([driver], input=data, capture_output=True, check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(16, 64)


SHAPES = [(16, 64, 16), (1, 4, 1), (5, 32, 16), (8, 16, 16), (16, 60, 7)]  # tokens, bytes of a step, columns


@pytest.mark.parametrize("shape", SHAPES)
def test_bf16_products_are_rounded_as_the_manual_says(driver: str, shape: tuple[int, int, int]) -> None:
    """Products of two bf16 are exact in double, so a sum in double rounded once is a fused multiply-add."""
    tokens, step, columns = shape
    draw = np.random.default_rng(step)
    memory = np.stack([draw.standard_normal((16, 16)).astype(np.float32).view(np.uint8) for _ in range(3)])
    memory.view(np.uint16)[1:, :, ::2] = memory.view(np.uint16)[[2, 1], :, 1::2]  # both of a pair of ordinary size
    memory.view(np.uint16)[1, 0, 0] = 3  # subnormal: counts as 0

    def numbers(pairs: np.ndarray) -> np.ndarray:
        floats = (pairs.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return np.where(np.abs(floats) < np.finfo(np.float32).tiny, 0.0, floats)

    x = numbers(memory[1, :tokens, :step].view(np.uint16)).reshape(tokens, 1, step // 4, 2)
    weights = numbers(memory[2, : step // 4, : 4 * columns].view(np.uint16)).reshape(step // 4, columns, 2)
    halves = np.zeros((tokens, columns, 2), np.float32)
    for k in range(step // 4):
        halves = (halves + x[:, :, k] * weights[k]).astype(np.float32)
    wanted = memory[0].copy()
    wanted.view(np.float32)[:tokens, :columns] += halves[..., 0] + halves[..., 1]
    assert np.array_equal(product(driver, shape, memory), wanted)


@pytest.mark.parametrize("spread", [1, 20, 60])  # of exponents: at 60 products overflow, and vanish
@pytest.mark.parametrize("shape", SHAPES)
def test_the_processor_gives_the_same_bits(driver: str, shape: tuple[int, int, int], spread: int) -> None:
    if "amx" not in native():
        pytest.skip("this processor lacks AMX: an instruction set")
    processor = built()
    draw = np.random.default_rng(spread)
    for _ in range(20):
        numbers = draw.standard_normal((3, 16, 32)) * 2.0 ** draw.integers(-spread, spread, (3, 16, 32), endpoint=True)
        memory = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        memory[1:][draw.random((2, 16, 32)) < 0.02] = 0x8003  # subnormal
        memory[0] = numbers[0].astype(np.float32)[:, :16].copy().view(np.uint16)  # sums are float32
        found, wanted = (product(program, shape, memory).view(np.float32) for program in (driver, processor))
        assert np.array_equal(found.view(np.uint32)[~np.isnan(wanted)], wanted.view(np.uint32)[~np.isnan(wanted)])
        assert np.array_equal(np.isnan(found), np.isnan(wanted))


@pytest.mark.parametrize("name", MISTAKES)
def test_what_the_processor_faults_on_ends_it(driver: str, name: str) -> None:
    done = subprocess.run([driver, name], capture_output=True, text=True)
    assert done.returncode < 0
    assert done.stderr.startswith("AMX model: ")


def test_what_is_no_mistake_does_not(driver: str) -> None:
    subprocess.run([driver, "none"], check=True)
