#include "isa.h"
#include "logits.inc"

const lr_kernels lr_kernels_neon = {"neon", logits_stats};
