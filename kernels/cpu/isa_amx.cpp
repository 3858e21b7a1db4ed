#define LR_UNIT lr_kernels_amx
#define LR_UNIT_NAME "amx"
#define LR_UNIT_ARITHMETIC Int16
#define LR_HAS_AMX 1
#include "unit.inc"
