"""Decode steps of models on the stand-in for the driver: prints what a token of each takes, as JSON.

    python -m localrun_testing.stub_decode [tiny|8B|30B-A3B|4B]...

Weights are memory that nothing writes or reads, so a large model takes none.
"""

import json
import sys
from unittest.mock import patch

import torch

from benchmarks import gpu_models
from benchmarks.gpu_models import MIXTURES, SHAPES, TINY, TINY_HYBRID, TINY_MIXTURE, Text
from localrun.backends.cuda.translator import CudaTranslator
from localrun.backends.gpu.layouts import GpuLayout
from localrun.ops.layouts import Packed
from localrun_testing.stub_gpu import StubDriver, stub_device


def unwritten_matrix(qtype: str, n_rows: int, n_cols: int, device: torch.device) -> Packed:
    layout = GpuLayout()
    blob = torch.empty(layout.nbytes(qtype, n_rows, n_cols), dtype=torch.uint8, device=device)
    return Packed(layout, qtype, n_rows, n_cols, (blob,))


def text_on_stub(shape: str, ctx: int) -> Text:
    """A text of a model of that shape, on a device that computes nothing."""
    named = {each.name: each for each in (TINY, TINY_MIXTURE, TINY_HYBRID, *SHAPES, *MIXTURES)}
    with patch.object(gpu_models, "random_matrix", unwritten_matrix):
        return Text(CudaTranslator, stub_device(), named[shape], ctx)


def token(text: Text, driver: StubDriver) -> dict[str, object]:
    """What the driver is told of one token, and the position that the device then has of it."""
    driver.journal()
    before = driver.counts()
    text.step(1)
    counts = {what: n - before[what] for what, n in driver.counts().items()}
    step = text.executor.program.step
    assert step is not None
    position = int(step.tensors(1).positions)
    return {"position": position, "counts": counts, "journal": driver.journal()}


def tokens(shape: str) -> list[dict[str, object]]:
    text, driver = text_on_stub(shape, 1024), StubDriver()
    return [token(text, driver) for _ in range(3)]


def main() -> None:
    print(json.dumps([tokens(shape) for shape in sys.argv[1:]]))


if __name__ == "__main__":
    main()
