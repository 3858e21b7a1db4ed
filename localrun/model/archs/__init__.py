"""The table of architectures: a new one is one small file and one row here. Torch-free."""

from localrun.base.errors import ModelFileError
from localrun.base.sanitize import clean
from localrun.formats.helper_files import DRAFT, declared_helper
from localrun.formats.source import TensorSource
from localrun.model.archs.apertus import Apertus
from localrun.model.archs.base import Arch
from localrun.model.archs.deepseek import DeepSeekV2, DeepSeekV3
from localrun.model.archs.dspark import DSpark
from localrun.model.archs.gemma import Gemma
from localrun.model.archs.gemma2 import Gemma2
from localrun.model.archs.gemma3 import Gemma3
from localrun.model.archs.gemma4 import Gemma4
from localrun.model.archs.gemma4_assistant import Gemma4Assistant
from localrun.model.archs.glm4_moe_lite import Glm4MoeLite
from localrun.model.archs.gpt_oss import GptOss
from localrun.model.archs.granite import Granite
from localrun.model.archs.granite_hybrid import GraniteHybrid
from localrun.model.archs.granite_moe import GraniteMoe
from localrun.model.archs.hf_classes import architecture_of
from localrun.model.archs.lfm2 import Lfm2, Lfm2Moe
from localrun.model.archs.llama import Llama
from localrun.model.archs.mistral import Mistral
from localrun.model.archs.mixtral import Mixtral
from localrun.model.archs.muse_glimmer import MuseGlimmer
from localrun.model.archs.nemotron_h import NemotronH
from localrun.model.archs.olmo2 import Olmo2
from localrun.model.archs.phi3 import Phi3
from localrun.model.archs.qwen2 import Qwen2
from localrun.model.archs.qwen2_moe import Qwen2Moe
from localrun.model.archs.qwen3 import Qwen3
from localrun.model.archs.qwen3_5 import Qwen35, Qwen35Moe
from localrun.model.archs.qwen3_moe import Qwen3Moe, Qwen3VLMoe
from localrun.model.archs.qwen3_next import Qwen3Next
from localrun.model.archs.smollm3 import SmolLM3

ARCHS: tuple[Arch, ...] = (
    Llama(),
    Mistral(),
    Qwen2(),
    Qwen3(),
    Gemma(),
    Gemma2(),
    Gemma3(),
    Gemma4(),
    Phi3(),
    Olmo2(),
    Granite(),
    GraniteMoe(),
    GraniteHybrid(),
    NemotronH(),
    SmolLM3(),
    Apertus(),
    MuseGlimmer(),
    Qwen2Moe(),
    Qwen3Moe(),
    Qwen3VLMoe(),
    Qwen35(),
    Qwen35Moe(),
    Qwen3Next(),
    Mixtral(),
    Lfm2(),
    Lfm2Moe(),
    GptOss(),
    DeepSeekV2(),
    DeepSeekV3(),
    Glm4MoeLite(),
)

ASSISTANT, DSPARK = Gemma4Assistant(), DSpark()  # draft for one of these

NAME_BODY = "name the model that it belongs to"
_LAYERS = ".block_count"  # after the architecture
_OTHER_FILE = "try another conversion of the model"


def arch_of(source: TensorSource) -> Arch:
    """The architecture that a file or folder declares. Raises ModelFileError (UNSUPPORTED) for an unknown one."""
    if source.format == "gguf":
        if helper := declared_helper(source.metadata):
            raise ModelFileError("UNSUPPORTED", f"this is {helper}, not a model", path=str(source.path), hint=NAME_BODY)
        names: list[object] = [_declared(source)]
        found = next((arch for arch in ARCHS if names[0] in arch.gguf), None)
    else:
        declared = source.metadata.get("architectures") or source.metadata.get("model_type")
        names = declared if isinstance(declared, list) else [declared]
        if ASSISTANT.matches(source) or DSPARK.matches(source):
            raise ModelFileError("UNSUPPORTED", f"this is {DRAFT}, not a model", path=str(source.path), hint=NAME_BODY)
        meant = [architecture_of(source.metadata), *names]
        found = next((arch for arch in ARCHS if any(name in arch.hf for name in meant)), None)
    if found is None:
        known = ", ".join(arch.name for arch in ARCHS)
        shown = clean(", ".join(str(name) for name in names))
        raise ModelFileError(
            "UNSUPPORTED",
            f"architecture {shown!r} is not supported",
            path=str(source.metadata.path),
            hint=f"supported: {known}",
        )
    return found


def _declared(source: TensorSource) -> str:
    """The architecture that a GGUF declares. Raises ModelFileError where it declares none, or not as text."""
    name = source.metadata.get("general.architecture")
    if isinstance(name, str) and name:
        others = [key.removesuffix(_LAYERS) for key in source.metadata if key.endswith(_LAYERS) and key.count(".") == 1]
        if others and name not in others:
            told = f"general.architecture says {clean(name)!r}, but its keys are those of {clean(others[0])!r}"
            raise ModelFileError("UNSUPPORTED", told, path=str(source.metadata.path), hint=_OTHER_FILE)
        return name
    code, what = ("MISSING_KEY", "is missing") if name in (None, "") else ("BAD_TYPE", "has to be a text")
    raise ModelFileError(code, f"general.architecture {what}", path=str(source.metadata.path), hint=_OTHER_FILE)
