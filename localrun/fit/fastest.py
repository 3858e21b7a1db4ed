"""Decision which backend `auto` takes for a model: the first that can compute it, unless the CPU is faster there.

A GPU whose kernels leave parts of a model to torch may be slower than the CPU by a factor of ten. This is the one place
that decides; loads, `fit`, `show` and `doctor` ask it.
"""

from dataclasses import replace

from localrun.backends.decode_cost import numbers_held
from localrun.backends.interface import Backend
from localrun.backends.registry import BACKENDS, usual_backend
from localrun.base.dataclass import dataclass
from localrun.base.machine import memory
from localrun.base.units import tps
from localrun.fit.decode_time import USUAL_BITS, decode_seconds
from localrun.fit.machine_rates import machine_rates
from localrun.fit.rates import Rates
from localrun.ops.recording import Recording

USABLE = 0.9  # of free main memory, that weights may take for the CPU to be an alternative
USUAL_READ = 30e9  # bytes a second of main memory, at least, where others were busy while it was measured


def fastest_backend(model: Recording) -> Backend:
    """The backend that `auto` takes for a model, before its cache is planned."""
    first = usual_backend(model)
    return BACKENDS["cpu"] if why_slower(first, model) else first


def why_not_usual(model: Recording) -> str:
    """Why `auto` computes a model elsewhere than others on this machine; empty where it does not."""
    return why_slower(usual_backend(model), model)


def why_slower(backend: Backend, model: Recording, bits: float = USUAL_BITS) -> str:
    """Why `auto` leaves a GPU alone for a model: parts that torch would compute there, where the CPU is faster.

    Empty where it takes it. `bits` of a weight.
    """
    cpu = BACKENDS["cpu"]
    parts = () if backend.in_main_memory else backend.without_kernels(model)
    if not parts or cpu.why_unavailable() or cpu.why_not(model, ()):
        return ""
    if numbers_held(model) * bits / 8 > USABLE * memory().available:
        return ""
    times = DecodeTimes(backend, machine_rates(backend=backend), _at_rest(machine_rates(backend=cpu)), bits)
    there, here = times.on_gpu(model), times.on_cpu(model)
    if there <= here:
        return ""
    return (
        f"the CPU computes this model: on the GPU torch would compute {' and '.join(parts)}, for which there are no"
        f" {backend.name} kernels yet, at about {tps(1 / there)} by estimate, and the CPU comes to about"
        f" {tps(1 / here)}; --backend {backend.name} uses the GPU all the same"
    )


def _at_rest(rates: Rates) -> Rates:
    """Rates of main memory as they are when no other program computes: what is busy now decides no load."""
    return rates if rates.idle else replace(rates, read_bytes=max(rates.read_bytes, USUAL_READ))


@dataclass(frozen=True, slots=True)
class DecodeTimes:
    """Estimated seconds of a token on a GPU and on the CPU beside it, by their rates, with `bits` a weight."""

    gpu: Backend
    gpu_rates: Rates
    cpu_rates: Rates
    bits: float

    def on_gpu(self, model: Recording) -> float:
        return decode_seconds(self.gpu, model, self.gpu_rates, self.bits)

    def on_cpu(self, model: Recording) -> float:
        return decode_seconds(BACKENDS["cpu"], model, self.cpu_rates, self.bits)
