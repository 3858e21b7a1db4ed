#include "isa.h"
#include "logits.inc"

const lr_kernels lr_kernels_avxvnni = {"avxvnni", logits_stats};
