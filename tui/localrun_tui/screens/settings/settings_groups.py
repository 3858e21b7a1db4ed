"""Groups and titles of the settings. No widgets."""

GROUPS: dict[str, dict[str, str]] = {
    "Model": {
        "model": "Default model",
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
        "threads": "CPU threads",
        "isa": "Instruction set",
        "draft": "Drafts",
    },
}


def in_groups() -> list[tuple[str, str, str]]:
    """Group, key and title of every setting, in the order of the screen."""
    return [(group, key, title) for group, titles in GROUPS.items() for key, title in titles.items()]
