"""One small case of every Metal kernel, for the self-test before a GPU is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from localrun.backends.gpu import self_test
from localrun.backends.gpu.self_test_attention import AttentionCases
from localrun.backends.gpu.self_test_cases import gates, gathering, ranking
from localrun.backends.gpu.self_test_mixture import MixtureCases
from localrun.backends.gpu.self_test_recurrent import CASES as RECURRENT
from localrun.backends.metal import self_test_linears
from localrun.backends.metal.device import MetalDevice
from localrun.backends.metal.products import MetalProducts

CASES: Mapping[str, Callable[[MetalDevice], str]] = {
    **self_test_linears.CASES,
    "gates": gates,
    "gathering": gathering,
    "ranking": ranking,
    **AttentionCases().named(),
    **RECURRENT,
    **MixtureCases(MetalProducts).named(),
}


def why_not(device: MetalDevice, identity: str) -> str:
    """Why this device is not to be trusted; empty where it is, and then it knows how it multiplies matrices.

    identity: the device and all that decides what kernels become on it, in words.
    """
    wrong = self_test.why_not("Metal", CASES, device, identity)
    if not wrong:
        device.exact_matrices = self_test.found_out(
            "Metal", f"matrices {identity}", lambda: self_test_linears.has_exact_matrices(device)
        )
    return wrong
