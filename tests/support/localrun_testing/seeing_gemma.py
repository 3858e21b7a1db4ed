"""Tiny random models of Gemma 4 that see, as transformers has them; their towers give the rows of images."""

import copy
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from localrun.engine.images import ImageSource, PromptImages, RequestImages
from localrun.ops.image_rows import EncodeProgress, ImageRows, ImageSpan
from localrun.ops.interface import CancelFlag
from localrun_testing.gguf_convert import prepare, write
from localrun_testing.tiny_gemma_towers import write_gemma_embedder, write_gemma_projector
from localrun_testing.tiny_models import TINY_MODELS, Config, randomise, save_tokenizer, transformers

IMAGE, START, END = 290, 291, 292  # ids of the placeholder, and of the marks around rows
MARKS = {IMAGE: "<|image|>", START: "<|image>", END: "<image|>"}
TEMPLATE = (
    "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}"
    "{% if part.type == 'image' %}<|image|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}\n{% endfor %}"
)
POOL = 3  # patches a side that become one row

_TOWER: Config = {
    "model_type": "gemma4_vision",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "patch_size": 4,
    "pooling_kernel_size": POOL,
    "position_embedding_size": 1024,
}
_EMBEDDER: Config = {
    "model_type": "gemma4_unified_vision",
    "patch_size": 4,
    "pooling_kernel_size": POOL,
    "mm_embed_dim": 48,
    "mm_posemb_size": 300,
    "output_proj_dims": 48,
}
_LONG = {"max_position_embeddings": 1024}
_BOTH_WAYS = {"use_bidirectional_attention": "vision", **_LONG}
SEEING_GEMMA: dict[str, tuple[str, Config, Config]] = {  # recipe of the text side, changes of it, tower
    "causal": ("gemma4-e2b", _LONG, {**_TOWER, "use_clipped_linears": True}),
    "both-ways": ("gemma4", _BOTH_WAYS, {**_TOWER, "standardize": True}),
    "both-ways-moe": ("gemma4-moe", _BOTH_WAYS, _TOWER),
    "unified": ("gemma4-unified", _BOTH_WAYS, _EMBEDDER),
}
# Those that llama.cpp computes alike: it knows the causal models by their hidden size, and in the others rows of an
# image see each other in full layers, too, which matters to nothing where that is the last one.
AS_LLAMA_CPP: dict[str, tuple[str, Config, Config]] = {
    "causal-1536": ("gemma4-e2b", {"hidden_size": 1536}, {**_TOWER, "use_clipped_linears": True}),
    "both-ways-last": ("gemma4", {**_BOTH_WAYS, "num_hidden_layers": 3}, {**_TOWER, "standardize": True}),
}


def build_seeing_gemma(name: str) -> Any:
    """The fp32 model of a recipe, always the same weights, attention computed eagerly."""
    text, more, tower = (SEEING_GEMMA | AS_LLAMA_CPP)[name]
    settings = {**copy.deepcopy(TINY_MODELS[text].config), **more}
    kind = tower["model_type"].removesuffix("_vision")
    config = transformers.AutoConfig.for_model(
        kind,
        text_config={**settings, "model_type": f"{kind}_text", "pad_token_id": 0},
        vision_config=dict(tower),
        audio_config=None,
        image_token_id=IMAGE,
        boi_token_id=START,
        eoi_token_id=END,
        video_token_id=293,
        audio_token_id=294,
        tie_word_embeddings=settings["tie_word_embeddings"],
    )
    model = transformers.AutoModelForImageTextToText.from_config(
        config, attn_implementation="eager", dtype=torch.float32
    )
    randomise(model, seed=zlib.crc32(name.encode()))
    for key, buffer in model.named_buffers():
        if key.endswith(("_min", "_max")):
            buffer.fill_(-1.5 if key.endswith("min") else 1.5)
        elif key.endswith(("std_bias", "std_scale")):
            buffer.copy_(torch.linspace(0.5, 1.5, buffer.numel()))
    return model.eval()


def save_seeing_gemma(name: str, folder: Path, budget: int = 70) -> Path:
    """Write a recipe as a safetensors folder, with a tokenizer that has its marks, a template and its size rule, by
    which an image takes at most `budget` rows."""
    model = build_seeing_gemma(name)
    model.save_pretrained(folder)
    save_tokenizer(folder, model.config.text_config.vocab_size)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    for token in tokenizer["added_tokens"]:
        if token["id"] in MARKS:
            token |= {"content": MARKS[token["id"]], "special": True}
    path.write_text(json.dumps(tokenizer))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    settings = {"image_processor_type": "Gemma4ImageProcessor", "patch_size": 4, "max_soft_tokens": budget}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder


def save_seeing_gemma_gguf(name: str, checkpoint: Path, folder: Path) -> Path:
    """Convert a checkpoint of `save_seeing_gemma` as llama.cpp does: `model.gguf`, which is returned, and its
    projector."""
    writer = prepare(checkpoint, folder / "model.gguf")
    writer.add_chat_template((checkpoint / "chat_template.jinja").read_text())
    write(writer)
    model = build_seeing_gemma(name)
    if name == "unified":
        write_gemma_embedder(folder / "mmproj-model.gguf", model.model.embed_vision, model.config.vision_config)
        return folder / "model.gguf"
    parts = {"vision_tower": model.model.vision_tower, "embed_vision": model.model.embed_vision}
    state = {f"{part}.{key}": one for part, module in parts.items() for key, one in module.state_dict().items()}
    shape, out_size = model.config.vision_config.to_dict(), model.config.text_config.hidden_size
    write_gemma_projector(folder / "mmproj-model.gguf", state, shape, out_size)
    return folder / "model.gguf"


def padded(patches: Sequence[np.ndarray], grids: Sequence[tuple[int, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Patches of several images as transformers takes them, and their places: those beside an image are -1."""
    most = max(map(len, patches))
    pixels = np.zeros((len(patches), most, patches[0].shape[1]), np.float32)
    places = np.full((len(patches), most, 2), -1, np.int64)
    for image, (one, (lines, columns)) in enumerate(zip(patches, grids, strict=True)):
        line, column = np.divmod(np.arange(lines * columns), columns)
        pixels[image, : len(one)] = one
        places[image, : len(one)] = np.stack([column, line], axis=1)
    return torch.from_numpy(pixels), torch.from_numpy(places)


class GemmaImages:
    """Random images of given grids of rows: pixels for transformers, and the rows that its tower makes of them."""

    n_added = 0

    def __init__(self, model: Any, grids: Sequence[tuple[int, int]], seed: int = 0) -> None:
        self.model = model
        random = np.random.default_rng(seed)
        vision = model.config.vision_config
        side = getattr(vision, "model_patch_size", vision.patch_size)  # of what is read as one: of a tower the patch
        pool = POOL if side == vision.patch_size else 1
        patch_grids = [(pool * lines, pool * columns) for lines, columns in grids]
        n_values = 3 * side**2
        patches = [random.random((lines * columns, n_values), np.float32) for lines, columns in patch_grids]
        self.pixels, self.places = padded(patches, patch_grids)
        self.sees_itself = model.config.text_config.use_bidirectional_attention == "vision"
        with torch.no_grad():
            found = model.model.get_image_features(self.pixels, self.places, return_dict=True).pooler_output
        self.rows = [ImageRows(rows.numpy()) for rows in found]

    def sources(self) -> list[ImageSource]:
        """Their digests are their places, from 1 on."""
        return [
            ImageSource(ImageSpan(bytes([place] * 16), len(one.rows), None, self.sees_itself), self.encoded(one))
            for place, one in enumerate(self.rows, 1)
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
        """What transformers computes of a text with all images in it: fp32 [n_tokens, vocab_size].

        Masks are those that `generate` makes; without them the unified model sees both ways in full layers, too.
        """
        ids = torch.tensor([token_ids])
        kinds = (ids == IMAGE).int()
        masks = self.model.create_masks_for_generate(
            config=self.model.config,
            inputs_embeds=self.model.get_input_embeddings()(ids),
            attention_mask=None,
            past_key_values=None,
            position_ids=torch.arange(len(token_ids))[None],
            mm_token_type_ids=kinds,
        )
        with torch.no_grad():
            logits: torch.Tensor = self.model(
                input_ids=ids,
                attention_mask=masks,
                pixel_values=self.pixels,
                image_position_ids=self.places,
                mm_token_type_ids=kinds,
                use_cache=False,
            ).logits[0]
        return logits
