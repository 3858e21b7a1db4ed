"""Packed samples of quantised checkpoints, made by the libraries that define the formats: a few KiB each.

    make libraries   (which puts them into .venv-libraries)
    .venv-libraries/bin/python tools/write_checkpoint_samples.py [FOLDER]

Each file of tests/formats/checkpoint_samples holds a matrix as the library packs it, the f32 numbers that the library
unpacks (`expected`), and the config.json that belongs to it. `make test` reads the files, and needs no library;
`make test-slow` makes them once more and compares.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save

FOLDER = Path(__file__).parent.parent / "tests" / "formats" / "checkpoint_samples"
ROWS, COLUMNS = 3, 128
FLOAT_MODES = (("mxfp4", 32, 4), ("nvfp4", 16, 4), ("mxfp8", 32, 8))  # of MLX: mode, group size, bits

Tensors = dict[str, torch.Tensor]
Sample = tuple[str, dict[str, Any], Tensors]  # name, config.json, tensors


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    digests = {}
    for name, config, tensors in samples():
        raw = save(tensors, {"config": json.dumps(config)})
        (folder / f"{name}.safetensors").write_bytes(raw)
        digests[name] = hashlib.sha256(raw).hexdigest()
        print(f"{name}: {len(raw):,} bytes")
    (folder / "digests.json").write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n")


def samples() -> Iterator[Sample]:
    yield from mlx_samples()
    yield from fp8_samples()
    yield from nvfp4_samples()
    yield from mx_samples()
    yield from compressed_samples()
    yield from gptq_samples()
    yield from awq_samples()
    yield from gemma_samples()
    yield from bitsandbytes_samples()


def weights(seed: int, shape: tuple[int, ...] = (ROWS, COLUMNS)) -> np.ndarray:
    """Like those of a model: near zero, a few far out, and a group of nothing but zeros."""
    draw = np.random.default_rng(seed)
    made = draw.standard_normal(shape) * np.where(draw.random(shape) < 0.02, 0.5, 0.05)
    made[..., 0, :64] = 0
    return made.astype(np.float32)


def mlx_samples() -> Iterator[Sample]:
    """All modes and bits; groups of 32, 64 and 128; scales in f16, bf16 and f32; matrices of experts in one tensor."""
    import mlx.core as mx

    cases: list[tuple[str, int, int, Any, tuple[int, ...]]] = [
        *(("affine", 64, bits, mx.bfloat16, (ROWS, COLUMNS)) for bits in (2, 3, 4, 5, 6, 8)),
        *(("affine", group, 4, mx.float16, (ROWS, COLUMNS)) for group in (32, 128)),
        ("affine", 64, 4, mx.float32, (ROWS, COLUMNS)),
        ("affine", 32, 4, mx.bfloat16, (2, ROWS, 64)),
        *((mode, group, bits, mx.bfloat16, (ROWS, COLUMNS)) for mode, group, bits in FLOAT_MODES),
        ("nvfp4", 16, 4, mx.bfloat16, (ROWS, 96)),
        ("affine", 128, 1, mx.float16, (ROWS, COLUMNS)),
    ]
    for number, (mode, group, bits, dtype, shape) in enumerate(cases):
        parts = mx.quantize(mx.array(weights(number, shape)).astype(dtype), group, bits, mode)
        wide = [parts[0], *(part if mode != "affine" else part.astype(mx.float32) for part in parts[1:])]
        expected = mx.dequantize(*wide, group_size=group, bits=bits, mode=mode, dtype=mx.float32)
        config = {"quantization": {"group_size": group, "bits": bits, "mode": mode}}
        named = dict(zip(("w.weight", "w.scales", "w.biases"), parts, strict=False))
        tensors = {name: of_mlx(part) for name, part in named.items()} | {"expected": of_mlx(expected)}
        yield f"mlx-{number:02}-{mode}-{bits}-g{group}", config, tensors


def fp8_samples() -> Iterator[Sample]:
    """Scales of blocks as transformers unpacks them, of rows and matrices as compressed-tensors does."""
    from compressed_tensors.quantization import QuantizationArgs, QuantizationType
    from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    matrix = torch.from_numpy(weights(100, (6, COLUMNS)))
    for number, dtype in enumerate((torch.float32, torch.bfloat16)):
        blocks = matrix.reshape(2, 3, 4, 32)
        scales = (blocks.abs().amax((1, 3)) / 448).clamp_min(1e-6).to(dtype)
        codes = (blocks / scales.float()[:, None, :, None]).clamp(-448, 448).reshape(6, COLUMNS).to(torch.float8_e4m3fn)
        dequantizer = Fp8Dequantize(None)
        expected = dequantizer._dequantize_one(codes, scales, torch.float32)
        config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [3, 32]}}
        yield f"fp8-{number}-blocks", config, {"w.weight": codes, "w.weight_scale_inv": scales, "expected": expected}
    for strategy, of in (("channel", 1), ("tensor", None)):
        args = QuantizationArgs(num_bits=8, type=QuantizationType.FLOAT, strategy=strategy)
        largest = matrix.abs().amax(of, keepdim=True) if of else matrix.abs().max().reshape(1)
        scales = (largest / 448).clamp_min(1e-6)
        codes = quantize(matrix, scales, torch.zeros_like(scales), args, dtype=torch.float8_e4m3fn)
        expected = dequantize(codes, scales, args=args, dtype=torch.float32)
        config = {"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}}
        yield f"fp8-{strategy}", config, {"w.weight": codes, "w.weight_scale": scales, "expected": expected}


def nvfp4_samples() -> Iterator[Sample]:
    """As compressed-tensors packs and unpacks it, and the same numbers under ModelOpt's names."""
    from compressed_tensors.compressors import NVFP4PackedCompressor
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme, QuantizationType
    from compressed_tensors.quantization.lifecycle.forward import dequantize

    matrix = torch.from_numpy(weights(200))
    whole = (448 * 6 / matrix.abs().max()).reshape(1)
    scales = (matrix.reshape(ROWS, -1, 16).abs().amax(-1) * whole / 6).clamp_min(2**-9).to(torch.float8_e4m3fn)
    args = QuantizationArgs(
        num_bits=4, type=QuantizationType.FLOAT, strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn
    )
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    state = {"weight": matrix, "weight_scale": scales.float(), "weight_global_scale": whole}
    packed = NVFP4PackedCompressor.compress(dict(state), scheme)
    codes = unpack_fp4_from_uint8(packed["weight_packed"], ROWS, COLUMNS, dtype=torch.float32)
    expected = dequantize(codes, packed["weight_scale"].float(), args=args, global_scale=whole, dtype=torch.float32)
    config = {"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}}
    yield (
        "nvfp4-compressed-tensors",
        config,
        {f"w.{key}": part for key, part in packed.items()} | {"expected": expected},
    )
    config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}
    parts = {"weight": packed["weight_packed"], "weight_scale": packed["weight_scale"], "weight_scale_2": 1 / whole}
    yield "nvfp4-modelopt", config, {f"w.{key}": part for key, part in parts.items()} | {"expected": expected}


def mx_samples() -> Iterator[Sample]:
    """MXFP4 and MXFP8 as compressed-tensors packs and unpacks them."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme, QuantizationType

    for number, (bits, kind, largest) in enumerate(((4, "mxfp4-pack-quantized", 6), (8, "mxfp8-quantized", 448))):
        matrix = torch.from_numpy(weights(250 + number))
        scales = (matrix.reshape(ROWS, -1, 32).abs().amax(-1) / largest).clamp_min(2**-20).log2().ceil().exp2()
        args = QuantizationArgs(
            num_bits=bits, type=QuantizationType.FLOAT, strategy="group", group_size=32, scale_dtype=torch.uint8
        )
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        compressor = BaseCompressor.get_value_from_registry(kind)
        packed = compressor.compress({"weight": matrix, "weight_scale": scales}, scheme)
        expected = compressor.decompress(dict(packed), scheme)["weight"].float()
        config = {"quantization_config": {"quant_method": "compressed-tensors", "format": kind}}
        tensors = {f"w.{key}": part for key, part in packed.items()} | {"expected": expected}
        yield f"compressed-mxfp{bits}", config, tensors


def compressed_samples() -> Iterator[Sample]:
    """Whole numbers of compressed-tensors: bits, groups and rows, with zero points and without, packed and plain."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    cases = [  # bits, group size (None: a row), symmetric, type of scales, format
        (4, 64, True, torch.bfloat16, "pack-quantized"),
        (4, 64, False, torch.bfloat16, "pack-quantized"),
        (4, None, True, torch.float16, "pack-quantized"),
        (4, 16, False, torch.float16, "pack-quantized"),
        (4, 32, True, torch.float32, "pack-quantized"),
        (3, 32, False, torch.bfloat16, "pack-quantized"),
        (8, 32, True, torch.bfloat16, "pack-quantized"),
        (8, 64, False, torch.bfloat16, "pack-quantized"),
        (8, None, True, torch.bfloat16, "int-quantized"),
        (8, None, False, torch.float32, "int-quantized"),
    ]
    for number, (bits, group, symmetric, dtype, kind) in enumerate(cases):
        rows = ROWS if symmetric else 11  # zero points of fewer fill one word, which the library cannot unpack
        matrix = torch.from_numpy(weights(300 + number, (rows, COLUMNS)))
        strategy = "group" if group else "channel"
        args = QuantizationArgs(num_bits=bits, symmetric=symmetric, strategy=strategy, group_size=group)
        groups = matrix.reshape(rows, -1, group or COLUMNS)
        scales, zeros = calculate_qparams(groups.amin(-1).to(dtype), groups.amax(-1).to(dtype), args)
        state = {"weight": matrix, "weight_scale": scales, "weight_zero_point": zeros.to(torch.int8)}
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        compressor = BaseCompressor.get_value_from_registry(kind)
        packed = compressor.compress(state, scheme)
        expected = compressor.decompress(packed | {"weight_scale": scales.float()}, scheme)["weight"]
        config = {
            "quant_method": "compressed-tensors",
            "format": kind,
            "config_groups": {"group_0": scheme.model_dump()},
        }
        tensors = {f"w.{key}": part for key, part in packed.items()} | {"expected": expected}
        name = f"compressed-{number:02}-int{bits}-{f'g{group}' if group else 'rows'}{'' if symmetric else '-zeros'}"
        yield name, {"quantization_config": config}, tensors


def levels_of(matrix: torch.Tensor, bits: int, group: int, symmetric: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Scales and zero points [rows, groups] of a matrix."""
    groups = matrix.reshape(len(matrix), -1, group)
    low, high = groups.amin(-1).clamp_max(0), groups.amax(-1).clamp_min(0)
    half, most = 1 << (bits - 1), (1 << bits) - 1
    spread = torch.maximum(-low, high) / (half - 0.5) if symmetric else (high - low) / most
    scales = spread.clamp_min(1e-5).half().float()
    return scales, torch.full_like(low, half) if symmetric else (-low / scales).round().clamp(1, most)


def gptq_samples() -> Iterator[Sample]:
    """GPTQ as AutoRound packs it: zero points less one as version 1 has them, or as they are as version 2."""
    from auto_round_extension.torch.qlinear_torch import QuantLinear
    from auto_round_extension.torch.qlinear_torch_zp import QuantLinear as LessOne

    cases = [  # bits, symmetric, quant_method, what tells the version
        *((bits, False, "gptq", {"checkpoint_format": "gptq"}) for bits in (2, 3, 4, 8)),
        *((bits, True, "gptq", {}) for bits in (4, 8)),
        (4, False, "gptq", {"checkpoint_format": "gptq_v2"}),
        (5, False, "auto-round", {"packing_format": "auto_round:auto_gptq"}),
        (3, True, "auto-round", {"packing_format": "auto_round"}),
    ]
    for number, (bits, symmetric, method, told) in enumerate(cases):
        linear = torch.nn.Linear(64, 32, bias=False)
        linear.weight.data = torch.from_numpy(weights(400 + number, (32, 64)))
        scales, zeros = levels_of(linear.weight.data, bits, 32, symmetric)
        is_second = told in ({"checkpoint_format": "gptq_v2"}, {"packing_format": "auto_round"})
        packed = (QuantLinear if is_second else LessOne)(bits, 32, 64, 32, False)
        packed.device = "cpu"
        packed.pack(linear, scales, zeros, None, "cpu")
        parts = {name: getattr(packed, name).clone() for name in ("qweight", "qzeros", "scales")}
        packed.scales = packed.scales.float()
        expected = packed(torch.eye(64)).T.contiguous()
        config = {"quant_method": method, "bits": bits, "group_size": 32, "sym": symmetric, "desc_act": False} | told
        tensors = {f"w.{key}": part for key, part in parts.items()} | {"expected": expected}
        name = f"{method}-{number}-int{bits}{'' if symmetric else '-zeros'}{'-v2' if is_second else ''}"
        yield name, {"quantization_config": config}, tensors


def awq_samples() -> Iterator[Sample]:
    """AWQ for gemm as AutoRound packs it, and for gemv, which no library runs on a CPU, by its description."""
    from auto_round.export.export_to_awq.utils import WQLinear_GEMM, dequantize_gemm

    linear = torch.nn.Linear(64, 32, bias=False)
    linear.weight.data = torch.from_numpy(weights(500, (32, 64)))
    scales, zeros = levels_of(linear.weight.data, 4, 32, False)
    config = {"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": True}
    packed = WQLinear_GEMM.from_linear(linear, 4, 32, scales=scales.T.contiguous(), zeros=zeros.T.contiguous())
    parts = {name: getattr(packed, name) for name in ("qweight", "qzeros", "scales")}
    expected = dequantize_gemm(packed.qweight, packed.qzeros, packed.scales.float(), 4, 32).T.contiguous()
    tensors = {f"w.{key}": part for key, part in parts.items()} | {"expected": expected}
    yield "awq-gemm", {"quantization_config": config | {"version": "gemm"}}, tensors

    codes = (expected.reshape(32, 2, 32) / scales[..., None] + zeros[..., None]).round().long().reshape(32, 64)
    shifts = 4 * torch.arange(8)
    in_words = [(each.long().unflatten(1, (-1, 8)) << shifts).sum(-1) for each in (codes, pad(zeros, 32))]
    qweight, qzeros = (torch.where(each >= 1 << 31, each - (1 << 32), each).int() for each in in_words)
    parts = {"qweight": qweight, "qzeros": qzeros, "scales": pad(scales, 32).half()}
    tensors = {f"w.{key}": part for key, part in parts.items()} | {"expected": expected}
    yield "awq-gemv", {"quantization_config": config | {"version": "gemv"}}, tensors


def pad(matrix: torch.Tensor, columns: int) -> torch.Tensor:
    """The same with columns of zeros behind it: as many as gemv wants of groups of 32."""
    return torch.nn.functional.pad(matrix, (0, columns - matrix.shape[1]))


def gemma_samples() -> Iterator[Sample]:
    """Gemma's codes as transformers unpacks them: of matrices, and of an embedding with two scales a row."""
    from transformers.integrations.gemma_quant import QuantizedEmbedding, QuantizedLinear

    draw = torch.Generator().manual_seed(600)
    rules = {"module_quant_configs": {r"\bw$": {"num_bits": 2}, r"other\..*": {"num_bits": 8}}}
    for bits in (2, 4, 8):
        linear = QuantizedLinear(128, ROWS, num_bits=bits)
        codes = torch.randint(0, 256, linear.weight.shape, generator=draw)
        linear.weight.data = (codes - 128).to(torch.int8) if bits == 8 else codes.to(torch.uint8)
        linear.weight_scale.data = torch.rand(ROWS, 1, generator=draw) / 8
        config = {"quant_method": "gemma", "num_bits": 4} | (rules if bits == 2 else {})
        tensors = {"w.weight": linear.weight.data, "w.weight_scale": linear.weight_scale.data}
        tensors["expected"] = linear._dequantize_weights(torch.float32)
        yield f"gemma-int{bits}", {"quantization_config": config}, tensors
    table = QuantizedEmbedding(ROWS, 128, torch.float32, num_bits=4)
    codes = torch.randint(0, 256, table.embedding_quantized.shape, generator=draw).to(torch.uint8)
    scales = torch.rand(ROWS, 2, generator=draw) / 8
    tensors = {"w.embedding_quantized": codes, "w.embedding_scale": scales}
    tensors["expected"] = table._dequantize_weights(codes, scales)
    yield "gemma-embedding", {"quantization_config": {"quant_method": "gemma", "quantize_embeddings": True}}, tensors


def bitsandbytes_samples() -> Iterator[Sample]:
    """NF4 and FP4, whose scales are codes or not, and LLM.int8, each as the library unpacks it on a CPU."""
    import bitsandbytes.functional as bnb

    cases = [("nf4", True, torch.bfloat16), ("nf4", False, torch.float16), ("fp4", True, torch.float32)]
    for number, (kind, nested, dtype) in enumerate(cases):
        matrix = torch.from_numpy(weights(700 + number, (6, COLUMNS))).to(dtype)
        codes, state = bnb.quantize_4bit(matrix, compress_statistics=nested, quant_type=kind)
        expected = bnb.dequantize_4bit(codes, state).float()
        parts = {"weight": codes, **{f"weight.{key}": part for key, part in state.as_dict(packed=True).items()}}
        tensors = {f"w.{key}": part for key, part in parts.items()} | {"expected": expected}
        tensors["embed_tokens.weight"] = matrix[:1].clone()
        config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind}
        yield f"bitsandbytes-{number}-{kind}", {"quantization_config": config}, tensors
    matrix = torch.from_numpy(weights(710)).half()
    codes, largest, _ = bnb.int8_vectorwise_quant(matrix)
    tensors = {"w.weight": codes, "w.SCB": largest, "w.weight_format": torch.tensor(0, dtype=torch.uint8)}
    tensors["expected"] = bnb.int8_vectorwise_dequant(codes, largest)
    config = {"quant_method": "bitsandbytes", "load_in_8bit": True, "bnb_4bit_quant_type": "fp4"}
    yield "bitsandbytes-int8", {"quantization_config": config}, tensors


def of_mlx(array: Any) -> torch.Tensor:
    """The same numbers; numpy has no bf16."""
    import mlx.core as mx

    if array.dtype == mx.bfloat16:
        return torch.from_numpy(np.array(array.view(mx.uint16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
