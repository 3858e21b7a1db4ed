// Instructions of the step program (program.h), one structure each. Mirrored in abi.py, abi_latent.py and abi_recurrent.py of
// localrun/backends/cpu.
#pragma once
#include "values.h"

enum { LR_QK_NORM_NONE = 0, LR_QK_NORM_HEAD = 1, LR_QK_NORM_ROW = 2 };
enum { LR_ACT_NONE = 0, LR_ACT_SILU_MUL = 1, LR_ACT_GELU_MUL = 2, LR_ACT_CLAMPED_SILU_MUL = 3, LR_ACT_RELU_SQUARED = 4,
  LR_ACT_GELU = 5, LR_ACT_GELU_ERF = 6, LR_ACT_GELU_QUICK = 7, LR_N_ACTS };
enum { LR_OP_EMBED, LR_OP_NORM, LR_OP_LINEAR, LR_OP_ROPE_APPEND, LR_OP_ATTENTION, LR_OP_LOGITS, LR_OP_ROUTE, LR_OP_EXPERTS,
  LR_OP_COMBINE, LR_OP_SIGMOID_MUL, LR_OP_SHORT_CONV, LR_OP_GATED_DELTA_RULE, LR_OP_SELECTIVE_SCAN, LR_OP_EMBED_MAPPED,
  LR_OP_GELU_MUL, LR_OP_SCALE, LR_OP_WILL_NEED, LR_OP_LAYER_NORM, LR_OP_SELF_ATTENTION, LR_OP_XIELU,
  LR_OP_ADD_IMAGE_ROWS, LR_OP_CLAMP, LR_OP_HEAD_LINEAR, LR_OP_LATENT_APPEND, LR_N_OPS };

typedef struct {
  const lr_matrix* weight;
  lr_value* out;
  float scale;
  int32_t image_token;  // what rows of images read; -1: those of the step's buffer, unscaled
} lr_embed;

// Rows of a matrix as a file has them, which is mapped: pages are read when they are touched.
typedef struct {
  const uint8_t* rows;  // of blocks of `gguf_type`
  lr_value* out;
  float scale;
  int32_t gguf_type;
  int32_t n_rows, n_cols;
  int32_t image_token;  // as of lr_embed
} lr_embed_mapped;

// out = x, plus what the step's buffer adds to rows of images in this place.
typedef struct {
  const lr_value* x;
  lr_value* out;
  int32_t place;
} lr_add_image_rows;

typedef struct {
  const lr_value* x;
  const lr_value* residual;  // or null; then out = norm(x)·weight
  lr_value* out;
  const float* weight;  // [size]
  float eps;
  int32_t size;         // each so many numbers of a row are normed by themselves
} lr_norm;

#define LR_ADAPTER_SPAN 512  // columns of A that a task sums up

// What an adapter (LoRA) adds to the products of a weight: B·t, where t = scale·A·a.
typedef struct {
  const lr_matrix* a;  // of F16, [rank][columns of the weight]
  lr_value* t;         // [rank]
  const uint16_t* b;   // fp16 [n_rows of the weight / 16, rounded up][rank][16]
  float scale;
  int32_t reserved;
} lr_adapter;

typedef struct {
  lr_value* a;
  const int32_t* order;  // [width of a]: codes are made, and weights read them, of a's numbers in this order; null: as they are
  const lr_matrix* weight[LR_MAX_WEIGHTS];
  const float* bias[LR_MAX_WEIGHTS];  // or null
  const float* scale[LR_MAX_WEIGHTS];  // one number that products are multiplied by before the bias; null: as they are
  const lr_adapter* adapter[LR_MAX_WEIGHTS];  // [n_adapters]: what is added to them then, before the bias
  int32_t n_adapters[LR_MAX_WEIGHTS];
  lr_value* out[LR_MAX_WEIGHTS];      // with an activation only out[0]
  const lr_value* residual;           // or null
  int32_t n_weights;
  int32_t act;           // gated ones, those in _MUL, take two weights, gate and up; others one
  float out_scale;
  int32_t make_formats;  // LR_FORMAT_* of `a` that this linear has to make itself, because no norm did
} lr_linear;

typedef struct {
  const lr_value* q;
  const lr_value* k;      // null, and v: nothing is stored
  const lr_value* v;
  lr_value* out;          // q after rope, f32 [rows][n_heads·head_dim]
  lr_value* sink_out;     // q rotated by sink_cos and sink_sin, or null
  const float* q_weight;  // qk norm, or null
  const float* k_weight;
  int32_t layer;
  int32_t rope;           // rope kind, -1: none
  int32_t qk_norm;
  float eps;
  int32_t v_norm;         // heads of v are normed, without a weight
  int32_t reserved;
} lr_rope_append;

typedef struct {
  const lr_value* q;
  const lr_value* sink_q;  // scored with the keys of block 0 in place of q, or null
  lr_value* out;
  const float* sinks;      // [n_heads] or null
  int32_t layer;
  int32_t window;          // tokens a row sees, 0: all
  int32_t sink_window;     // tokens a row sees besides block 0, 0: all; never beside window
  float scale;
  float softcap;           // 0: none
  int32_t spans;           // rows see keys up to the step's `reach`, else up to their own
} lr_attention;

typedef struct {
  lr_value* a;
  const lr_matrix* weight;
  float* rows;         // [max_logits_rows][vocab]
  lr_value* gathered;  // the rows of `a` that want logits, with formats
  float scale;
  float softcap;       // 0: none
} lr_logits;

// Where the rows of a step go. A choice is one of the top_k experts of a row, best first; its place is a row among those of
// all experts.
typedef struct {
  int32_t* expert;  // [max_rows·top_k]: by choice
  float* weight;    // likewise
  int32_t* place;   // likewise
  int32_t* first;   // [n_experts + 1]: an expert has the places from first[expert] to first[expert + 1]
  int32_t n_experts, top_k;
} lr_routes;

typedef struct {
  const lr_value* scores;  // of the router, f32 [rows][n_experts]
  const lr_value* a;
  lr_value* chosen;        // rows of `a` by place, in the formats that experts read
  const lr_routes* routes;
  const float* choice_bias;  // [n_experts], added to the scores where experts are chosen; or null
  int32_t normalize;       // the weights of a row sum to one
  int32_t reads_f32;       // experts read `chosen` in f32, too
  int32_t sigmoid;         // scores are the router's through a sigmoid, else through a softmax
  float scale;             // of the weights
  const float* expert_scale;  // [n_experts], of what each expert gives; or null
  int32_t n_groups;        // of neighbouring experts, as many in each
  int32_t n_groups_used;   // experts are chosen from so many best groups
  int32_t group_rank;      // a group is as good as its best expert (1), or as the sum of its two best (2)
  int32_t reserved;
} lr_route;

typedef struct {
  lr_value* a;                 // by place
  const lr_matrix* weight[2];  // the rows of all experts, one after the other; with a gated activation gate and up, else one
  const float* bias[2];        // likewise, or null
  const float* scale[2];       // [n_experts], as of lr_linear
  lr_value* out;               // by place
  const lr_routes* routes;
  int32_t act;
  int32_t make_formats;          // as of lr_linear
} lr_experts;

typedef struct {
  const lr_value* y;            // by place
  const lr_value* shared;       // what an expert of all rows gives, or null
  const lr_value* shared_gate;  // its sigmoid is how much that counts, one number a row; null: fully
  const lr_value* residual;     // or null
  lr_value* out;                // residual + scale · (the weighted sum of a row's choices + shared)
  const lr_routes* routes;
  float scale;
  int32_t reserved;
} lr_combine;

typedef struct {
  const lr_value* x;
  const lr_value* gate;
  lr_value* out;  // x · sigmoid(gate)
} lr_sigmoid_mul;

typedef struct {
  const lr_value* gate;  // [n]
  const lr_value* x;
  lr_value* out;         // gelu(gate) · the n numbers of x from `first` on
  int32_t first;
  int32_t reserved;
} lr_gelu_mul;

typedef struct {
  const lr_value* x;
  lr_value* out;  // factor · x
  float factor;
  int32_t reserved;
} lr_scaling;

// x > 0: (positive·x + linear)·x, else negative·(e^min(x, limit) - 1 - x) + linear·x
typedef struct {
  const lr_value* x;
  lr_value* out;
  float positive, negative, linear, limit;
} lr_xielu;

typedef struct {
  const lr_value* x;
  lr_value* out;  // x, or the bound that it lies beyond
  float low, high;
} lr_clamp;

typedef struct {
  const lr_value* x;
  lr_value* out;        // (x - mean) / sqrt(variance + eps) · weight + bias, of a whole row
  const float* weight;  // [width of x]
  const float* bias;    // likewise
  float eps;
  int32_t reserved;
} lr_layer_norm;

// Every row sees all rows of its sequence in the step, and nothing of a cache.
typedef struct {
  const lr_value* q;  // [n_heads · head_dim]
  const lr_value* k;
  const lr_value* v;
  lr_value* out;
  int32_t n_heads;
  int32_t rope;       // rope kind that q and k are turned by, -1: none
  float scale;        // of scores
  int32_t reserved;
} lr_self_attention;

typedef struct {
  const lr_matrix* weight[3];  // in mapped files, that come next; or null
  const lr_routes* routes;     // only the experts that rows were sent to; null: the whole of them
} lr_will_need;

typedef struct {
  const lr_value* x;    // [channels], or where it is gated a gate before, a gate after and x, [channels] each
  lr_value* out;        // the sum of weight[tap][c] · x of the row taps - 1 - tap before, and its bias
  const float* weight;  // [taps][channels]
  const float* bias;    // [channels] or null
  int32_t taps;
  int32_t silu;         // of the sum, or the sum itself
  int32_t layer;
  int32_t state_at;     // x of the last taps - 1 rows, [taps - 1][channels], from this number of the state on
  int32_t gated;        // x is multiplied by the first gate, the result by the second
  int32_t reserved;
} lr_short_conv;

typedef struct {
  const lr_value* qkv;   // [n_key_heads·key_dim] twice, then [n_value_heads·value_dim]
  const lr_value* z;     // [n_value_heads·value_dim]
  const lr_value* alpha; // [n_value_heads]
  const lr_value* beta;  // likewise
  lr_value* out;         // as z
  const float* decay;    // [n_value_heads], below 0
  const float* dt_bias;  // [n_value_heads]
  const float* norm;     // [value_dim]
  int32_t n_key_heads, n_value_heads, key_dim, value_dim;
  int32_t tiled;         // value head h reads key head h % n_key_heads, else h·n_key_heads / n_value_heads
  int32_t layer;
  int32_t state_at;      // the states of all value heads from this number of the state on
  float eps;
} lr_gated_delta_rule;

typedef struct {
  const lr_value* xbc;   // [n_heads·head_dim], then [n_groups·state_dim] twice
  const lr_value* z;     // [n_heads·head_dim]
  const lr_value* dt;    // [n_heads]
  lr_value* out;         // as z
  const float* decay;    // [n_heads], below 0
  const float* dt_bias;  // [n_heads]
  const float* skip;     // [n_heads]
  const float* norm;     // [n_heads·head_dim]
  int32_t n_heads, head_dim, n_groups, state_dim;
  int32_t layer;
  int32_t state_at;      // the states of all heads from this number of the state on
  float eps;
  int32_t reserved;
} lr_selective_scan;

// Every head of a row times a matrix of its own.
typedef struct {
  const lr_value* x;       // [n_heads · n_in]
  const int32_t* order;    // [n_in]: weights have their columns in this order; null: as heads are
  lr_value* a;             // [n_in]: heads of rows, those of one head together, in the formats that weights read
  const lr_matrix* weight; // [n_heads · n_out][n_in]
  const float* bias;       // [n_heads · n_out] or null
  const float* scale;      // [n_heads], as of lr_linear
  lr_value* out;           // [n_heads · n_out]
  int32_t n_heads;
  int32_t reserved;
} lr_head_linear;

// The key of a row is its latent, then k_rope, turned; q and q_rope are put together so, head by head.
typedef struct {
  const lr_value* q;       // [n_heads · value_dim]
  const lr_value* q_rope;  // [n_heads · (head_dim - value_dim)]
  const lr_value* latent;  // [value_dim]
  const lr_value* k_rope;  // [head_dim - value_dim]
  lr_value* out;           // [n_heads · head_dim]
  int32_t layer;
  int32_t rope;            // rope kind, -1: none
} lr_latent_append;

typedef struct {
  int32_t op;
  int32_t reserved;
  union {
    lr_embed embed;
    lr_norm norm;
    lr_linear linear;
    lr_rope_append rope_append;
    lr_attention attention;
    lr_logits logits;
    lr_route route;
    lr_experts experts;
    lr_combine combine;
    lr_sigmoid_mul sigmoid_mul;
    lr_short_conv short_conv;
    lr_gated_delta_rule gated_delta_rule;
    lr_selective_scan selective_scan;
    lr_embed_mapped embed_mapped;
    lr_gelu_mul gelu_mul;
    lr_scaling scale;
    lr_will_need will_need;
    lr_layer_norm layer_norm;
    lr_self_attention self_attention;
    lr_xielu xielu;
    lr_add_image_rows add_image_rows;
    lr_clamp clamp;
    lr_head_linear head_linear;
    lr_latent_append latent_append;
  };
} lr_instruction;
