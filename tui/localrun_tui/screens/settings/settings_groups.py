"""Groups and titles of the settings. No widgets."""

GROUPS: dict[str, dict[str, str]] = {
    "Model": {
        "model": "Default model",
        "folders": "More folders",
        "ctx": "Context",
        "kv": "KV cache",
        "window": "Window",
    },
    "Answers": {
        "system": "System prompt",
        "max_tokens": "Longest answer",
        "temperature": "Temperature",
        "top_p": "Top-p",
        "top_k": "Top-k",
        "min_p": "Min-p",
        "repeat_penalty": "Repeat penalty",
        "presence_penalty": "Presence penalty",
        "frequency_penalty": "Frequency penalty",
        "seed": "Seed",
        "stop_on_loop": "Stop repetition",
    },
    "App": {
        "theme": "Theme",
        "titles": "Titles of chats",
        "notify": "Notifications",
        "disk_cache": "Disk for chats",
        "packed_weights": "Disk for weights",
    },
    "Machine": {
        "backend": "Compute on",
        "device": "NVIDIA GPU",
        "threads": "CPU threads",
        "isa": "Instruction set",
        "draft": "Drafts",
    },
}


def in_groups() -> list[tuple[str, str, str]]:
    """Group, key and title of every setting, in the order of the screen."""
    return [(group, key, title) for group, titles in GROUPS.items() for key, title in titles.items()]


# Each choice in one line. Sizes are those of a cache, beside f16.
CHOICES: dict[str, dict[str, str]] = {
    "kv": {
        "auto": "the best that the memory holds with a long context",
        "f32": "twice the memory; no answer is better for it",
        "f16": "as the model was made",
        "q8": "half the memory, no visible difference",
        "k8v4": "three eighths of the memory; values are rounded more than keys",
        "q4": "a quarter of the memory; small models get worse, some break",
    },
    "backend": {
        "auto": "the fastest that this machine has",
        "cpu": "the processor, with kernels of its own",
        "cuda": "a GPU of NVIDIA",
        "mps": "a GPU of Apple",
        "reference": "plain PyTorch: slow, and what the others are checked with",
    },
    "draft": {
        "auto": "lookup, and a layer of the model where it has one and there is room",
        "off": "each token by a step of its own",
        "lookup": "words that follow the same words further up; takes no memory",
        "mtp": "as auto: a model without such a layer answers, too",
    },
    "titles": {"on": "the model names a chat after its first answers", "off": "a chat is called as it begins"},
    "notify": {"on": "tells you when a long answer or a download is there", "off": "stays quiet"},
    "stop_on_loop": {
        "on": "an answer that says the same again and again ends",
        "off": "it goes on to the longest answer",
    },
}
UNITS = {"disk_cache": "GiB", "packed_weights": "GiB"}
RELOADED = frozenset(  # count when a model is loaded
    ["ctx", "kv", "window", "disk_cache", "packed_weights", "backend", "device", "threads", "isa", "draft"]
)
