"""The reference names its device wherever it makes a tensor, and says in one way that memory ran out.

Seen without a GPU: a tensor made with no `device=` would lie on the CPU. Tests on real devices are in engine/test_gpu.
"""

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from localrun_testing.kv_cases import CASES, Blocks, KVCase, reference_for, run, sizes, step
from localrun_testing.latent_cases import LatentCase
from localrun_testing.sequence_inputs import sequence_input
from localrun_testing.small_model import small_model, small_runner
from torch.overrides import TorchFunctionMode

from localrun.backends.reference.executor import ReferenceExecutor
from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.rows import RowReferenceOps
from localrun.base.errors import ran_out
from localrun.ops.interface import LogitAdjust
from localrun.ops.token_counts import TokenCounts

MAKERS = {torch.tensor, torch.as_tensor, torch.zeros, torch.ones, torch.empty, torch.full, torch.arange, torch.eye,
          torch.linspace, torch.rand, torch.randn, torch.randint, torch.scalar_tensor}  # fmt: skip
SHORT = [replace(case, n_tokens=min(case.n_tokens, 140)) for case in (*CASES[:20], LatentCase())]


class DevicesNamed(TorchFunctionMode):
    """Fails where a tensor is made without saying where; counts those that were made."""

    n_made = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in MAKERS:
            self.n_made += 1
            assert (kwargs or {}).get("device") is not None, f"{func.__name__} without a device"
        return func(*args, **(kwargs or {}))


def test_the_guard_bites() -> None:
    with pytest.raises(AssertionError, match="arange without a device"), DevicesNamed():
        torch.arange(3)


@pytest.mark.parametrize("ops", [ReferenceOps, RowReferenceOps])
@pytest.mark.parametrize("case", SHORT, ids=str)
def test_every_tensor_of_a_step_is_made_on_the_device(case: KVCase, ops: type[ReferenceOps]) -> None:
    if ops is RowReferenceOps:
        case = replace(case, n_tokens=66, n_heads=2, n_kv_heads=1, head_dim=16)
    executor = reference_for(case, ops)
    blocks = Blocks.of(case, executor, *sizes(case), seed=0, poison=False)
    views = [(blocks.view(0, 65), 0, 65), (blocks.view(65, 66), 65, 1)]
    inputs = executor.run

    def watched(given: Any) -> Any:
        with DevicesNamed() as seen:
            handle = inputs(given)
        assert seen.n_made > 3
        return handle

    executor.run = watched  # type: ignore[assignment, method-assign]
    for view in views:
        step(case, executor, *view)


def test_whatever_a_request_asks_of_its_logits_is_made_on_the_device() -> None:
    runner = small_runner()
    adjust = LogitAdjust(
        TokenCounts((1, 2)),
        TokenCounts((1, 1, 5)),
        repeat=1.3,
        presence=0.5,
        frequency=0.1,
        bias={3: 2.0},
        temperature=0.7,
    )
    view = sequence_input([(0, 0)], 3, len(runner.groups))
    with DevicesNamed():
        runner.compute([([1, 2, 3], 0)], [view], [2], [adjust])


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("MPS backend out of memory (MPS allocated: 5.61 GB, other allocations: 3.32 GB)"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ],
)
def test_no_memory_for_a_step_is_one_kind_of_error_that_holds_no_tensors(error: Exception) -> None:
    executor = small_runner().executor
    assert isinstance(executor, ReferenceExecutor)

    def no_room(step: Any) -> Any:
        raise error

    executor.program.run = no_room  # type: ignore[method-assign]
    with pytest.raises(MemoryError) as caught:
        executor.run(None)  # type: ignore[arg-type]
    if not isinstance(error, MemoryError):
        assert caught.value.__context__ is None


def test_real_exhaustion_is_recognised_and_other_errors_pass() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert ran_out(caught.value)
    assert not ran_out(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    executor = small_runner().executor
    assert isinstance(executor, ReferenceExecutor)
    executor.program.run = torch.empty  # type: ignore[assignment, method-assign]
    with pytest.raises(TypeError):
        executor.run(None)  # type: ignore[arg-type]


def test_a_closed_executor_holds_no_blocks_and_still_tells_their_sizes() -> None:
    case = KVCase("q8", n_tokens=70)
    executor = reference_for(case)
    run(case, executor)
    before = executor.kv_nbytes, executor.block_bytes(0), executor.ring_bytes(0)
    stores = [store for store in (*executor.pool.coded, *executor.pool.ring) if store is not None]
    planes = [weakref.ref(plane) for store in stores for plane in store.planes]
    executor.close()
    gc.collect()
    assert len(planes) == 8
    assert not any(plane() is not None for plane in planes)
    assert (executor.kv_nbytes, executor.block_bytes(0), executor.ring_bytes(0)) == before


def test_a_model_stays_usable_beside_a_closed_executor() -> None:
    model = small_model()
    small_runner(model=model).executor.close()
    view = sequence_input([(0, 0)], 2, 2)
    assert small_runner(model=model).compute([([1, 2], 0)], [view], [1]).finite.all()
