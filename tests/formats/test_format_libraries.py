"""The committed samples of checkpoints, made once more by the libraries that define their formats."""

import json
from pathlib import Path

import pytest
from localrun_testing.checkpoint_samples import DIGESTS
from localrun_testing.format_libraries import make_samples


@pytest.mark.slow
def test_the_libraries_still_pack_and_unpack_the_same_numbers(tmp_path: Path) -> None:
    folder = make_samples("write_checkpoint_samples.py", tmp_path / "samples")
    assert json.loads((folder / "digests.json").read_text()) == DIGESTS
