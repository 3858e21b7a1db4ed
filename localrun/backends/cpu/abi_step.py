"""A program, its cache and one step of it in kernels/cpu/program.h for ctypes, field by field. Torch-free."""

from ctypes import POINTER, Structure, c_double, c_float, c_int8, c_int32, c_int64, c_uint16, c_void_p

from localrun.backends.cpu.abi import MAX_HEAD_DIM, MAX_SCALES, Instruction
from localrun.ops.largest_step import MAX_CANDIDATES


class KVPoolC(Structure):
    _fields_ = (("pool", c_void_p), ("block_bytes", c_int64), ("layer_offset", c_int64))


class KVCodesC(Structure):
    _fields_ = (("codes", c_int8 * MAX_HEAD_DIM), ("scale", c_uint16 * MAX_SCALES), ("offset", c_uint16 * MAX_SCALES))


class CacheLayerC(Structure):
    _fields_ = (
        ("blocks", KVPoolC),
        ("ring", KVPoolC),
        ("group", c_int32),
        ("n_heads", c_int32),
        ("n_kv_heads", c_int32),
        ("head_dim", c_int32),
        ("codec", c_int32),
        ("state_size", c_int32),
        ("value_dim", c_int32),
        ("reserved", c_int32),
    )


class SequenceC(Structure):
    _fields_ = (
        ("table", POINTER(c_void_p)),
        ("first", c_void_p),
        ("sink", c_void_p),
        ("ring", POINTER(c_void_p)),
        ("ring_sink", c_void_p),
        ("write_from", c_void_p),
        ("state", c_void_p),
        ("ring_first", c_int32),
        ("length", c_int32),
    )


class Adjust(Structure):
    _fields_ = (
        ("seen", c_void_p),
        ("ids", c_void_p),
        ("counts", c_void_p),
        ("bias_ids", c_void_p),
        ("bias", c_void_p),
        ("n_seen", c_int32),
        ("n_ids", c_int32),
        ("n_bias", c_int32),
        ("repeat", c_float),
        ("presence", c_float),
        ("frequency", c_float),
        ("inv_temperature", c_float),
    )


class Candidates(Structure):
    _fields_ = (
        ("ids", c_int32 * MAX_CANDIDATES),
        ("values", c_float * MAX_CANDIDATES),
        ("logsumexp", c_double),
        ("n_candidates", c_int32),
        ("finite", c_int32),
    )


class Step(Structure):
    _fields_ = (
        ("token", c_void_p),
        ("position", c_void_p),
        ("reach", c_void_p),
        ("row_sequence", c_void_p),
        ("sequence", POINTER(SequenceC)),
        ("logits_row", c_void_p),
        ("adjust", POINTER(Adjust)),
        ("candidates", POINTER(Candidates)),
        ("cos", POINTER(c_void_p)),
        ("sin", POINTER(c_void_p)),
        ("sink_cos", POINTER(c_void_p)),
        ("sink_sin", POINTER(c_void_p)),
        ("rope_half", c_void_p),
        ("query_scale", c_void_p),
        ("buffer_row", c_void_p),
        ("buffer", c_void_p),
        ("added", c_void_p),
        ("cancel", c_void_p),
        ("n_rows", c_int32),
        ("n_sequences", c_int32),
        ("n_logits", c_int32),
        ("n_buffer", c_int32),
        ("n_added", c_int32),
        ("reserved", c_int32),
    )


class ProgramC(Structure):
    _fields_ = (
        ("instruction", POINTER(Instruction)),
        ("layer", POINTER(CacheLayerC)),
        ("n_instructions", c_int32),
        ("n_layers", c_int32),
    )


class DrawC(Structure):
    """The fields of `ops.sampling.Draw`, in their order."""

    _fields_ = (
        ("row", c_int32),
        ("top_k", c_int32),
        ("temperature", c_double),
        ("top_p", c_double),
        ("min_p", c_double),
        ("u", c_double),
    )
