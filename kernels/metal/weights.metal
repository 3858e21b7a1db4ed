// Weights of whatever layout the macros say: lr_find_row_tile, lr_load_tile, lr_numbers.
#pragma once
#include "device.metal"
#ifdef FLOAT_BITS
#include "floats.metal"
#else
#include "layouts.metal"
#endif
