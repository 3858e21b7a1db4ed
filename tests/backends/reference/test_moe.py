"""The general mixture of experts against transformers' own modules: routers, groups, shared experts, biases, clamps."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from localrun_testing.small_model import reference_executor, small_model
from torch import Tensor, nn
from transformers import DeepseekV3Config, GptOssConfig, Qwen2MoeConfig
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock

from localrun.backends.reference.ops import ReferenceOps
from localrun.ops.instructions import Experts, LinearWeight, Moe, Router, SharedExpert
from localrun.ops.layouts import F32, Packed
from localrun.ops.types import Routing

HIDDEN, FFN, N_EXPERTS = 32, 48, 8


def packed(weight: Tensor) -> Packed:
    weight = weight.detach().float().contiguous()
    n_rows, n_cols = weight.shape
    return Packed(F32, "F32", n_rows, n_cols, (weight,))


def stacked(weights: Tensor, bias: Tensor | None = None) -> LinearWeight:
    """[n, rows, columns] one after the other."""
    return LinearWeight(packed(weights.flatten(0, 1)), None if bias is None else bias.detach().flatten())


@pytest.fixture
def ops() -> ReferenceOps:
    return ReferenceOps(reference_executor(small_model(), 1).pool, torch.device("cpu"))


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(7)
    return torch.randn(1, 13, HIDDEN)


def randomized(module: nn.Module) -> nn.Module:
    for parameter in [*module.parameters(), *module.buffers()]:
        nn.init.normal_(parameter, std=0.3)
    return module.eval()


def fused(experts: Any) -> Experts:
    """gate_up [n, 2 · ffn, hidden] and down [n, hidden, ffn] of one module."""
    gate, up = experts.gate_up_proj.chunk(2, dim=1)
    return Experts(stacked(gate), stacked(up), stacked(experts.down_proj))


def network(mlp: Any) -> Experts:
    gate, up, down = (LinearWeight(packed(part.weight)) for part in (mlp.gate_proj, mlp.up_proj, mlp.down_proj))
    return Experts(gate, up, down)


def output(module: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        found = module(x)
    rows: Tensor = found[0] if isinstance(found, tuple) else found
    return rows[0]


def close(ops: ReferenceOps, op: Moe, expected: Tensor) -> bool:
    (got,) = ops.moe(op)
    return torch.allclose(got, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("normalize", [True, False])
def test_deepseek_chooses_by_sigmoid_bias_and_groups(ops: ReferenceOps, x: Tensor, normalize: bool) -> None:
    config = DeepseekV3Config(
        hidden_size=HIDDEN, moe_intermediate_size=FFN, n_routed_experts=N_EXPERTS, num_experts_per_tok=3, n_group=4,
        topk_group=2, n_shared_experts=2, routed_scaling_factor=2.5, norm_topk_prob=normalize,
    )  # fmt: skip
    module: Any = randomized(DeepseekV3MoE(config))
    module.gate.e_score_correction_bias.uniform_(0.0, 1.0)
    routing = Routing(3, "sigmoid", normalize, scale=2.5, n_groups=4, n_groups_used=2)
    router = Router(packed(module.gate.weight), routing, choice_bias=module.gate.e_score_correction_bias)
    op = Moe(x[0], router, fused(module.experts), SharedExpert(network(module.shared_experts)))
    assert close(ops, op, output(module, x))
    others = (replace(routing, n_groups_used=4), replace(routing, scale=1.0))
    for wrong in (replace(router, choice_bias=None), *(replace(router, routing=other) for other in others)):
        assert not close(ops, replace(op, router=wrong), output(module, x))


def test_qwen2_weighs_its_shared_expert(ops: ReferenceOps, x: Tensor) -> None:
    config = Qwen2MoeConfig(
        hidden_size=HIDDEN, moe_intermediate_size=FFN, shared_expert_intermediate_size=2 * FFN, num_experts=N_EXPERTS,
        num_experts_per_tok=3, norm_topk_prob=False,
    )  # fmt: skip
    module: Any = randomized(Qwen2MoeSparseMoeBlock(config))
    shared = SharedExpert(network(module.shared_expert), packed(module.shared_expert_gate.weight))
    op = Moe(x[0], Router(packed(module.gate.weight), Routing(3, normalize=False)), fused(module.experts), shared)
    assert close(ops, op, output(module, x))
    assert not close(ops, replace(op, shared=replace(shared, gate=None)), output(module, x))


def test_gpt_oss_clamps_and_adds_biases(ops: ReferenceOps, x: Tensor) -> None:
    config = GptOssConfig(hidden_size=HIDDEN, intermediate_size=FFN, num_local_experts=N_EXPERTS, num_experts_per_tok=3)
    module: Any = randomized(GptOssMLP(config))
    x = 20 * x  # the clamp bites
    parts = module.experts
    gate, up = (parts.gate_up_proj[..., place::2].transpose(1, 2) for place in (0, 1))  # in turns, and transposed
    experts = Experts(
        stacked(gate, parts.gate_up_proj_bias[..., 0::2]),
        stacked(up, parts.gate_up_proj_bias[..., 1::2]),
        stacked(parts.down_proj.transpose(1, 2), parts.down_proj_bias),
        "clamped_silu_mul",
    )
    op = Moe(x[0], Router(packed(module.router.weight), Routing(3), bias=module.router.bias.detach()), experts)
    assert close(ops, op, output(module, x))
    assert not close(ops, replace(op, experts=replace(experts, act="silu_mul")), output(module, x))
