"""Tiny random models that see, as transformers has them: their towers give the rows of images."""

import copy
import json
import shutil
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers as _transformers

from localrun.engine.images import ImageSource, PromptImages, RequestImages
from localrun.ops.image_rows import EncodeProgress, ImageRows, ImageSpan
from localrun.ops.interface import CancelFlag
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.projector_gguf import write_projector
from localrun_testing.tiny_models import TINY_MODELS, Config, randomise, save_tokenizer

transformers: Any = _transformers  # its annotations are partial

IMAGE, START, END = 290, 291, 292  # ids of the placeholder, and of the marks around it
MARKS = {IMAGE: "<|image_pad|>", START: "<|vision_start|>", END: "<|vision_end|>"}
TEMPLATE = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}\n{% endfor %}"
)
MERGE = 2  # patches a side that become one row

_TOWER: Config = {
    "depth": 2,
    "hidden_size": 32,
    "num_heads": 2,
    "intermediate_size": 48,
    "patch_size": 4,
    "spatial_merge_size": MERGE,
    "temporal_patch_size": 2,
    "num_position_embeddings": 64,
    "out_hidden_size": 96,
}
SEEING: dict[str, tuple[str, str, Config]] = {  # type of the whole, recipe of its text side, tower
    "qwen3.5": ("qwen3_5", "qwen3.5", _TOWER),
    "qwen3.5-moe": ("qwen3_5_moe", "qwen3.5-moe", _TOWER),
    "qwen3-vl": ("qwen3_vl", "qwen3-vl", {**_TOWER, "deepstack_visual_indexes": [0, 1]}),
}


def build_seeing(name: str) -> Any:
    """The fp32 model of a recipe, always the same weights, attention computed eagerly."""
    model_type, text, tower = SEEING[name]
    settings = copy.deepcopy(TINY_MODELS[text].config)
    config = transformers.AutoConfig.for_model(
        model_type,
        text_config=settings,
        vision_config=dict(tower),
        image_token_id=IMAGE,
        video_token_id=293,
        vision_start_token_id=START,
        vision_end_token_id=END,
        tie_word_embeddings=settings["tie_word_embeddings"],
    )
    model = transformers.AutoModelForImageTextToText.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    )
    randomise(model, seed=zlib.crc32(name.encode()))
    return model.eval()


def save_seeing(name: str, folder: Path) -> Path:
    """Write a recipe as a safetensors folder, with a tokenizer that has its marks, a template and its size rule."""
    model = build_seeing(name)
    model.save_pretrained(folder)
    save_tokenizer(folder, TINY_MODELS[SEEING[name][1]].config["vocab_size"])
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    for token in tokenizer["added_tokens"]:
        if token["id"] in MARKS:
            token |= {"content": MARKS[token["id"]], "special": True}
    path.write_text(json.dumps(tokenizer))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    sizes = {"size": {"shortest_edge": 4 * 64, "longest_edge": 64 * 64}, "patch_size": 4, "merge_size": 2}
    colours = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "image_processor_type": "Qwen2VLImageProcessor"}
    (folder / "preprocessor_config.json").write_text(json.dumps(sizes | colours))
    return folder


def save_seeing_gguf(name: str, checkpoint: Path, folder: Path) -> Path:
    """Convert a checkpoint of `save_seeing` as llama.cpp does: `model.gguf`, which is returned, and its projector."""
    writer = prepare(checkpoint, folder / "model.gguf")
    writer.add_chat_template((checkpoint / "chat_template.jinja").read_text())
    vision = build_seeing(name).model.visual
    shape = vision.config.to_dict()
    tapped = shape.get("deepstack_visual_indexes") or ()
    if tapped:
        writer.add_uint32(f"{writer.arch}.n_deepstack_layers", len(tapped))
    write(writer)
    write_projector(folder / "mmproj-model.gguf", vision.state_dict(), shape, tapped)
    return folder / "model.gguf"


def with_usual_sizes(checkpoint: Path, folder: Path) -> Path:
    """A copy of a checkpoint that scales images as files without a size rule of their own do, with room for them."""
    copied = Path(shutil.copytree(checkpoint, folder))
    for name, change in (
        ("preprocessor_config.json", {"size": {"shortest_edge": 65_536, "longest_edge": 16_777_216}}),
        ("config.json", {"text_config": {"max_position_embeddings": 2048}}),
    ):
        values = json.loads((copied / name).read_text())
        for key, value in change.items():
            values[key] |= value
        (copied / name).write_text(json.dumps(values))
    return copied


class TinyImages:
    """Random images of given grids of rows: pixels for transformers, and the rows that its tower makes of them."""

    def __init__(self, model: Any, grids: Sequence[tuple[int, int]], seed: int = 0) -> None:
        self.model, self.grids = model, grids
        generator = torch.Generator().manual_seed(seed)
        n_patches = [MERGE**2 * lines * columns for lines, columns in grids]
        self.grid_thw = torch.tensor([[1, MERGE * lines, MERGE * columns] for lines, columns in grids])
        tower = model.config.vision_config
        size = tower.in_channels * tower.temporal_patch_size * tower.patch_size**2
        self.pixels = torch.randn(sum(n_patches), size, generator=generator)
        with torch.no_grad():
            features = model.model.get_image_features(self.pixels, self.grid_thw)
        added = [[rows.numpy() for rows in place] for place in getattr(features, "deepstack_features", None) or ()]
        self.rows = [
            ImageRows(rows.numpy(), tuple(place[number] for place in added))
            for number, rows in enumerate(features.pooler_output)
        ]
        self.n_added = len(added)

    def sources(self) -> list[ImageSource]:
        """Their digests are their places, from 1 on."""
        return [
            ImageSource(ImageSpan(bytes([place] * 16), len(rows.rows), grid), self.encoded(rows))
            for place, (grid, rows) in enumerate(zip(self.grids, self.rows, strict=True), 1)
        ]

    def encoded(self, rows: ImageRows) -> Callable[[EncodeProgress, CancelFlag], ImageRows]:
        return lambda progress, cancel: rows

    def placed(self, prompt: Sequence[int]) -> PromptImages:
        """The images of a prompt, encoded."""
        images = PromptImages(prompt, RequestImages(IMAGE, {source.span.digest: source for source in self.sources()}))
        for place in images.places:
            place.rows = self.rows[place.source.span.digest[0] - 1]
        return images

    def logits(self, token_ids: Sequence[int]) -> torch.Tensor:
        """What transformers computes of a text with all images in it: fp32 [n_tokens, vocab_size]."""
        ids = torch.tensor([token_ids])
        with torch.no_grad():
            logits: torch.Tensor = self.model(
                input_ids=ids,
                pixel_values=self.pixels,
                image_grid_thw=self.grid_thw,
                mm_token_type_ids=(ids == IMAGE).int(),
                use_cache=False,
            ).logits[0]
        return logits
