"""The emulator itself: threads, barriers, meetings and shared memory, and what it says of kernels that are at fault."""

import pytest
import torch
from localrun_testing.emulator.build import EmulatedFault
from localrun_testing.emulator.cuda import EmulatedDevice

from localrun.backends.gpu.device import Argument
from localrun.base.errors import LocalrunError

TEXT = """#include "device.cuh"
extern "C" __global__ void places(int* to) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  to[block * blockDim.x * blockDim.y * blockDim.z + thread] = 1000 * block + thread;
}
extern "C" __global__ void turn_around(int* x) {
  LR_DYNAMIC_SHARED(int, shared);
  const int i = threadIdx.x, n = blockDim.x;
  shared[i] = x[blockIdx.x * n + i];
  __syncthreads();
  x[blockIdx.x * n + i] = shared[n - 1 - i];
}
extern "C" __global__ void some_leave(int* x) {
  __shared__ int seen[64];
  if (threadIdx.x >= 40) return;
  seen[threadIdx.x] = threadIdx.x;
  __syncthreads();
  x[threadIdx.x] = seen[39 - threadIdx.x];
}
extern "C" __global__ void turns(int* x) { x[0] = x[0] * 4 + blockIdx.x * 2 + threadIdx.x; }
extern "C" __global__ void unwritten(int* x) {
  __shared__ int fixed[4];
  LR_DYNAMIC_SHARED(int, dynamic);
  x[0] = fixed[3], x[1] = dynamic[0];
}
extern "C" __global__ void halves(int* x) {
  const int lane = threadIdx.x;
  const uint32_t mask = lane < 16 ? 0xffffu : 0xffff0000u;
  x[lane] = lane < 16 ? __shfl_xor_sync(mask, lane, 1) : __shfl_xor_sync(mask, -lane, 2);
}
extern "C" __global__ void from_outside(float* x) {
  const int lane = threadIdx.x;
  if (lane < 16) x[lane] = __shfl_sync(0xffffu, 1.f, 16);
}
#line 100
extern "C" __global__ void two_barriers(int* x) {
  if (threadIdx.x < 32) __syncthreads();
  else __syncthreads();
}
#line 200
extern "C" __global__ void shuffle_in_a_branch(int* x) {
  if (threadIdx.x < 8) x[threadIdx.x] = __shfl_xor_sync(0xffffffffu, threadIdx.x, 1);
}
#line 300
extern "C" __global__ void outside_its_mask(int* x) {
  x[threadIdx.x] = __shfl_xor_sync(0x7fffffffu, threadIdx.x, 1);
}
#line 400
extern "C" __global__ void different_places(int* x) {
  if (threadIdx.x % 2) x[0] = __shfl_xor_sync(0xffffffffu, 1, 1);
  else x[1] = __shfl_xor_sync(0xffffffffu, 1, 1);
}
extern "C" __global__ void no_wait(uint4* x) {
  LR_DYNAMIC_SHARED(uint4, shared);
  lr_copy_async(shared, x);
}
#line 500
extern "C" __global__ void many_copies(uint4* x) {
  LR_DYNAMIC_SHARED(uint4, shared);
  for (int i = 0; i < 65; i++) lr_copy_async(shared, x);
}
"""


def run(
    name: str, *arguments: Argument, grid: int = 1, block: int = 32, shared: int = 0, seed: int = 0, poison: int = 0xFF
) -> None:
    device = EmulatedDevice(seed=seed, poison=poison, replace={"sample.cu": TEXT})
    device.kernel("sample.cu", name).bind((grid, 1, 1), (block, 1, 1), *arguments, shared=shared)()


def numbers(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int32)


def test_every_thread_of_every_block_runs_once() -> None:
    found = numbers(12 * 24)
    kernel = EmulatedDevice(replace={"sample.cu": TEXT}).kernel("sample.cu", "places")
    kernel.bind((2, 3, 2), (4, 3, 2), found)()
    assert found.tolist() == [1000 * block + thread for block in range(12) for thread in range(24)]


@pytest.mark.parametrize("seed", [0, 1, 2, 9])
def test_what_was_written_before_a_barrier_is_read_after_it(seed: int) -> None:
    x = torch.arange(3 * 200, dtype=torch.int32)
    run("turn_around", x, grid=3, block=200, shared=800, seed=seed)
    assert torch.equal(x.view(3, 200).flip(1), torch.arange(600, dtype=torch.int32).view(3, 200))


def test_a_barrier_does_not_wait_for_who_has_returned() -> None:
    x = numbers(40)
    run("some_leave", x, block=64)
    assert x.tolist() == list(range(39, -1, -1))


def test_turns_are_taken_in_the_order_of_the_seed() -> None:
    orders = set()
    for seed in range(20):
        x = numbers(1)
        run("turns", x, grid=2, block=2, seed=seed)
        orders.add(int(x))
        again = numbers(1)
        run("turns", again, grid=2, block=2, seed=seed)
        assert torch.equal(x, again)
    assert {0b00011011, 0b11100100} <= orders  # 0 ascends, 1 descends
    assert len(orders) > 4


def test_shared_memory_holds_poison_at_first() -> None:
    x = numbers(2)
    run("unwritten", x, shared=16, poison=0x3C)
    assert [hex(v) for v in x.tolist()] == ["0x3c3c3c3c"] * 2


def test_lanes_may_meet_in_groups() -> None:
    x = numbers(32)
    run("halves", x)
    assert x.tolist() == [lane ^ 1 if lane < 16 else -(lane ^ 2) for lane in range(32)]


def test_a_lane_outside_the_mask_has_nothing_to_give() -> None:
    x = torch.zeros(16)
    run("from_outside", x)
    assert x.isnan().all()


@pytest.mark.parametrize(
    ("name", "block", "says"),
    [
        ("two_barriers", 64, r"different barriers at sample\.cu:102, thread 32 of block 0,0,0"),
        ("shuffle_in_a_branch", 32, r"deadlock: thread 0 waits at sample\.cu:201; thread 8 has returned"),
        ("outside_its_mask", 32, r"a lane is not in its own mask at sample\.cu:301, thread 31"),
        ("different_places", 32, r"different places \(the others at sample\.cu:402\) at sample\.cu:401"),
        ("no_wait", 1, "returned with copies under way"),
        ("many_copies", 1, r"too many copies under way at sample\.cu:502"),
    ],
)
def test_a_fault_is_named_and_leaves_the_device_in_order(name: str, block: int, says: str) -> None:
    x = numbers(1024)
    with pytest.raises(EmulatedFault, match=says):
        run(name, x, block=block, shared=16)
    test_what_was_written_before_a_barrier_is_read_after_it(0)


def test_a_block_of_too_many_threads_is_refused_when_it_is_bound() -> None:
    with pytest.raises(ValueError, match="a block has 1 to 1024 threads"):
        run("places", numbers(1024), block=1025, shared=16)


def test_a_kernel_that_is_not_there_and_one_that_does_not_compile() -> None:
    with pytest.raises(LocalrunError, match="no kernel nothing"):
        run("nothing")
    broken = EmulatedDevice(replace={"sample.cu": TEXT + "\n#line 7\nextern int x = y;"})
    with pytest.raises(LocalrunError, match=r"sample\.cu:7:.*y"):
        broken.kernel("sample.cu", "places")
    with pytest.raises(ValueError, match="more than every such GPU has"):
        run("places", numbers(1), shared=100 << 10)
    with pytest.raises(ValueError, match="more than every such GPU has"):
        EmulatedDevice(75).kernel("intrinsics.cu", "check_copy_async").bind(
            (1, 1, 1), (1, 1, 1), numbers(1), numbers(1), 1, shared=65 << 10
        )
