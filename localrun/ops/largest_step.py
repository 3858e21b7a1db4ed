"""The largest step: what the scheduler may plan, every backend makes room for, and `fit` counts."""

MAX_CHUNK = 512  # rows of prompts
MAX_RUNNING = 16  # sequences, each with a row when it decodes
MAX_ROWS = MAX_CHUNK + MAX_RUNNING
MAX_LOGITS = 64  # rows of logits: perplexity wants many, sampling one a sequence
