"""Packed weights kept on disk of models that are too small, and too new, for that to be worth while."""

import pytest

from localrun.engine import packed_weights
from localrun.storage import identity


def keep_packed_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep those of any model, as on a machine whose memory has one part, though its file was written a moment ago."""
    monkeypatch.setattr(packed_weights, "LEAST_BYTES", 0)
    monkeypatch.setattr(packed_weights, "memory_nodes", lambda: [[0, 1]])
    monkeypatch.setattr(identity, "SETTLED_SECONDS", -1.0)
