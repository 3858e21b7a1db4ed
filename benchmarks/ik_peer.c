// ik_llama.cpp behind a few calls without structures, whose layout changes there from week to week.
#include <stdbool.h>
#include <stdlib.h>

#include "llama.h"

typedef struct {
    struct llama_model * model;
    struct llama_context * context;
} peer;

static void be_silent(enum ggml_log_level level, const char * text, void * data) {}

void * ik_open(const char * path, int threads, int ctx, int sequences, bool flash, bool repack) {
    llama_log_set(be_silent, NULL);
    llama_backend_init();
    struct llama_model_params model = llama_model_default_params();
    model.n_gpu_layers = 0;
    model.repack_tensors = repack;
    model.use_mmap = !repack;
    struct llama_context_params context = llama_context_default_params();
    context.n_ctx = ctx;
    context.n_seq_max = sequences;
    context.n_batch = context.n_ubatch = 512;
    context.n_threads = context.n_threads_batch = threads;
    context.flash_attn = model.flash_attn = flash;
    peer * one = malloc(sizeof *one);
    one->model = llama_model_load_from_file(path, model);
    one->context = one->model ? llama_init_from_model(one->model, context) : NULL;
    return one->context ? one : NULL;
}

void ik_clear(peer * one) { llama_kv_cache_clear(one->context); }

void ik_cut(peer * one, int sequence, int length) { llama_kv_cache_seq_rm(one->context, sequence, length, -1); }

// One step: the same tokens at `first` ... of every sequence, the logits of the last one. False when it failed.
bool ik_step(peer * one, const int * tokens, int n_tokens, int first, int sequences) {
    struct llama_batch batch = llama_batch_init(n_tokens * sequences, 0, 1);
    for (int index = 0; index < n_tokens * sequences; ++index) {
        const int row = index % n_tokens;
        batch.token[index] = tokens[row];
        batch.pos[index] = first + row;
        batch.n_seq_id[index] = 1;
        batch.seq_id[index][0] = index / n_tokens;
        batch.logits[index] = row == n_tokens - 1;
    }
    batch.n_tokens = n_tokens * sequences;
    const bool done = llama_decode(one->context, batch) == 0 && llama_get_logits(one->context) != NULL;
    llama_batch_free(batch);
    return done;
}
