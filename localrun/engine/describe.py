"""Build the ModelInfo of a loaded model: name, kind, memory, notes for the user."""

from collections import Counter
from collections.abc import Sequence
from math import prod

from localrun.backends.interface import Backend
from localrun.base.events import ModelInfo, Work
from localrun.base.paths import what_is_not_kept, writable_folder
from localrun.base.request import LoadOptions
from localrun.engine.engine import Engine
from localrun.engine.opened_model import OpenedModel
from localrun.engine.packed_weights import notes_of
from localrun.fit.memory_plan import MemoryPlan
from localrun.formats.source import TensorSource
from localrun.model.config import ModelConfig
from localrun.model.odd_norms import odd_norms
from localrun.model.recording import record_shapes
from localrun.model.weight_sizes import matrices_of_a_token
from localrun.ops.layouts import FILE, Layout
from localrun.storage.identity import fingerprint

GATHERING = ("cpu", "reference")  # backends that put what a matrix reads into the order of its columns
WIDE = ("F32", "F16", "BF16", "F8_E4M3", "F8_G128", "MXFP8", "NF4_G64")  # whose numbers are multiplied as they are


def describe(
    options: LoadOptions,
    opened: OpenedModel,
    backend: Backend,
    backend_notes: Sequence[str],
    layout: Layout,
    plan: MemoryPlan,
    engine: Engine,
    seconds: float,
) -> ModelInfo:
    """The ModelInfo of a load that took `seconds`."""
    off = why_no_drafts(options, engine)
    slow = [*slow_parts(backend, layout, opened), *notes_on_drafts(options, off)]
    from_disk = notes_of(plan, work_of_a_token(opened, layout, plan.config).weight_bytes)
    lost = [why_not_kept()] if opened.identity is not None and engine.disk is None else []
    return ModelInfo(
        name=options.name or options.path.stem,
        path=str(options.path),
        arch=plan.config.arch,
        precision=options.precision or commonest_type(opened.source),
        backend=backend.name,
        kv_codec=plan.codec.name,
        ctx=plan.ctx,
        weights_bytes=plan.weights_bytes + plan.mapped_bytes,
        mapped_bytes=plan.mapped_bytes,
        load_ms=1000 * seconds,
        notes=(*notes_of_files(opened), *backend_notes, *plan.notes, *from_disk, *slow, *lost),
        work=work_of_a_token(opened, layout, plan.config) if backend.measures_limits else None,
        can_roll=engine.can_roll,
        drafts_off=off,
        fingerprint=fingerprint(engine.disk.files.fingerprint, opened.text.template.sha256)[:16] if engine.disk else "",
        bos_token=opened.text.tokenizer.bos_token,
        eos_token=opened.text.tokenizer.eos_token,
    )


def why_not_kept() -> str:
    """Why nothing is kept on disk, where it should be."""
    if writable_folder("cache") is None:
        return what_is_not_kept("cache")
    return "nothing is kept on disk: the model's files changed, or cannot be read twice"


def why_no_drafts(options: LoadOptions, engine: Engine) -> str:
    """Why nothing drafts; empty where something does."""
    if engine.scheduler.speculation is not None:
        return ""
    return "drafts are off" if options.draft == "off" else "only the cpu backend verifies several tokens exactly"


def notes_on_drafts(options: LoadOptions, off: str) -> list[str]:
    """Note that nothing drafts, though the user asked for it."""
    is_asked_for = options.draft not in ("auto", "off")
    return [f"--draft {options.draft} drafts nothing here: {off}"] if off and is_asked_for else []


def notes_of_files(opened: OpenedModel) -> list[str]:
    """Notes on oddities of the model files that do not keep it from running."""
    return [*opened.source.warnings, *odd_norms(opened.source, opened.refs), *opened.text.notes]


def slow_parts(backend: Backend, layout: Layout, opened: OpenedModel) -> list[str]:
    """Notes on parts that are slower than they could be."""
    decoded = "weights are decoded each time they are used: memory is short, and this is slow"
    left = [*backend.without_kernels(record_shapes(opened.config, opened.adapter_ranks))]
    if backend.name not in GATHERING and any(name.endswith(".gather") for name in opened.refs):
        left.append("matrices whose columns are sorted by group (desc_act, actorder)")
    parts = " and ".join(left)
    by_torch = f"slow: torch computes {parts}, for which there are no {backend.name} kernels yet"
    return [decoded] * (layout is FILE) + [by_torch] * bool(parts)


def work_of_a_token(opened: OpenedModel, layout: Layout, config: ModelConfig) -> Work:
    """The cost of a token, to be held against the limits of the device."""
    tensors, matrices = opened.source.tensors, matrices_of_a_token(opened.refs)
    wide = sum(prod(ref.shape) for ref in matrices if tensors[ref.name].qtype in WIDE)
    seeing_all = [spec for spec in config.layers if spec.kind == "full"]
    return Work(
        weight_bytes=sum(layout.nbytes(tensors[ref.name].qtype, *ref.shape) for ref in matrices)
        + sum(adapter.nbytes(layout) for adapter in opened.adapters),
        macs=sum(prod(ref.shape) for ref in matrices if tensors[ref.name].qtype not in WIDE),
        wide_macs=wide + sum(adapter.macs for adapter in opened.adapters),
        attention_macs=2 * sum(spec.n_heads * spec.head_dim for spec in seeing_all),
    )


def commonest_type(source: TensorSource) -> str:
    """The type that most of the weights' bytes are stored in."""
    sizes: Counter[str] = Counter()
    for info in source.tensors.values():
        sizes[info.qtype] += info.nbytes
    return sizes.most_common(1)[0][0]
