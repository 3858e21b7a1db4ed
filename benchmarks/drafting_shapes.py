"""GGUF files of synthetic shapes with a layer that drafts (MTP): Q8_0 blocks of random bytes, written in seconds."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np

from benchmarks.synthetic_models import Shape, add_hyperparameters, matrices_of, vectors_of
from benchmarks.synthetic_vocabulary import add_vocabulary

QTYPE = gguf.GGMLQuantizationType.Q8_0
COLUMNS, N_BYTES = gguf.GGML_QUANT_SIZES[QTYPE]  # of a block: a scale, then codes
SCALE = 0.02 / (255 / 12**0.5)  # weights deviate by 0.02


def drafting_file(path: Path, shape: Shape) -> Path:
    """The file of a shape with such a layer after its own, which is like the last of them; made where it is missing."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        write(part, shape)
        part.rename(path)
    return path


def write(path: Path, shape: Shape) -> None:
    writer, rng = gguf.GGUFWriter(path, shape.arch), np.random.default_rng(0)
    add_hyperparameters(writer, replace(shape, n_layers=shape.n_layers + 1))
    writer.add_nextn_predict_layers(1)
    add_vocabulary(writer, shape.vocab_size)
    for name, vector in norms(shape):
        writer.add_tensor(name, vector)
    for name, (n_rows, n_columns) in matrices(shape):
        blocks = rng.integers(0, 256, (n_rows, n_columns // COLUMNS, N_BYTES), np.uint8)
        blocks[:, :, :2] = np.array([SCALE], np.float16).view(np.uint8)
        writer.add_tensor(name, blocks.reshape(n_rows, -1), raw_dtype=QTYPE)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=False)
    writer.close()


def norms(shape: Shape) -> Iterator[tuple[str, np.ndarray]]:
    """All that is no matrix, by its name."""
    last, ones = shape.n_layers - 1, np.ones(shape.hidden_size, np.float32)
    yield "output_norm.weight", ones
    for layer in range(shape.n_layers + 1):
        yield from ((f"blk.{layer}.{name}", vector) for name, vector in vectors_of(shape, min(layer, last)).items())
    yield from ((f"blk.{last + 1}.nextn.{name}.weight", ones) for name in ("enorm", "hnorm", "shared_head_norm"))


def matrices(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Rows and columns of every matrix, by its name."""
    last, hidden = shape.n_layers - 1, shape.hidden_size
    yield "token_embd.weight", (shape.vocab_size, hidden)
    for layer in range(shape.n_layers + 1):
        yield from ((f"blk.{layer}.{name}.weight", size) for name, size in matrices_of(shape, min(layer, last)).items())
    yield f"blk.{last + 1}.nextn.eh_proj.weight", (hidden, 2 * hidden)
