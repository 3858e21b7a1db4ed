"""Estimate of the time of a decode step, from launches, bytes and operations of torch. Torch-free.

An estimate, not a measurement: none of these figures of GPUs was measured on one by us. It only has to tell backends
apart that differ by a factor. Assumed are a GPU whose kernels read 80 % of what a copy reaches (computed: 62 % of an
H100's, 90 % of an RTX 4090's), a host that needs 8 µs to ask for a launch and 10 µs for an operation of torch, and 3 µs
that a kernel takes beside what it reads. Keys, values and states that kernels read are left out: they are as many
bytes everywhere.

In a CUDA graph a kernel takes half of that. The manual of CUDA.jl (cuda.juliagpu.org/dev/usage/graphs) has 80 tiny ones
in 70 µs as a graph and in 260 µs one by one: 0.9 µs and 3.3 µs, their work included. The host asks once, and prepares a
step in 0.6 ms (measured, `benchmarks.gpu_host_time`), while the device computes the one before it, but for models
whose layers are recurrent.
"""

from localrun.backends.decode_cost import DecodeCost, numbers_read
from localrun.backends.interface import Backend
from localrun.fit.rates import Rates
from localrun.ops.recording import Recording

LAUNCH_SECONDS, KERNEL_SECONDS, TORCH_SECONDS = 8e-6, 3e-6, 10e-6
NODE_SECONDS, GRAPH_SECONDS = 1.5e-6, 0.6e-3  # of a kernel in a graph, and of the host for a step that is one
KERNEL_SHARE = 0.8  # of a GPU's copied bytes a second
USUAL_BITS = 4.85  # a weight, as in Q4_K_M, where a precision is not known yet


def decode_seconds(backend: Backend, model: Recording, rates: Rates, bits: float = USUAL_BITS) -> float:
    """Estimated seconds of one token of one text, with matrices of `bits` a weight."""
    n_bytes, cost = numbers_read(model) * bits / 8, backend.decode_cost(model)
    share = rates.share("decode", n_bytes)[0] if backend.in_main_memory else KERNEL_SHARE
    reading = n_bytes / (share * rates.read_bytes)
    if cost.is_graph:
        on_device = reading + cost.launches * NODE_SECONDS
        kernels = max(on_device, GRAPH_SECONDS) if cost.is_ahead else on_device + GRAPH_SECONDS
        return kernels + torch_seconds(cost, rates)
    kernels = reading + cost.launches * KERNEL_SECONDS
    return max(kernels, cost.launches * LAUNCH_SECONDS) + torch_seconds(cost, rates)


def torch_seconds(cost: DecodeCost, rates: Rates) -> float:
    """Estimated seconds of a token that torch takes."""
    return cost.torch_ops * TORCH_SECONDS + cost.torch_bytes / rates.read_bytes
