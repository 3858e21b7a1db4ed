"""KL divergence of quantised weights from the full ones, as `benchmarks/weight_quality.py` measured it."""

MEASURED_ON = "SmolLM2 135M"
MEANING = f"KLD: mean KL divergence from the full weights, measured on {MEASURED_ON}; larger models diverge less."
_MEASURED = {  # nats; benchmarks/results/2026-11-23-epyc-2-threads-precisions.md
    "Q8_0": 0.0015,
    "INT8": 0.0015,
    "Q6_K": 0.0179,
    "Q5_K_M": 0.0528,
    "Q5_0": 0.097,
    "Q4_K_M": 0.1501,
    "IQ4_XS": 0.1765,
    "Q4_1": 0.2068,
    "Q4_K_S": 0.2131,
    "INT4": 0.3112,
    "Q4_0": 0.3467,
    "Q3_K_M": 0.5184,
    "Q3_K_S": 0.7717,
    "Q2_K": 3.5952,
}
_FULL = ("F32", "F16", "BF16")  # as models are published


def weight_kld(precision: str) -> float | None:
    """Mean KL divergence from the full weights over the vocabulary, in nats; None where not measured.

    Names of llama.cpp stand for its mixes, made without an importance matrix.
    """
    name = precision.upper()
    return 0.0 if name in _FULL else _MEASURED.get(name)


def kld_text(nats: float | None) -> str:
    """Format a KL divergence with its significant digits."""
    if nats is None:
        return "not measured"
    return f"{nats:.4f}" if 0 < nats < 0.01 else f"{nats:.2f}"
