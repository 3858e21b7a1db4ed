"""Recurrent instructions of kernels/cpu/instructions.h for ctypes, field by field. Torch-free."""

from ctypes import POINTER, Structure, c_float, c_int32, c_void_p

from localrun.backends.cpu.abi_values import Value


class ShortConv(Structure):
    _fields_ = (
        ("x", POINTER(Value)),
        ("out", POINTER(Value)),
        ("weight", c_void_p),
        ("bias", c_void_p),
        ("taps", c_int32),
        ("silu", c_int32),
        ("layer", c_int32),
        ("state_at", c_int32),
        ("gated", c_int32),
        ("reserved", c_int32),
    )


class GatedDeltaRule(Structure):
    _fields_ = (
        ("qkv", POINTER(Value)),
        ("z", POINTER(Value)),
        ("alpha", POINTER(Value)),
        ("beta", POINTER(Value)),
        ("out", POINTER(Value)),
        ("decay", c_void_p),
        ("dt_bias", c_void_p),
        ("norm", c_void_p),
        ("n_key_heads", c_int32),
        ("n_value_heads", c_int32),
        ("key_dim", c_int32),
        ("value_dim", c_int32),
        ("tiled", c_int32),
        ("layer", c_int32),
        ("state_at", c_int32),
        ("eps", c_float),
    )


class SelectiveScan(Structure):
    _fields_ = (
        ("xbc", POINTER(Value)),
        ("z", POINTER(Value)),
        ("dt", POINTER(Value)),
        ("out", POINTER(Value)),
        ("decay", c_void_p),
        ("dt_bias", c_void_p),
        ("skip", c_void_p),
        ("norm", c_void_p),
        ("n_heads", c_int32),
        ("head_dim", c_int32),
        ("n_groups", c_int32),
        ("state_dim", c_int32),
        ("layer", c_int32),
        ("state_at", c_int32),
        ("eps", c_float),
        ("reserved", c_int32),
    )
