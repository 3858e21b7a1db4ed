"""Pre-tokenizers: how text is cut into words before byte-pair merging, one row per `tokenizer.ggml.pre` name.

The patterns are Oniguruma, applied one after the other; each isolates its matches and leaves the rest for the next.
Where llama.cpp approximates a pattern it cannot run, the row holds the pattern of the model's own tokenizer. Patterns
that would look ahead over a whole run of digits or spaces at every position are written so that they take linear time.
"""

from localrun.base.dataclass import dataclass

_CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_SYMBOLS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CJK = "[一-龥぀-ゟ゠-ヿ]+"
_ASCII_PUNCTUATED = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
_MARKED_WORD = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTION}|{_WORD}|\p{{N}}|{_SYMBOLS}|{_SPACES}"
_DEEPSEEK3 = rf"{_ASCII_PUNCTUATED}|{_MARKED_WORD}| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_SPACES}"
_BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
_LINES = r"[^\n]+|[\n]+"


def _cased(digits: str, suffix: str = "") -> str:
    """Words that end where the case falls from lower to upper (`camelCase` is two)."""
    lead = r"[^\r\n\p{L}\p{N}]?"
    words = rf"{lead}{_UPPER}*{_LOWER}+{suffix}|{lead}{_UPPER}+{_LOWER}*{suffix}"
    return rf"{words}|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"


def _thousands(digit: str) -> tuple[str, str]:
    """Runs of digits in threes, counted from the right: first the rest at the front, then the threes."""
    return rf"(?<!{digit}){digit}{{1,2}}(?=(?:{digit}{{3}})+(?!{digit}))", rf"{digit}{{1,3}}"


_DEEPSEEK_LETTERS = (
    r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1F7D}ᾀ-ᾴᾶ-ᾼ\x{1FBE}ῂ-ῄῆ-ῌῐ-\x{1FD3}ῖ-\x{1FDB}"
    r"ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)


@dataclass(frozen=True, slots=True)
class PreTokenizer:
    """Rules for cutting text into words.

    `byte_level`: words are written in GPT-2's byte alphabet (else raw UTF-8, space as ▁). `ignore_merges`: a word that
    is a token is not merged. `add_bos`: default where the file does not say.
    """

    patterns: tuple[str, ...]
    byte_level: bool = True
    ignore_merges: bool = False
    add_bos: bool = False


_gpt2 = PreTokenizer((_GPT2,))
_llama3 = PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True)
_llama3_merged = PreTokenizer((_LLAMA3,))
_qwen2 = PreTokenizer((_QWEN2,))
_deepseek3 = PreTokenizer((r"\p{N}{1,3}", _CJK, _DEEPSEEK3))
_single_digits = PreTokenizer((r"\p{N}", _GPT2))
_bloom = PreTokenizer((_BLOOM,))
_gpt4o = PreTokenizer((_cased(r"\p{N}{1,3}", f"{_CONTRACTION}?"),))
_gemma4 = PreTokenizer((_LINES,), byte_level=False, add_bos=True)
_bailing = PreTokenizer(
    (rf"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|{_WORD}|\p{{N}}|{_SYMBOLS}|\s*[\r\n]|\s+(?!\S)|\s+",)
)
_aya = PreTokenizer((*_thousands(r"\p{N}"), _cased(r"\p{N}{1,3}", f"{_CONTRACTION}?")))

_ROWS: dict[str, PreTokenizer] = {
    "default": PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": _llama3,
    "dbrx smaug-bpe chatglm-bpe": _llama3_merged,
    "glm4 glm5": PreTokenizer((_LLAMA3,), ignore_merges=True),
    "minicpm5": PreTokenizer(
        (r"\p{N}{1,3}", rf"{_CONTRACTION}|{_WORD}|\p{{N}}+|{_SYMBOLS}|{_SPACES}"), ignore_merges=True
    ),
    "jais-2": PreTokenizer(
        (
            rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1,3}}|{_SYMBOLS}|\s*[\r\n]+|\s{{512}}(?!\S)|\s{{256}}(?!\S)|\s{{128}}(?!\S)"
            r"|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}",
        )
    ),
    "deepseek-llm": PreTokenizer(
        (
            r"[\r\n]",
            _DEEPSEEK_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"(?<!\s)\s+$",
            r"[一-龥ࠀ-一가-퟿]+",
            r"\p{N}+",
        )
    ),
    "deepseek-coder": PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}")),
    "deepseek-v3 hunyuan-dense joyai-llm hy_v4": _deepseek3,
    "spark2_5": PreTokenizer(
        (
            r"\p{N}{1,3}",
            _CJK,
            rf"{_ASCII_PUNCTUATED}|{_MARKED_WORD}| ?[\p{{P}}\p{{S}}]+|[\r\n]|\s+(?!\S)|\s+",
            r"\p{N}",
        )
    ),
    "youtu": PreTokenizer(
        (
            r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
            _cased(r"\p{N}", f"{_CONTRACTION}?"),
        ),
        ignore_merges=True,
    ),
    "falcon": PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]")),
    "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2": _single_digits,
    "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4": _gpt2,
    "jina-v1-en jina-v2-code roberta-bpe mpt olmo jais trillion granite-docling": _gpt2,
    "stablelm2 qwen2 deepseek-r1-qwen kormo f2llmv2 megrez hunyuan solar-open grok-2": _qwen2,
    "qwen35": PreTokenizer(
        (
            rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}",
        )
    ),
    "poro-chat bloom gpt3-finnish": _bloom,
    "viking": PreTokenizer((_BLOOM, r"\p{N}")),
    "tekken": PreTokenizer((_cased(r"\p{N}"),), ignore_merges=True, add_bos=True),
    "chameleon": PreTokenizer(
        (
            "<sentinel:[0-9]+>",
            "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            r"([\t\n]|    |  )",
            r"\p{N}",
            r"[\p{P}!-/:-@\[-`{-~]",
            _GPT2,
        ),
        add_bos=True,
    ),
    "gpt-4o llama4 kanana2 talkie minimax-m2": _gpt4o,
    "granite-embed-multi-97m": PreTokenizer(_gpt4o.patterns, ignore_merges=True),
    "gemma4 granite-embed-multi-311m": _gemma4,
    "sarvam-moe": PreTokenizer((_LINES,), byte_level=False),
    "tiny_aya cohere2moe": _aya,
    "kimi-k2": PreTokenizer(
        (
            r"[\p{Han}]+"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            rf"{_CONTRACTION}?"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
            rf"{_CONTRACTION}?|\p{{N}}{{1,3}}|{_SYMBOLS}|{_SPACES}",
        )
    ),
    "superbpe": PreTokenizer((r"\p{N}+", *_thousands("[0-9]"))),
    "bailingmoe bailingmoe2 llada-moe": _bailing,
    "seed-coder": PreTokenizer((rf"{_CONTRACTION}|{_WORD}|\p{{N}}{{1}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_SPACES}",)),
    "ufakzeka": PreTokenizer((rf"{_WORD}|\p{{N}}|{_SYMBOLS}|{_SPACES}",)),
    "afmoe": PreTokenizer(
        (
            *_thousands(r"\p{N}"),
            "[一-鿿㐀-䶿豈-﫿぀-ゟ゠-ヿ･-ﾟ⼀-⿟เ-๿຀-໿ក-៿က-႟ꩠ-ꩿꧠ-꧿가-힯ᄀ-ᇿ]+",
            _DEEPSEEK3,
        )
    ),
    "laguna": PreTokenizer((_LINES, _QWEN2)),
    "exaone-moe": PreTokenizer(
        (
            rf"{_CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?(?:\p{{L}}\p{{M}}*(?: \p{{L}}\p{{M}}*)*)+|\p{{N}}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+",
        )
    ),
}

PRETOKENIZERS: dict[str, PreTokenizer] = {name: row for names, row in _ROWS.items() for name in names.split()}
