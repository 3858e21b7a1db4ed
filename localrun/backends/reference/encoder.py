"""Encoders in plain torch, on any device."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from localrun.backends.reference.ops import ReferenceOps
from localrun.backends.reference.pool import KVPool
from localrun.base.errors import ran_out
from localrun.ops.encoder_program import EncoderInput, EncoderRecording
from localrun.ops.interface import StepCancelled
from localrun.ops.kv import KVPlan
from localrun.ops.layouts import on_device


class ReferenceEncoder:
    """An encoder whose instructions torch executes one by one."""

    def __init__(self, recording: EncoderRecording, device: torch.device) -> None:
        self.recording = recording
        self.ops = ReferenceOps(KVPool((), KVPlan(()), (), (), device), device)

    @torch.inference_mode()
    def run(self, rows: EncoderInput, progress: Callable[[float], None]) -> np.ndarray:
        try:
            return self.execute(rows, progress)
        except RuntimeError as error:
            if not ran_out(error):
                raise
        raise MemoryError("the working memory of an encoder")

    def execute(self, rows: EncoderInput, progress: Callable[[float], None]) -> np.ndarray:
        """Run all instructions; values are let go of as soon as nothing reads them."""
        self.ops.begin(rows.step())
        values: dict[int, Any] = {slot: on_device(x, self.ops.device) for slot, x in enumerate(rows.given)}
        for number, recorded in enumerate(self.recording.instructions, 1):
            if rows.cancel.is_set():
                raise StepCancelled
            operands = {field: values[slot] for field, slot in recorded.reads.items()}
            results = getattr(self.ops, recorded.instruction.name)(replace(recorded.instruction, **operands))
            values.update(zip(recorded.results, results, strict=True))
            for slot in recorded.dead:
                del values[slot]
            progress(number / len(self.recording.instructions))
        result: np.ndarray = values[self.recording.result].cpu().numpy()
        return result

    def close(self) -> None:
        """Nothing outlives a run."""
