"""Instructions of kernels/cpu/instructions.h for ctypes, field by field; `abi_step.py` runs them. Torch-free."""

from ctypes import POINTER, Structure, Union, c_float, c_int32, c_void_p

from localrun.backends.cpu.abi_latent import HeadLinear as HeadLinear
from localrun.backends.cpu.abi_latent import LatentAppend as LatentAppend
from localrun.backends.cpu.abi_recurrent import GatedDeltaRule as GatedDeltaRule
from localrun.backends.cpu.abi_recurrent import SelectiveScan as SelectiveScan
from localrun.backends.cpu.abi_recurrent import ShortConv as ShortConv
from localrun.backends.cpu.abi_values import Matrix as Matrix
from localrun.backends.cpu.abi_values import Value as Value

OK, CANCELLED, NO_MEMORY = 0, 3, 4
MAX_WEIGHTS = 4
FORMAT_Q8, FORMAT_Q16, FORMAT_BF16 = 1, 2, 4
QK_NORMS = {"none": 0, "head": 1, "row": 2}
ACTIVATIONS = {"none": 0, "silu_mul": 1, "gelu_mul": 2, "clamped_silu_mul": 3, "relu_squared": 4}
ACTIVATIONS |= {"gelu": 5, "gelu_erf": 6, "gelu_quick": 7}
KV_CODES = {"f32": 0, "f16": 1, "q8": 2, "k8v4": 3, "q4": 4}
PROBE_INT8, PROBE_F16 = 0, 1
STRIDE = 256  # elements that rows of arena buffers are rounded up to
SCRATCH_BYTES = 2 << 20  # of every thread
ADAPTER_SPAN = 512  # columns of an adapter's A that a task sums up
MAX_TAPS = 16  # of a short convolution
DELTA_PANEL = 32  # columns of a state of the delta rule or a selective scan that lie together
MAX_HEAD_DIM, SCALE_DIMS = 512, 128  # dims of a head that share a scale
MAX_KEY_DIM = 576  # of a latent and what is turned beside it
MAX_SCALES = MAX_HEAD_DIM // SCALE_DIMS  # of a head


class Embed(Structure):
    _fields_ = (("weight", POINTER(Matrix)), ("out", POINTER(Value)), ("scale", c_float), ("image_token", c_int32))


class EmbedMapped(Structure):
    _fields_ = (
        ("rows", c_void_p),
        ("out", POINTER(Value)),
        ("scale", c_float),
        ("gguf_type", c_int32),
        ("n_rows", c_int32),
        ("n_cols", c_int32),
        ("image_token", c_int32),
    )


class AddImageRows(Structure):
    _fields_ = (("x", POINTER(Value)), ("out", POINTER(Value)), ("place", c_int32))


class Norm(Structure):
    _fields_ = (
        ("x", POINTER(Value)),
        ("residual", POINTER(Value)),
        ("out", POINTER(Value)),
        ("weight", c_void_p),
        ("eps", c_float),
        ("size", c_int32),
    )


class Adapter(Structure):
    _fields_ = (
        ("a", POINTER(Matrix)),
        ("t", POINTER(Value)),
        ("b", c_void_p),
        ("scale", c_float),
        ("reserved", c_int32),
    )


class Linear(Structure):
    _fields_ = (
        ("a", POINTER(Value)),
        ("order", c_void_p),
        ("weight", POINTER(Matrix) * MAX_WEIGHTS),
        ("bias", c_void_p * MAX_WEIGHTS),
        ("scale", c_void_p * MAX_WEIGHTS),
        ("adapter", POINTER(Adapter) * MAX_WEIGHTS),
        ("n_adapters", c_int32 * MAX_WEIGHTS),
        ("out", POINTER(Value) * MAX_WEIGHTS),
        ("residual", POINTER(Value)),
        ("n_weights", c_int32),
        ("act", c_int32),
        ("out_scale", c_float),
        ("make_formats", c_int32),
    )


class RopeAppend(Structure):
    _fields_ = (
        ("q", POINTER(Value)),
        ("k", POINTER(Value)),
        ("v", POINTER(Value)),
        ("out", POINTER(Value)),
        ("sink_out", POINTER(Value)),
        ("q_weight", c_void_p),
        ("k_weight", c_void_p),
        ("layer", c_int32),
        ("rope", c_int32),
        ("qk_norm", c_int32),
        ("eps", c_float),
        ("v_norm", c_int32),
        ("reserved", c_int32),
    )


class Attention(Structure):
    _fields_ = (
        ("q", POINTER(Value)),
        ("sink_q", POINTER(Value)),
        ("out", POINTER(Value)),
        ("sinks", c_void_p),
        ("layer", c_int32),
        ("window", c_int32),
        ("sink_window", c_int32),
        ("scale", c_float),
        ("softcap", c_float),
        ("spans", c_int32),
    )


class LogitsOp(Structure):
    _fields_ = (
        ("a", POINTER(Value)),
        ("weight", POINTER(Matrix)),
        ("rows", c_void_p),
        ("gathered", POINTER(Value)),
        ("scale", c_float),
        ("softcap", c_float),
    )


class Routes(Structure):
    _fields_ = (
        ("expert", c_void_p),
        ("weight", c_void_p),
        ("place", c_void_p),
        ("first", c_void_p),
        ("n_experts", c_int32),
        ("top_k", c_int32),
    )


class Route(Structure):
    _fields_ = (
        ("scores", POINTER(Value)),
        ("a", POINTER(Value)),
        ("chosen", POINTER(Value)),
        ("routes", POINTER(Routes)),
        ("choice_bias", c_void_p),
        ("normalize", c_int32),
        ("reads_f32", c_int32),
        ("sigmoid", c_int32),
        ("scale", c_float),
        ("expert_scale", c_void_p),
        ("n_groups", c_int32),
        ("n_groups_used", c_int32),
        ("group_rank", c_int32),
        ("reserved", c_int32),
    )


class Experts(Structure):
    _fields_ = (
        ("a", POINTER(Value)),
        ("weight", POINTER(Matrix) * 2),
        ("bias", c_void_p * 2),
        ("scale", c_void_p * 2),
        ("out", POINTER(Value)),
        ("routes", POINTER(Routes)),
        ("act", c_int32),
        ("make_formats", c_int32),
    )


class Combine(Structure):
    _fields_ = (
        ("y", POINTER(Value)),
        ("shared", POINTER(Value)),
        ("shared_gate", POINTER(Value)),
        ("residual", POINTER(Value)),
        ("out", POINTER(Value)),
        ("routes", POINTER(Routes)),
        ("scale", c_float),
        ("reserved", c_int32),
    )


class SigmoidMul(Structure):
    _fields_ = (("x", POINTER(Value)), ("gate", POINTER(Value)), ("out", POINTER(Value)))


class GeluMul(Structure):
    _fields_ = (
        ("gate", POINTER(Value)),
        ("x", POINTER(Value)),
        ("out", POINTER(Value)),
        ("first", c_int32),
        ("reserved", c_int32),
    )


class Scale(Structure):
    _fields_ = (("x", POINTER(Value)), ("out", POINTER(Value)), ("factor", c_float), ("reserved", c_int32))


class Xielu(Structure):
    _fields_ = (
        ("x", POINTER(Value)),
        ("out", POINTER(Value)),
        ("positive", c_float),
        ("negative", c_float),
        ("linear", c_float),
        ("limit", c_float),
    )


class Clamp(Structure):
    _fields_ = (("x", POINTER(Value)), ("out", POINTER(Value)), ("low", c_float), ("high", c_float))


class LayerNorm(Structure):
    _fields_ = (
        ("x", POINTER(Value)),
        ("out", POINTER(Value)),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("eps", c_float),
        ("reserved", c_int32),
    )


class SelfAttention(Structure):
    _fields_ = (
        ("q", POINTER(Value)),
        ("k", POINTER(Value)),
        ("v", POINTER(Value)),
        ("out", POINTER(Value)),
        ("n_heads", c_int32),
        ("rope", c_int32),
        ("scale", c_float),
        ("reserved", c_int32),
    )


class WillNeed(Structure):
    _fields_ = (("weight", POINTER(Matrix) * 3), ("routes", POINTER(Routes)))


class AnyOp(Union):
    _fields_ = (
        ("embed", Embed),
        ("norm", Norm),
        ("linear", Linear),
        ("rope_append", RopeAppend),
        ("attention", Attention),
        ("logits", LogitsOp),
        ("route", Route),
        ("experts", Experts),
        ("combine", Combine),
        ("sigmoid_mul", SigmoidMul),
        ("short_conv", ShortConv),
        ("gated_delta_rule", GatedDeltaRule),
        ("selective_scan", SelectiveScan),
        ("embed_mapped", EmbedMapped),
        ("gelu_mul", GeluMul),
        ("scale", Scale),
        ("will_need", WillNeed),
        ("layer_norm", LayerNorm),
        ("self_attention", SelfAttention),
        ("xielu", Xielu),
        ("add_image_rows", AddImageRows),
        ("clamp", Clamp),
        ("head_linear", HeadLinear),
        ("latent_append", LatentAppend),
    )


OPS = tuple(name for name, *_ in AnyOp._fields_)  # an instruction's `op` is the place of its structure here


class Instruction(Structure):
    _anonymous_ = ("any",)
    _fields_ = (("op", c_int32), ("reserved", c_int32), ("any", AnyOp))
