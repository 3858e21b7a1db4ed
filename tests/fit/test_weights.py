"""Weights as they are held in memory: against a real load, and against the library's own sizes."""

import pytest

from localrun.backends.cpu.bindings import calls_of
from localrun.backends.cpu.layout import CpuLayout
from localrun.backends.cpu.library import load_library
from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.resources import resource
from localrun.fit.weights import held_bytes, held_share
from localrun.formats.detect import open_model_file
from localrun.model.load import held_bytes as loaded_bytes
from localrun.model.load import read_config, read_weight_refs


def test_a_file_is_counted_as_a_load_holds_it() -> None:
    library = load_library()
    if library is None:
        pytest.skip("no native library")
    source = open_model_file(str(resource("builtin/localrun-tiny.gguf")))
    refs = read_weight_refs(source, read_config(source))
    assert held_bytes(source) == loaded_bytes(source, refs, CpuLayout(calls_of(library), 1).nbytes)


@pytest.mark.parametrize(
    ("precision", "share"),
    [
        ("Q8_0", 1.0),
        ("BF16", 1.0),
        ("Q4_K_M", 1.0),
        ("UD-Q4_K_XL", 1.0),
        ("UD-Q6_K_XL", 6.625 / 6.5625),
        ("Q2_K", 5.125 / 2.625),
        ("IQ2_M", 8.625 / 2.5625),
        ("IQ3_XS", 8.625 / 3.4375),
        ("int4", 1.0),
        ("", 1.0),
        ("whatever", 1.0),
    ],
)
def test_types_of_few_bits_take_more_in_memory(precision: str, share: float) -> None:
    if load_library() is None:
        pytest.skip("no native library")
    assert held_share(precision) == pytest.approx(share, rel=1e-3)


def test_without_the_library_the_files_own_blocks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localrun.fit.weights.usual_backend", ReferenceBackend)
    assert held_share("IQ1_S") == 1.0
