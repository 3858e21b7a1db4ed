"""What the right logits are, according to transformers, and how far away some others are."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers as _transformers

transformers: Any = _transformers  # its annotations are partial


def token_ids(n_tokens: int, vocab_size: int, seed: int = 0) -> list[int]:
    """A reproducible random text that begins with token 0."""
    generator = torch.Generator().manual_seed(seed)
    return [0, *torch.randint(0, vocab_size, (n_tokens - 1,), generator=generator).tolist()]


def reference_logits(folder: Path, ids: list[int], **config_changes: Any) -> torch.Tensor:
    """fp32 logits [n_tokens, vocab_size] of a safetensors folder: one eager pass over the whole sequence."""
    config = transformers.AutoConfig.from_pretrained(folder, **config_changes)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, config=config, attn_implementation="eager", dtype=torch.float32
    )
    return model_logits(model.eval(), ids)


def model_logits(model: Any, ids: list[int]) -> torch.Tensor:
    """fp32 logits [n_tokens, vocab_size] of a transformers model that is already in memory."""
    with torch.no_grad():
        logits: torch.Tensor = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    return logits.float()


@dataclass(frozen=True, slots=True)
class Difference:
    """How far logits are from the reference: largest absolute error, squared error / squared signal, equal argmax."""

    max_abs: float
    nmse: float
    same_top1: float

    def within(self, max_abs: float, nmse: float) -> bool:
        return self.max_abs <= max_abs and self.nmse <= nmse and self.same_top1 == 1.0


def difference(logits: torch.Tensor, reference: torch.Tensor) -> Difference:
    """Compare two [n_tokens, vocab_size]; anything that is not finite counts as infinitely far away."""
    assert logits.shape == reference.shape, f"{tuple(logits.shape)} against {tuple(reference.shape)}"
    if not torch.isfinite(logits).all():
        return Difference(float("inf"), float("inf"), 0.0)
    error = logits - reference
    return Difference(
        max_abs=error.abs().max().item(),
        nmse=(error.square().sum() / reference.square().sum()).item(),
        same_top1=(logits.argmax(-1) == reference.argmax(-1)).float().mean().item(),
    )
