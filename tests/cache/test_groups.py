"""Which layers share blocks, and how large these are."""

from localrun_testing.integer_model import CSA, FULL, HCA, RECURRENT, windowed

from localrun.cache.groups import block_tokens_of, make_groups, ring_pools
from localrun.ops.kv import KV_CODECS

F16, F32, Q8 = (KV_CODECS[name] for name in ("f16", "f32", "q8"))


def test_layers_of_one_kind_and_codec_share_blocks() -> None:
    groups = make_groups([FULL, windowed(20), FULL, FULL], [F16, F16, Q8, F16])
    assert [group.layers for group in groups] == [(0, 3), (1,), (2,)]
    assert ring_pools(groups) == [None, None, 3]


def test_layers_on_two_devices_do_not() -> None:
    groups = make_groups([FULL] * 4, [F16] * 4, ["cuda", "cuda", "cpu", "cpu"])
    assert [(group.layers, group.device) for group in groups] == [((0, 1), "cuda"), ((2, 3), "cpu")]


def test_blocks_hold_whole_entries_of_every_layer() -> None:
    assert block_tokens_of(make_groups([FULL, RECURRENT], [F16, F32])) == 64
    assert block_tokens_of(make_groups([FULL, CSA], [F16, F16])) == 64
    assert block_tokens_of(make_groups([FULL, CSA, HCA], [F16] * 3)) == 128
