// What a warp computes together once all its lanes have met.
#pragma once
#include "emulator.h"

// operands[lane]: of the lanes in `mask`; the results go to the same places.
void perform(emu_op op, uint32_t mask, void* const* operands);
