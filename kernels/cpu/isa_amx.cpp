#define LR_UNIT lr_kernels_amx
#define LR_UNIT_NAME "amx"
#include "unit.inc"
