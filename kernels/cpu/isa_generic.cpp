#include "isa.h"
#include "logits.inc"

const lr_kernels lr_kernels_generic = {"generic", logits_stats};
