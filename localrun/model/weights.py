"""The tensors of a model, and their places in a file. Torch-free."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import count, islice, takewhile
from types import MappingProxyType

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.source import TensorSource, factor_name
from localrun.model.archs.base import Arch
from localrun.model.archs.hf_classes import hf_biases, hf_ties
from localrun.model.archs.names import GGUF_NAMES, GGUF_OTHER_PARTS, HF_NAMES, name_in_file
from localrun.model.config import LayerSpec, ModelConfig, RecurrentMixer
from localrun.model.expert_weights import ExpertNamer
from localrun.model.latent_weights import latent_refs
from localrun.model.shapes import BIASED, OPTIONAL, Shapes, layer_shapes, made_of_a_token, outer_shapes
from localrun.model.spare_biases import spare_biases
from localrun.model.weight_ref import WeightRef, check_tensor, gather_refs, scale_refs

GGUF_FUSED = {
    "qkv": "blk.{}.attn_qkv.weight",
    "qkv_bias": "blk.{}.attn_qkv.bias",
    "gate_up": "blk.{}.ffn_up.weight",
}
HF_FUSED = {
    "qkv": "layers.{}.self_attn.qkv_proj.weight",
    "qkv_bias": "layers.{}.self_attn.qkv_proj.bias",
    "gate_up": "layers.{}.mlp.gate_up_proj.weight",
}
ACTIVATION_SCALE = ".input_scale"  # how activations were rounded that a matrix reads; ours are rounded less
PREFIXES = ("model.", "model.language_model.", "language_model.model.", "backbone.", "")
ROUNDED_ACTIVATIONS = (
    r"(\.|\.experts\.(gate_up|down)_proj_)"
    r"(activation_scale|(input|output|q|k|v|kv|prob|prob_output)_((global_|activation_)?scale|scale_ub|zero_point))$"
)
NOT_WEIGHTS = {  # tensors of checkpoints that an answer in words does without, and what they are
    ROUNDED_ACTIVATIONS: "how activations were rounded, which are rounded less here",
    r"rotary_emb\.inv_freq$": "the table of a rope, which is computed",
    r"^(model\.)?(visual|vision_tower|vision_model|vision_embedder)\.": "eyes",
    r"^(model\.)?(multi_modal_projector|connector|embed_vision)\.": "between eyes and the model",
    r"^(model\.)?vision_(adapter|projection)\.": "between eyes and the model",
    r"^(model\.)?(embed_audio|audio_tower)\.": "ears, and between them and the model",
    r"^(model\.|language_model\.)?mtp\.": "layers that only draft",
}
CONV_NAME = ".conv1d.weight"
ROPE_TENSORS = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


def weight_refs(arch: Arch, config: ModelConfig, source: TensorSource) -> dict[str, WeightRef]:
    """Every weight by localrun's name (`embed`, `layers.3.q`, …), checked against the file. Raises ModelFileError."""
    namer = Namer(arch, config, source)
    refs = dict(namer.refs())
    refs |= scale_refs(source, refs) | gather_refs(source, refs)
    for ref in refs.values():
        check_tensor(source, ref)
    check_biases(refs, str(source.path))
    known = {name for ref in refs.values() for name in ref.tensors} | {*ROPE_TENSORS, *spare_biases(source, refs)}
    for name in source.tensors:
        if name not in known and not namer.ignorable(name):
            told = f"tensor {clean(name)!r} has no place in a {arch.name} model"
            hint = "try another conversion of the model, or a newer localrun"
            raise ModelFileError("UNSUPPORTED", told, path=str(source.path), hint=hint)
    return refs


def check_biases(refs: Mapping[str, WeightRef], path: str) -> None:
    """Raise ModelFileError where some layers have a bias that others lack."""
    for part in BIASED:
        having = {name.removesuffix("_bias") for name in refs if name.endswith(f".{part}_bias")}
        lacking = [name for name in refs if having and name.endswith(f".{part}") and name not in having]
        if lacking:
            like = refs[f"{min(having)}_bias"].name
            told = f"the bias of {refs[lacking[0]].name!r} is missing, where other layers have one (as {like!r})"
            raise ModelFileError("MISSING_TENSOR", told, path=path)


class Namer:
    """Names the tensor of each weight of a config in one file."""

    def __init__(self, arch: Arch, config: ModelConfig, source: TensorSource) -> None:
        self.arch, self.config, self.source = arch, config, source
        self.gguf = source.format == "gguf"
        self.fused = GGUF_FUSED if self.gguf else HF_FUSED
        names = {**HF_NAMES, **arch.hf_names}
        self.prefix = "" if self.gguf else hf_prefix(source, names["embed"], names["output_norm"])

    def refs(self) -> Iterator[tuple[str, WeightRef]]:
        for name, shape in outer_shapes(self.config).items():
            if name == "embed":
                yield name, self.embedding(self.ref(name, shape))
            elif name != "output" or not self.tied:
                yield name, replace(self.ref(name, shape), mapped=name == "per_layer_embed")
        for index, spec in enumerate(self.config.layers):
            for name, ref in self.layer_refs(index, spec):
                yield f"layers.{index}.{name}", ref

    def layer_refs(self, index: int, spec: LayerSpec) -> Iterator[tuple[str, WeightRef]]:
        """Weights of a layer in the order of their shapes, with those that share tensors or are spread over several."""
        shapes = layer_shapes(self.config, spec)
        apart = dict(self.refs_in_parts(index, spec, shapes))
        turns = self.turns(spec)
        for name, shape in shapes.items():
            if name in apart:
                yield name, apart[name]
            elif name not in OPTIONAL or (name in self.possible and self.name(name, index) in self.source.tensors):
                yield name, self.ref(name, shape, index, turns.get(name.removesuffix("_bias")))

    def refs_in_parts(self, index: int, spec: LayerSpec, shapes: Shapes) -> Iterator[tuple[str, WeightRef]]:
        """Weights that share a tensor with others, or are spread over several."""
        if spec.mixer is not None:
            yield from self.mixer_refs(index, spec.mixer, shapes)
        elif spec.latent is not None:
            ref = partial(self.ref, index=index)
            yield from latent_refs(ref, self.source.tensors, spec.n_heads, spec.latent, shapes)
        elif spec.has_attention:
            heads = ("q", *made_of_a_token(spec))
            for fused, names in (("qkv", heads), ("qkv_bias", [f"{name}_bias" for name in heads])):
                possible = OPTIONAL.intersection(names) <= self.possible
                if possible and self.name(fused, index) in self.source.tensors:  # any GGUF may be written so
                    yield from self.fused_refs(fused, index, names, shapes, self.turns(spec))
            if spec.gated and self.name("attn_gate", index) not in self.source.tensors:
                yield from self.gated_refs(index, spec, shapes["q"])
        if spec.mixture and spec.ffn_size:
            yield from ExpertNamer(self.arch, self.source, self.prefix, index).refs(spec.mixture, shapes)
        elif spec.ffn_size and self.has_gate_up(index):
            yield from self.fused_refs("gate_up", index, [n for n in ("gate", "up") if n in shapes], shapes)

    def has_gate_up(self, index: int) -> bool:
        """Whether gate and up of a layer are one tensor; MLX's converter splits them."""
        if self.arch.qkv_fused:
            return True
        fused = not self.gguf and "gate_up" in self.arch.hf_names
        return fused and self.name("gate", index) not in self.source.tensors

    def mixer_refs(self, index: int, mixer: RecurrentMixer, shapes: Shapes) -> Iterator[tuple[str, WeightRef]]:
        for name, rows in self.arch.fused_rows(mixer).items():
            if (tensor := self.name(rows.tensor, index)) in self.source.tensors:
                ref, file_shape = self.ref(name, shapes[name], index), (rows.n_rows, shapes[name][1])
                yield name, replace(ref, name=tensor, starts=rows.starts, file_shape=file_shape)
        for name, sizes in mixer.vectors().items():
            ref = self.ref(name, shapes[name], index)
            yield name, replace(ref, file_shape=self.vector_shape(ref.name, mixer, name, sizes))

    def vector_shape(self, tensor: str, mixer: RecurrentMixer, name: str, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of a mixer's vector in the file; tools that rewrite a GGUF may drop dims of size one."""
        if not self.gguf:
            if len(sizes) != 2:
                return sizes
            of_mlx = is_of_mlx(self.source, tensor)
            return (*sizes, 1) if of_mlx else (sizes[0], 1, sizes[1])  # torch: a channel of each group
        info = self.source.tensors.get(tensor)
        return sizes if info and info.shape == sizes else self.arch.vector_in_gguf(mixer, name, sizes)

    def gated_refs(self, index: int, spec: LayerSpec, shape: tuple[int, ...]) -> Iterator[tuple[str, WeightRef]]:
        """Queries and the gate of the attention result: in one tensor, alternating by head."""
        q, in_file = self.ref("q", shape, index), (2 * shape[0], shape[1])
        for place, name in enumerate(("q", "attn_gate")):
            starts = tuple(range(place * spec.head_dim, in_file[0], 2 * spec.head_dim))
            yield name, replace(q, starts=starts, file_shape=in_file)

    def fused_refs(
        self,
        fused: str,
        index: int,
        parts: Sequence[str],
        shapes: Shapes,
        turns: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> Iterator[tuple[str, WeightRef]]:
        """The parts of one tensor, in order."""
        name, first = self.name(fused, index), 0
        file_shape = (sum(shapes[part][0] for part in parts), *shapes[parts[0]][1:])
        for part in parts:
            turned = turns.get(part.removesuffix("_bias"))
            yield part, WeightRef(name, shapes[part], first, turned, file_shape=file_shape)
            first += shapes[part][0]

    def ref(
        self, weight: str, shape: tuple[int, ...], index: int = 0, interleaved: tuple[int, int] | None = None
    ) -> WeightRef:
        has_offset = not self.gguf and "norm" in weight and weight not in self.arch.norms_as_written
        return WeightRef(
            self.name(weight, index),
            shape,
            interleaved=interleaved,
            offset=self.norm_offset if has_offset else 0.0,
            is_log=not self.gguf and weight == "decay",
        )

    @cached_property
    def norm_offset(self) -> float:
        """Number to add to norms; MLX's converter has added it where it transposed convolution kernels, too."""
        turned = any(is_of_mlx(self.source, name) for name in self.source.tensors if name.endswith(CONV_NAME))
        return 0.0 if turned else self.arch.hf_norm_offset

    def name(self, weight: str, index: int = 0) -> str:
        if weight in self.fused:
            own = {} if self.gguf else self.arch.hf_names
            return self.prefix + own.get(weight, self.fused[weight]).format(index)
        if self.gguf:
            return name_in_file(self.arch.gguf_names.get(weight) or GGUF_NAMES[weight], self.source.tensors, index)
        if weight == "output":
            return next((name for name in self.outputs if name in self.source.tensors), HF_NAMES["output"])
        template = self.arch.hf_names.get(weight) or HF_NAMES.get(weight, "")
        return name_in_file(template, self.source.tensors, index, self.prefix)

    def turns(self, spec: LayerSpec) -> dict[str, tuple[int, int]]:
        """Heads and rotated dims of weights whose rows pair neighbours, as in some GGUF files."""
        if not (self.gguf and self.arch.permuted_in_gguf and spec.has_attention):
            return {}
        return {"q": (spec.n_heads, self.config.ropes[0].dims), "k": (spec.n_kv_heads, self.config.ropes[0].dims)}

    def embedding(self, ref: WeightRef) -> WeightRef:
        """The embedding; a missing one is the output, where a file says that they are tied."""
        missing = ref.name not in self.source.tensors and self.name("output") in self.source.tensors
        return replace(ref, name=self.name("output")) if missing and self.says_tied else ref

    @cached_property
    def tied(self) -> bool:
        """Whether the output is the embedding: as the file says, unless it has both and they differ."""
        names = [self.name("embed"), self.name("output")]
        if not self.says_tied or not all(name in self.source.tensors for name in names):
            return self.says_tied
        return self.source.same(*names)

    @cached_property
    def says_tied(self) -> bool:
        """Whether the file says that they are tied: a GGUF does so by having no output."""
        return self.name("output") not in self.source.tensors if self.gguf else hf_ties(self.source.metadata)

    @cached_property
    def possible(self) -> frozenset[str]:
        """Weights of OPTIONAL that may exist: in a checkpoint, biases by its class and config.json."""
        if self.gguf:
            return OPTIONAL
        impossible = {f"{name}_bias" for name in BIASED if name not in hf_biases(self.source.metadata)}
        return OPTIONAL - impossible

    def ignorable(self, name: str) -> bool:
        """Whether a tensor is not a weight of the language model.

        Such are NOT_WEIGHTS, an output that is the embedding, and draft layers of a GGUF.
        """
        if self.gguf:
            if name.endswith(ACTIVATION_SCALE):
                return name.removesuffix(ACTIVATION_SCALE) + ".weight" in self.source.tensors
            return name in self.unread or name.startswith((*GGUF_OTHER_PARTS, *self.drafting))
        if name.startswith(self.drafting):
            return True
        if name in (output := self.name("output"), factor_name(output)):
            return self.tied
        return name in self.unread or any(re.search(pattern, name) for pattern in NOT_WEIGHTS)

    @cached_property
    def drafting(self) -> tuple[str, ...]:
        """Prefixes of the layers that only draft, which come after those of the model; a GGUF counts them."""
        after = count(self.config.n_layers)
        if self.gguf:
            return tuple(f"blk.{index}." for index in islice(after, self.config.n_draft_layers))
        layers = (f"{self.prefix}layers.{index}." for index in after)
        return tuple(takewhile(lambda layer: f"{layer}eh_proj.weight" in self.source.tensors, layers))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Possible names of the output in a checkpoint: beside its layers, or beside the model that has them."""
        parts = self.prefix.split(".")[:-1]
        return tuple(".".join([*parts[:n], HF_NAMES["output"]]) for n in range(len(parts), -1, -1))

    @cached_property
    def unread(self) -> set[str]:
        """Tensors in files for layers that read the keys and values of another, and what makes both of latents where
        what makes each of them is there, too."""
        sharing = (index for index, spec in enumerate(self.config.layers) if spec.shares_cache is not None)
        of_others = {self.name(weight, index) for index in sharing for weight in ("k", "v", "k_norm")}
        return of_others | {self.name("kv_b", i) for i, spec in enumerate(self.config.layers) if spec.latent}


def rounds_activations(tensor: str) -> bool:
    """Whether a tensor describes how activations of a matrix were rounded; localrun rounds them less."""
    return re.search(ROUNDED_ACTIVATIONS, tensor) is not None


def is_of_mlx(source: TensorSource, tensor: str) -> bool:
    """Whether a convolution kernel is in MLX's order, [channels, taps, 1]; others have [channels, 1, taps]."""
    info = source.tensors.get(tensor)
    return info is not None and len(info.shape) == 3 and info.shape[2] == 1


def hf_prefix(source: TensorSource, embed: str, norm: str) -> str:
    """Prefix of the embedding in a checkpoint (`model.`, `language_model.model.`, …).

    Of the last norm where there is only an output matrix.
    """
    all_prefixes = (name.removesuffix(embed) for name in source.tensors if name.endswith(embed))
    found = min(all_prefixes, key=len, default=None)  # a layer that drafts may have an embedding, too
    usual = (prefix for prefix in PREFIXES if prefix + norm in source.tensors)
    return next(usual, PREFIXES[0]) if found is None else found
