"""Write docs/models.md from the table of architectures, the types of weights, the codecs of the cache and downloads."""

import inspect
import sys

from localrun.backends.registry import BACKENDS
from localrun.formats.checkpoints.registry import METHODS
from localrun.formats.quant import QUANT_TYPES
from localrun.model.archs import ARCHS
from localrun.model.archs.base import Arch
from localrun.ops.kv import KV_CODECS
from tools import ROOT
from tools.coverage import coverage

PAGE = ROOT / "docs" / "models.md"
SQUARE = 4096  # rows and columns of the matrix whose bytes are told
HEAD = """# Models

What can be loaded. A file says which architecture it has; `localrun show` and `localrun fit` tell whether that runs
here before a byte of weights is downloaded.

This page is made by `python -m tools.write_models_docs` from the tables that the loader itself reads; change those.

## Architectures

Of each: what it is, its name in GGUF files (`general.architecture`), and its class in the `config.json` of a
safetensors folder. Of models that also see or hear, the language model is read and the rest of the file left alone.

| | what it is | in GGUF | in `config.json` |
|---|---|---|---|
"""
TYPES = """
## Weights

Types of tensors, by their names in GGUF files; safetensors checkpoints are F32, F16, BF16 or [quantised
already](#quantised-checkpoints), and floats can be held as
Q8_0 (`--precision int8`), Q4_0 (`--precision int4`) or, which is extreme and shows in answers, Q2_K (`--precision
int2`). Embeddings and the output are Q8_0 in all three, matrices whose rows are no multiple of 256 are Q4_0 in the
last, and the experts of gpt-oss are MXFP4 and stay so. Bits are those of a weight, scales included: in the file, and as
the CPU backend holds a matrix in memory. Where a GGUF has a number beside a matrix (`NAME.scale`, as those of NVFP4
have), its products are multiplied by it; `NAME.input_scale` is not used. Some types are of no GGUF: INT4_G64 is codes
of 4 bits with an fp16 scale and minimum for 64 of them, INT4_ZP_G128 those with an fp16 scale and a zero point of a
byte for 128, NF4_G64 names of NF4's 16 numbers with an f32 scale for 64, F8_E4M3 bare codes of FP8, F8_G128 those with
an f32 scale for 128, MXFP8 those with a power of two for 32. INT4_F32_G32 has an f32 scale and minimum for 32 codes,
INT4_ZP_F32_G32 an f32 scale and a zero point, INT4_SYM_F32_G128 an f32 scale for 128 codes with zero in the middle. A
GPU without a kernel for a type decodes it when it is loaded; `localrun show` says to what.

| type | bits in the file | bits in memory |
|---|---|---|
"""
METHOD_HEAD = """
## Quantised checkpoints

Safetensors folders whose `config.json`, or a file beside it, says how they are quantised (`quant_method`; MLX says
`quantization`). Numbers
are those that the format's own library unpacks, to the bit, held in a type of the table above that has room for them:
where no packed type has, in floats, which take more memory (`show` and `fit` say how much). `--precision int8` or
`int4` holds floats in fewer bits, FP8 too. Whole numbers whose scales are f32, or bf16 too far apart for fp16, are held
in a type with F32 in its name instead: that of the latter is known once they are loaded. F32 are groups that are no
multiple of 32, E5M2 with scales, FP8 whose rows or blocks are no multiple of 128, routers of experts, and experts and
the output where columns are sorted. Numbers of LLM.int8 are rounded once, not twice. The numbers of NF4 are those
before the library rounds them to the type of the model's other weights. A GPU leaves sorted matrices to torch, and
holds NF4 in BF16, rounded.

| method | what is read | held as |
|---|---|---|
"""
CODECS = """
## Cache

Keys and values are held as one of these (`--kv`), bits of a number without scales; a state of a recurrent layer
always as f32.

| codec | keys | values |
|---|---|---|
"""
COMPUTED = """
## Where it is computed

- `cpu`: every architecture, type of weights and codec of this page, but for what the tables except, by kernels of our
  own.
- `reference`: all of it, in plain PyTorch, on any machine; it says what is right, and is slow.
- `cuda`: on an NVIDIA GPU, by kernels of our own where [cuda-kernels.md](cuda-kernels.md) has one, else by PyTorch
  on the device.
- `mps`: on an Apple GPU, by kernels of our own where they pass their self-test ([metal.md](metal.md)).

Chats of forty turns with edits and branches were played on the CPU on every architecture in every codec, with random
weights: all answers were those of an engine without a cache
([2026-11-23](../benchmarks/results/2026-11-23-epyc-2-threads.md)).
"""


def page() -> str:
    """The whole page."""
    sections = (
        HEAD,
        *map(architecture, ARCHS),
        coverage(),
        TYPES,
        *(weights(name) for name, row in QUANT_TYPES.items() if row.number is not None),
        METHOD_HEAD,
        *(
            f"| {', '.join(method.names)} | {method.formats} | {method.held} |\n"
            for method in dict.fromkeys(METHODS.values())
        ),
        CODECS,
        *codecs(),
        COMPUTED,
    )
    return "".join(sections)


def architecture(arch: Arch) -> str:
    """What an architecture is, by the first sentence of its class or, where that has none, of its file."""
    cls = type(arch)
    text = inspect.cleandoc(cls.__doc__ or sys.modules[cls.__module__].__doc__ or "").split("\n\n")[0]
    return f"| {arch.name} | {' '.join(text.split())} | {names(arch.gguf)} | {names(arch.hf)} |\n"


def names(declared: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in declared)


def weights(name: str) -> str:
    cpu, bits = BACKENDS["cpu"], QUANT_TYPES[name].bits
    held = cpu.matrix_bytes(name, SQUARE, SQUARE) * 8 / SQUARE**2 if cpu.layout_name(name) else None
    return f"| {name} | {bits:.3g} | {'not on the CPU backend' if held is None else f'{held:.3g}'} |\n"


def codecs() -> list[str]:
    return [f"| {codec.name} | {codec.k_bits} | {codec.v_bits} |\n" for codec in KV_CODECS.values()]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
