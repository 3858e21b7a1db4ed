"""CONTRIBUTING's recipe for a kernel, tried: one source for every instruction set and number of threads, and numpy."""

import ctypes

import numpy as np
import pytest
from localrun_testing.instruction_sets import SOURCES, SUPPORT, all_here, compiled, unit_command

WIDTHS = (1, 15, 16, 17, 64, 1003)
N_ROWS = 29


@pytest.fixture(params=all_here() or ("generic",))
def toy(request: pytest.FixtureRequest) -> ctypes.CDLL:
    """The kernel and the thread pool, compiled as the unit of an instruction set is."""
    files = SUPPORT / "toy_kernel.cpp", SOURCES / "runtime" / "thread_pool.cpp"
    library = ctypes.CDLL(str(compiled([*unit_command(request.param), "-O1", "-shared", "-pthread"], *files)))
    library.lr_threads_create.restype = ctypes.c_void_p
    return library


def softmax(toy: ctypes.CDLL, x: np.ndarray, n_threads: int) -> np.ndarray:
    y = np.full((len(x) + 1, x.shape[1]), 7, np.float32)
    threads = ctypes.c_void_p(toy.lr_threads_create(n_threads))
    assert toy.toy_softmax(threads, *x.shape, x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p)) == 0
    toy.lr_threads_destroy(threads)
    assert (y[-1] == 7).all(), "it writes its rows and nothing behind them"
    return y[:-1]


def rows(width: int) -> np.ndarray:
    """f32 [N_ROWS, width]: ordinary, all alike, far apart, with an infinity that counts for nothing."""
    x = np.random.default_rng(width).normal(0, 5, (N_ROWS, width)).astype(np.float32)
    x[3], x[4] = 11.0, 0.0
    x[5] *= 1000
    x[6, 1:] = -np.inf
    return x


def test_a_kernel_is_one_source_for_every_instruction_set(toy: ctypes.CDLL) -> None:
    for width in WIDTHS:
        x = rows(width)
        powers = np.exp((x - x.max(1, keepdims=True)).astype(np.float64))
        alone = softmax(toy, x, 1)
        np.testing.assert_allclose(alone, powers / powers.sum(1, keepdims=True), rtol=1e-6, atol=1e-37)
        for n_threads in (2, 5):
            assert np.array_equal(softmax(toy, x, n_threads), alone), "the bits do not depend on the threads"
        x[8, width // 2] = np.nan
        broken = softmax(toy, x, 2)
        assert np.isnan(broken[8]).all()
        assert np.array_equal(np.delete(broken, 8, 0), np.delete(alone, 8, 0)), "a broken row breaks no other"
