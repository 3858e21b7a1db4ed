// The C ABI of the library; localrun/ops/library.py is its only caller.
#pragma once
#include <stdint.h>

#if defined(_WIN32)
#define LR_API extern "C" __declspec(dllexport)
#else
#define LR_API extern "C" __attribute__((visibility("default")))
#endif

#define LR_ABI_VERSION 1

enum { LR_OK = 0, LR_BAD_ARGUMENT = 1, LR_UNSUPPORTED = 2 };

// What sampling needs to know of one row of logits. A logit of -inf is a token that is ruled out, not an error.
typedef struct {
  double logsumexp;  // log(sum(exp(x * inv_temp)))
  float max;         // the largest logit, before inv_temp
  int32_t argmax;    // its id, the lowest one among equals; -1 when not finite
  int32_t finite;    // 0 when there is a NaN or +inf, or every token is ruled out
} lr_logits_stats_t;

LR_API int lr_version(void);

// The instruction sets this machine runs, weakest first, separated by spaces.
LR_API const char* lr_isas(void);
// The one in use; the strongest unless lr_use_isa chose another. lr_use_isa gives LR_UNSUPPORTED for a name not in lr_isas().
LR_API const char* lr_isa(void);
LR_API int lr_use_isa(const char* name);

LR_API int lr_logits_stats(const float* x, int64_t n, float inv_temp, lr_logits_stats_t* out);
