"""Matrices and buffers of kernels/cpu/values.h for ctypes, field by field. Torch-free."""

from ctypes import Structure, c_int32, c_int64, c_void_p


class Matrix(Structure):
    _fields_ = (
        ("n_rows", c_int32),
        ("n_cols", c_int32),
        ("layout", c_int32),
        ("reserved", c_int32),
        ("data", c_void_p),
        ("n_bytes", c_int64),
    )


class Value(Structure):
    _fields_ = (
        ("f32", c_void_p),
        ("q8", c_void_p),
        ("q8_scale", c_void_p),
        ("q8_sum", c_void_p),
        ("bf16", c_void_p),
        ("width", c_int32),
        ("stride", c_int32),
        ("formats", c_int32),
        ("reserved", c_int32),
    )
