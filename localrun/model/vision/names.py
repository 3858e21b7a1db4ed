"""Names of a tower's tensors in safetensors and in the GGUF of a projector (mmproj). Torch-free."""

from collections.abc import Mapping

# By ours; `{}` is the number of a layer. A name of ours ends in .weight or .bias where theirs do.
HF_NAMES: Mapping[str, str] = {
    "patch": "patch_embed.proj",
    "positions": "pos_embed",
    "attn_norm": "blocks.{}.norm1",
    "qkv": "blocks.{}.attn.qkv",
    "o": "blocks.{}.attn.proj",
    "ffn_norm": "blocks.{}.norm2",
    "up": "blocks.{}.mlp.linear_fc1",
    "down": "blocks.{}.mlp.linear_fc2",
    "merger.norm": "merger.norm",
    "merger.up": "merger.linear_fc1",
    "merger.down": "merger.linear_fc2",
    "tap.norm": "deepstack_merger_list.{}.norm",  # by its place among the tapped layers
    "tap.up": "deepstack_merger_list.{}.linear_fc1",
    "tap.down": "deepstack_merger_list.{}.linear_fc2",
}
GGUF_NAMES: Mapping[str, str] = {
    "patch": "v.patch_embd",
    "positions": "v.position_embd",
    "attn_norm": "v.blk.{}.ln1",
    "qkv": "v.blk.{}.attn_qkv",
    "o": "v.blk.{}.attn_out",
    "ffn_norm": "v.blk.{}.ln2",
    "up": "v.blk.{}.ffn_up",
    "down": "v.blk.{}.ffn_down",
    "merger.norm": "v.post_ln",
    "merger.up": "mm.0",
    "merger.down": "mm.2",
    "tap.norm": "v.deepstack.{}.norm",  # by the number of the tapped layer
    "tap.up": "v.deepstack.{}.fc1",
    "tap.down": "v.deepstack.{}.fc2",
}
SECOND_FRAME = ".weight.1"  # of the patches, where a GGUF has the two frames of a film apart
HF_PREFIXES = ("model.visual.", "visual.")
EARS = ("a.", "mm.a.")  # tensors of a projector that hears, too; an image does without
