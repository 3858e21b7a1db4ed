"""The table of what fits: its arithmetic against the plan of a real load, and which row is recommended."""

from dataclasses import replace

import pytest

from localrun.backends.reference.backend import ReferenceBackend
from localrun.base.errors import DoesNotFitError
from localrun.fit.estimate import CODECS, Candidate, Fit, Question, fit_table, speed_mark
from localrun.fit.mapped import Mappable
from localrun.fit.plan import LoadRequest, plan_load
from localrun.fit.precisions import bits_of, is_extreme
from localrun.fit.rates import Rates
from localrun.fit.shape import ExpertSizes, make_shape
from localrun.model.config import LayerSpec, Mixture, ModelConfig, RopeSpec
from localrun.model.short_conv import GatedShortConv
from localrun.ops.types import Routing

GIB = 1 << 30
FAST = Rates(read_bytes=400e9, macs=2e12)
SLOW = Rates(read_bytes=10e9, macs=5e10)


def config(layers: int = 36, max_context: int = 40960) -> ModelConfig:
    layer = LayerSpec("full", None, 0, n_heads=32, n_kv_heads=8, head_dim=128, ffn_size=9728)
    return ModelConfig("qwen3", 2560, 151936, max_context, 1e-6, (layer,) * layers, (RopeSpec(1e6, 128),))


SHAPE = make_shape(config(), tied=True)
N_PARAMS = SHAPE.n_params


@pytest.fixture(autouse=True)
def reference_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same figures on every machine."""
    monkeypatch.setattr("localrun.fit.usual_sizes.fastest_backend", lambda model: ReferenceBackend())


def candidate(precision: str) -> Candidate:
    size = int(N_PARAMS * bits_of(precision) / 8)
    return Candidate(precision, size, size, bits_of(precision))


def table(budget: int, rates: Rates = FAST, ctx: int | None = None, parallel: int = 1) -> Fit:
    precisions = [candidate(name) for name in ("Q2_K", "Q4_K_M", "Q6_K", "Q8_0", "BF16")]
    return fit_table(SHAPE, precisions, Question(budget, rates, ctx, parallel))


def test_every_precision_context_and_codec_is_a_row() -> None:
    rows = table(64 * GIB).rows
    assert {(row.precision, row.ctx, row.kv_codec) for row in rows} == {
        (precision, ctx, codec.name)
        for precision in ("Q2_K", "Q4_K_M", "Q6_K", "Q8_0", "BF16")
        for ctx in (4096, 8192, 16384, 32768, 40960)
        for codec in CODECS
    }
    for row in rows:
        assert row.total_bytes - row.weights_bytes - row.kv_bytes - row.scratch_bytes == 400 << 20
    by_codec = {row.kv_codec: row for row in rows if row.ctx == 40960}
    assert by_codec["f16"].kv_bytes > 1.8 * by_codec["q8"].kv_bytes


@pytest.mark.parametrize("budget", [5 * GIB, 6 * GIB, 8 * GIB])
def test_a_verdict_is_what_the_plan_of_a_load_says(budget: int) -> None:
    for row in table(budget).rows:
        request = LoadRequest(config(), row.weights_bytes, budget, ReferenceBackend(), row.ctx, row.kv_codec)
        try:
            plan = plan_load(request)
        except DoesNotFitError:
            assert row.verdict != "fits"
        else:
            found = ("fits", plan.needed_kv_bytes, plan.scratch_bytes, plan.needed_bytes)
            assert (row.verdict, row.kv_bytes, row.scratch_bytes, row.total_bytes) == found
        try:
            largest = plan_load(replace(request, ctx=None)).ctx
        except DoesNotFitError:
            largest = 0
        assert row.max_ctx == largest


def test_tight_is_between_fits_and_no() -> None:
    verdicts = [table(budget, ctx=8192).rows[0].verdict for budget in (64 * GIB, 2 * GIB)]
    assert verdicts == ["fits", "no"]
    row = table(64 * GIB, ctx=8192).rows[0]
    assert table(row.total_bytes, ctx=8192).rows[0].verdict == "tight"
    assert table(row.total_bytes + (512 << 20), ctx=8192).rows[0].verdict == "fits"


@pytest.mark.parametrize("disk_room", [0, GIB, 3 * GIB, None])
def test_no_context_is_the_longest_where_the_disk_has_no_room_for_weights(disk_room: int | None) -> None:
    """Four parts of 1 GiB, of which a load has to leave three on disk."""
    parts = tuple(Mappable(str(n), GIB, GIB) for n in range(4))
    one = replace(candidate("Q8_0"), mappable=parts, disk_room=disk_room)
    budget = one.weights_bytes - 3 * GIB // 2
    rows = fit_table(SHAPE, [one], Question(budget, FAST, disk=lambda: 1e9)).rows
    assert {row.max_ctx >= row.ctx for row in rows if row.verdict == "disk"} <= {True}
    assert any(row.verdict == "disk" for row in rows) == (disk_room in (3 * GIB, None))
    assert any(row.max_ctx for row in rows) == (disk_room in (3 * GIB, None))


def test_sequences_side_by_side() -> None:
    one = table(16 * GIB, ctx=8192).rows[0]
    assert one.max_sequences > 4
    assert one.max_sequences == 1 + (15.5 * GIB - one.total_bytes) // (8192 * 147456)
    most = table(16 * GIB, ctx=8192, parallel=one.max_sequences).rows[0]
    more = table(16 * GIB, ctx=8192, parallel=one.max_sequences + 1).rows[0]
    assert most.verdict == "fits" != more.verdict


def test_speed_is_the_roofline() -> None:
    rows = {row.precision: row for row in table(64 * GIB, SLOW, ctx=4096).rows if row.kv_codec == "f16"}
    assert rows["Q4_K_M"].est_decode_tps == pytest.approx(
        10e9 * 0.7 / (candidate("Q4_K_M").weights_bytes + 604e6), 0.05
    )
    assert rows["BF16"].est_decode_tps < rows["Q8_0"].est_decode_tps < rows["Q4_K_M"].est_decode_tps
    assert rows["Q8_0"].est_ttft_ms == pytest.approx(1000 * 512 * N_PARAMS / (5e10 * 0.4), 0.01)


@pytest.mark.parametrize(
    ("budget", "rates", "precision", "says"),
    [
        (64, FAST, "Q8_0", "most precise"),
        (6, FAST, "Q6_K", "most precise"),
        (5, FAST, "Q4_K_M", "most precise"),
        (64, SLOW, "Q4_K_M", "fastest"),
        (3.5, FAST, "Q2_K", "below 4 bits|smallest"),
        (1, FAST, None, "none of its precisions"),
    ],
)
def test_the_recommended_row(budget: float, rates: Rates, precision: str | None, says: str) -> None:
    fit = table(int(budget * GIB), rates)
    found = fit.recommended
    assert (found.precision if found else None) == precision
    assert any(word in fit.reason for word in says.split("|"))
    if found:
        assert found.verdict in ("fits", "tight")
        assert [row.recommended for row in fit.rows].count(True) == 1


def test_a_model_that_is_only_there_in_full_precision_is_recommended_so() -> None:
    fit = fit_table(SHAPE, [candidate("BF16")], Question(64 * GIB, FAST))
    assert fit.recommended is not None


def test_parameters_are_counted() -> None:
    assert make_shape(config(), tied=True).n_params == pytest.approx(4.02e9, rel=0.01)  # "Qwen3-4B"
    experts = ExpertSizes(128, 8, 768)
    layer = LayerSpec("full", None, 0, n_heads=32, n_kv_heads=4, head_dim=128, ffn_size=6144)
    mixture = ModelConfig("qwen3moe", 2048, 151936, 40960, 1e-6, (layer,) * 48, (RopeSpec(1e6, 128),))
    shape = make_shape(mixture, tied=False, experts=experts)
    known = replace(mixture, layers=(replace(layer, ffn_size=768, mixture=Mixture(128, Routing(8))),) * 48)
    assert make_shape(known, tied=False) == replace(shape, config=known)
    assert shape.n_params == pytest.approx(30.5e9, rel=0.01)  # "30B-A3B": 30.5 B, of which 3.3 B are active
    assert shape.active_params == pytest.approx(3.0e9, rel=0.05)
    attends = LayerSpec("full", None, 0, n_heads=32, n_kv_heads=8, head_dim=64, ffn_size=8192)
    convolves = replace(attends, kind="recurrent", mixer=GatedShortConv(2048, taps=3))
    layers = (attends,) * 6 + (convolves,) * 10
    lfm2 = ModelConfig("lfm2", 2048, 65536, 128000, 1e-5, layers, (RopeSpec(1e6, 64),))
    assert make_shape(lfm2, tied=True).n_params == pytest.approx(1.17e9, rel=0.001)  # "LFM2-1.2B": 1.17 B


@pytest.mark.parametrize(
    ("name", "bits"),
    [("q4_k_m", 4.89), ("UD-Q4_K_XL", 4.5), ("BF16", 16), ("fp32", 32), ("int4", 4.5), ("int2", 2.625), ("", 16)],
)
def test_bits_per_weight_of_a_precision_name(name: str, bits: float) -> None:
    assert bits_of(name) == bits


def test_a_recommended_codec_is_indistinguishable_from_f16() -> None:
    """More bits for the weights are not bought with a lossy cache while a lossless one fits."""
    for budget in range(3, 12):
        found = table(budget * GIB).recommended
        fits = {row.kv_codec for row in table(budget * GIB).rows if row.verdict == "fits" and row.ctx == 8192}
        if found and fits & {"f16", "q8"}:
            assert found.kv_codec in ("f16", "q8")


def test_a_small_model_is_not_recommended_with_4_bit_keys() -> None:
    small = make_shape(replace(config(8), hidden_size=512), tied=True)
    row = fit_table(small, [candidate("Q8_0")], Question(64 * GIB, FAST, ctx=40960)).rows[-1]
    assert row.kv_codec == "q4"
    found = fit_table(small, [candidate("Q8_0")], Question(row.total_bytes + (512 << 20), FAST, ctx=40960)).recommended
    assert found is not None
    assert (found.kv_codec, found.verdict) != ("q4", "fits")


@pytest.mark.parametrize(("name", "extreme"), [("int2", True), ("Q2_K", True), ("iq1_s", True), ("IQ3_XXS", False)])
def test_which_precisions_are_extreme(name: str, extreme: bool) -> None:
    assert is_extreme(name) is extreme


def test_speeds_of_a_machine_that_was_measured_while_busy_are_at_least_these() -> None:
    idle, busy = (table(8 * GIB, replace(FAST, idle=idle)).rows[0] for idle in (True, False))
    assert [speed_mark(row) for row in (idle, busy)] == ["~", "≥"]
    assert speed_mark(replace(idle, est_is_measured=True)) == ""
