"""Layers that draft (multi-token prediction) of Qwen3.5: an oracle in torch, and checkpoints that have one.

transformers reads over `mtp.*`. The layer is its own decoder layer with full attention; the rest is the forward pass of
vLLM's `qwen3_5_mtp.py`: fc of the normed embedding and the normed hidden row, which is the last norm's.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers.models.qwen3_5 import modeling_qwen3_5 as dense
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as moe

from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.executor import CpuExecutor
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.library import load_library
from localrun.backends.executor import CachePlan, ExecutorRequest
from localrun.engine.runner import Runner, cache_layers
from localrun.formats.detect import open_model_file
from localrun.model.draft_weights import load_draft_layer, read_draft_refs
from localrun.model.headers import read_config
from localrun.model.load import load_model
from localrun.ops.kv import BLOCK_TOKENS, KV_CODECS, KVPlan
from localrun_testing.stepper import RunnerStepper
from localrun_testing.tiny_models import build, save


class DraftOracle(torch.nn.Module):
    """The layer of a model of transformers, with random weights of its own under the checkpoint's names."""

    def __init__(self, model: Any, seed: int = 0) -> None:
        super().__init__()
        config = model.config
        classes: Any = moe if "moe" in config.model_type else dense
        kind = "Qwen3_5Moe" if classes is moe else "Qwen3_5"
        norm, layer = getattr(classes, f"{kind}RMSNorm"), getattr(classes, f"{kind}DecoderLayer")
        full = config.layer_types.index("full_attention")
        self.fc = torch.nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.pre_fc_norm_embedding = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.pre_fc_norm_hidden = norm(config.hidden_size, eps=config.rms_norm_eps)
        self.layers = torch.nn.ModuleList([layer(config, full)])
        self.norm = norm(config.hidden_size, eps=config.rms_norm_eps)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                scale = 0.3 if parameter.ndim == 1 else 1.2 * parameter.shape[-1] ** -0.5
                parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
        self.model = (model,)  # in a tuple: no part of this module

    @torch.no_grad()
    def forward(self, ids: Sequence[int], hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens 1 … n of a text and the hidden rows 0 … n - 1 [n, hidden] -> logits and hidden rows."""
        (model,) = self.model
        token = model.model.embed_tokens(torch.tensor([ids]))
        both = torch.cat([self.pre_fc_norm_embedding(token), self.pre_fc_norm_hidden(hidden[None])], -1)
        x, n = self.fc(both), len(ids)
        angles = model.model.rotary_emb(x, torch.arange(n).expand(3, 1, n))
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        x = self.layers[0](x, position_embeddings=angles, attention_mask=mask)
        rows = self.norm(x[0])
        return model.lm_head(rows), rows

    def guess(self, body: Any, token_ids: Sequence[int], depth: int) -> list[int]:
        """The likeliest tokens after a text, by the hidden rows of its model's `body`, then by the layer's own."""
        ids, found = list(token_ids), list[int]()
        with torch.no_grad():
            hidden = body(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0, :-1]
        for _ in range(depth):
            logits, rows = self(ids[1:], hidden)
            found.append(int(logits[-1].argmax()))
            ids.append(found[-1])
            hidden = torch.cat([hidden, rows[-1:]])
        return found


def tensors_of(oracle: DraftOracle) -> Iterator[tuple[str, torch.Tensor]]:
    """The layer as checkpoints have it: experts one by one."""
    for name, data in oracle.state_dict().items():
        if ".experts." not in name:
            yield f"mtp.{name}", data.contiguous()
            continue
        part = name.rpartition(".")[2]
        for number, one in enumerate(data):
            halves = dict(zip(("gate_proj", "up_proj"), one.chunk(2), strict=True)) if "gate" in part else {part: one}
            for each, matrix in halves.items():
                yield f"mtp.layers.0.mlp.experts.{number}.{each}.weight", matrix.contiguous()


def save_with_mtp(name: str, folder: Path) -> DraftOracle:
    """Write a recipe of Qwen3.5 as a checkpoint with a layer that drafts."""
    save(name, folder, hub_config=True)
    oracle = DraftOracle(build(name))
    add_tensors(folder, dict(tensors_of(oracle)))
    return oracle


def add_tensors(folder: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Put tensors of a layer that drafts, and others in the place of those that are there, into a checkpoint."""
    (file,) = folder.glob("*.safetensors")
    save_file(load_file(file) | tensors, file, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "mtp_num_hidden_layers": 1}))


@torch.no_grad()
def foresee(name: str, folder: Path) -> int:
    """Write a checkpoint whose layer drafts what its model says, by the hidden row alone -> a token to begin with.

    No layer of it adds anything, and the output follows a circle of tokens: a token decides the next one. The matrix
    for hidden rows leads from the row of each to the embedding of the next one.
    """
    save(name, folder, hub_config=True)
    model = build(name)
    silent = ("o_proj.weight", "out_proj.weight", "down_proj.weight")
    quiet = {key: torch.zeros_like(data) for key, data in model.state_dict().items() if key.endswith(silent)}
    model.load_state_dict(quiet, strict=False)
    circle = range(10, 90)
    follows = [*circle[1:], circle[0]]
    rows = model.model(input_ids=torch.tensor([[one] for one in circle])).last_hidden_state[:, 0]
    output = torch.zeros_like(model.lm_head.weight)
    output[follows] = 20 * rows / rows.square().sum(1, keepdim=True)
    oracle, embed = DraftOracle(model), model.model.embed_tokens
    read = oracle.pre_fc_norm_hidden(rows)
    matrix = torch.linalg.lstsq(read, embed(torch.tensor(follows))).solution.T
    oracle.fc.weight.copy_(torch.cat([torch.zeros_like(matrix), matrix], 1))
    for key in silent:
        for parameter_name, parameter in oracle.named_parameters():
            if parameter_name.endswith(key):
                parameter.zero_()
    oracle.norm.weight.copy_(model.model.norm.weight)
    add_tensors(folder, dict(tensors_of(oracle)) | quiet | {"lm_head.weight": output})
    return circle[0]


class DraftStepper(RunnerStepper):
    """The layer of a model file on the native library, one step at a time; set `given` to the model's hidden rows."""

    def __init__(self, path: Path, ctx: int = 256) -> None:
        library = load_library()
        assert library is not None
        source, layout = open_model_file(path), CpuLayout(calls_of(library), 2)
        config = read_config(source).for_context(ctx)
        assert config.drafting is not None
        model = load_model(source, layout, None, config)
        refs = read_draft_refs(source, config)
        self.layer = load_draft_layer(source, refs, config.drafting, model.weights, layout, None)
        layers, n_blocks = cache_layers(config.drafting), -(-ctx // BLOCK_TOKENS) + 3
        cache = CachePlan(layers, KVPlan.uniform(KV_CODECS["f32"], 1), [n_blocks], [n_blocks])
        request = ExecutorRequest.of(self.layer.forward, cache, given=(config.hidden_size,))
        super().__init__(Runner(config.drafting, CpuExecutor(layout, request, ctx)), n_blocks)
