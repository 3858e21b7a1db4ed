"""One small case of every kernel that reads weights. Layouts differ in what is unpacked; one of each kind is tried."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import torch

from localrun.backends.cuda import bulk_linears, linears
from localrun.backends.cuda.bulk_linears import BulkMemory, Multiplies
from localrun.backends.gpu import matrices
from localrun.backends.gpu.device import Device
from localrun.backends.gpu.made_up_weights import CLOSE, N_IN, N_OUT, decoded, packed, products, weights
from localrun.backends.gpu.q8 import Q8
from localrun.backends.gpu.synthetic import between_ones, off
from localrun.ops.instructions import LinearWeight

ROUNDED = 2**-7  # of sums rounded to bf16, and what that changes in what is made of them


def linear_of_few(device: Device) -> str:
    """Scales of 32 columns with minima, and of 16 without."""
    wide, narrow = linear(device, "Q4_K", 3), linear(device, "Q6_K", 8)
    return wide or narrow


def linear_of_two_layouts(device: Device) -> str:
    """Two matrices of one layout and one of another in a launch, the last with a scale and a bias."""
    where, rows, types = device.torch_device, 3, ("Q4_K", "Q4_K", "Q6_K")
    x, bias = between_ones(rows, N_IN), between_ones(N_OUT)
    q8 = Q8.of(N_IN, rows, torch.device("cpu"))
    q8.quantize(x)
    there, seen = Q8(q8.codes.to(where), q8.groups.to(where)), q8.decoded(N_IN)
    outs = [torch.zeros(rows, N_OUT, device=where) for _ in types]
    given = [LinearWeight(packed(qtype, weights(qtype), device)) for qtype in types]
    given[2] = replace(given[2], bias=bias.to(where), scale=0.5)
    (launch,) = linears.linear(device, None, there, given, outs, rows)
    launch()
    for number, (qtype, out) in enumerate(zip(types, outs, strict=True)):
        exact, size = products(seen, decoded(qtype, weights(qtype)))
        wanted = 0.5 * exact + bias if number == 2 else exact
        if wrong := off(qtype, float(((out.cpu() - wanted).abs() / size).max()), CLOSE):
            return wrong
    return ""


def gate_beside_up(device: Device) -> str:
    """Quantised as it ends, with biases and columns that end within a group."""
    where, rows = device.torch_device, 3
    x, biases = between_ones(rows, N_IN), between_ones(2, N_OUT)
    q8 = Q8.of(N_IN, rows, torch.device("cpu"))
    q8.quantize(x)
    there, raws = Q8(q8.codes.to(where), q8.groups.to(where)), (weights("Q4_K"), weights("Q4_K").flip(0))
    given = [
        LinearWeight(packed("Q4_K", raw, device), bias.to(where), 0.5) for raw, bias in zip(raws, biases, strict=True)
    ]
    out, made = torch.zeros(rows, N_OUT, device=where), Q8.of(N_OUT, rows, where)
    linears.gate_beside_up(device, there, given, out, made, "silu_mul")()
    gate, up = (
        0.5 * products(q8.decoded(N_IN), decoded("Q4_K", raw))[0] + bias for raw, bias in zip(raws, biases, strict=True)
    )
    error = (out.cpu() - torch.nn.functional.silu(gate) * up).abs() / (1 + gate.abs() * up.abs())
    wrong = off("gate", float(error.max()), ROUNDED)
    return wrong or ("" if made.is_of(out) else "other codes")


def linear_of_many(device: Device) -> str:
    return linear(device, "Q4_K", 20)


def linear_of_floats(device: Device) -> str:
    return linear(device, "F16", 5)


def linear(device: Device, qtype: str, rows: int) -> str:
    """Two matrices at once, one with a scale and a bias."""
    where = device.torch_device
    raw = weights(qtype)
    x, bias = between_ones(rows, N_IN), between_ones(N_OUT)
    q8 = Q8.of(N_IN, rows, torch.device("cpu"))
    q8.quantize(x)
    seen = q8.decoded(N_IN) if linears.reads_q8(packed(qtype, raw, device)) else x
    there = Q8(q8.codes.to(where), q8.groups.to(where))
    outs = [torch.zeros(rows, N_OUT, device=where) for _ in range(2)]
    matrix = packed(qtype, raw, device)
    given = [LinearWeight(matrix, bias.to(where), scale=0.5), LinearWeight(matrix)]
    for launch in linears.linear(device, x.to(where), there, given, outs, rows):
        launch()
    exact, size = products(seen, decoded(qtype, raw))
    for out, wanted in zip(outs, (0.5 * exact + bias, exact), strict=True):
        error = float(((out.cpu() - wanted).abs() / size).max())
        if wrong := off(qtype, error, CLOSE):
            return wrong
    return ""


def linear_in_bulk(device: Device) -> str:
    """Two spans: a gate beside up, each with a scale and a bias, then a residual."""
    raws, where, span = (weights("Q4_K"), weights("Q4_K").flip(0)), device.torch_device, 16
    x, bias, rest = between_ones(2 * span, N_IN), between_ones(N_OUT), between_ones(2 * span, N_OUT)
    gate, up = (
        LinearWeight(packed("Q4_K", raw, device), bias.to(where), scale)
        for raw, scale in zip(raws, (0.5, 1.5), strict=True)
    )
    there = x.to(where)
    sizes = (2 * span * N_IN, 2 * N_OUT * N_IN, 2 * N_OUT * span)
    memory = BulkMemory(*(torch.zeros(size, dtype=torch.bfloat16, device=where) for size in sizes))
    gated, plain = (torch.zeros(2 * span, N_OUT, device=where) for _ in range(2))
    on = cast("Multiplies", device)
    for launch in (
        *bulk_linears.linear(on, memory, there, [gate, up], [gated], span, act="silu_mul"),
        *bulk_linears.linear(on, memory, there, [up], [plain], span, residual=rest.to(where), out_scale=2.0),
    ):
        launch()
    exact = [products(x.bfloat16(), decoded("Q4_K", raw).bfloat16())[0] for raw in raws]
    opened, y = 0.5 * exact[0] + bias, 1.5 * exact[1] + bias
    wanted = torch.nn.functional.silu(opened) * y, rest + 2 * y
    for out, want in zip((gated, plain), wanted, strict=True):
        error = (out.cpu() - want).abs() / (2 + opened.abs() * y.abs() + opened.abs() + 2 * y.abs())
        if wrong := off("products", float(error.max()), ROUNDED):
            return wrong
    return ""


def embed(device: Device) -> str:
    raw, ids = weights("Q4_K"), torch.tensor([7, 0, 39], dtype=torch.int32)
    out = torch.zeros(3, N_IN, device=device.torch_device)
    matrices.embed(device, packed("Q4_K", raw, device), ids.to(device.torch_device), 2.0, out, 3)()
    return "" if torch.equal(out.cpu(), 2 * decoded("Q4_K", raw)[ids]) else "other numbers"


def dequantize(device: Device) -> str:
    raw = weights("Q4_K")
    out = torch.zeros(N_OUT, N_IN, dtype=torch.bfloat16, device=device.torch_device)
    linears.dequantize(device, packed("Q4_K", raw, device), out)()
    return "" if torch.equal(out.cpu(), decoded("Q4_K", raw).bfloat16()) else "other numbers"
