#define LR_UNIT lr_kernels_avxvnni
#define LR_UNIT_NAME "avxvnni"
#include "unit.inc"
