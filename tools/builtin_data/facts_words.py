# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What localrun's model can explain about how a language model is made and what it is asked with."""

from __future__ import annotations

from tools.builtin_data.topic import Topic

TOPICS = (
    Topic(
        key="token",
        names=("a token", "tokens", "token", "tokens in an llm", "a token in an llm"),
        patterns=(
            "how [long|big] is a token?",
            "how many [words|letters|characters] is a token?",
            "is a token a word?",
            "what are tokens [made of|]?",
            "how many tokens [is|are|has|have] [a word|a page|1000 words|500 words|a book|a sentence]?",
            "what counts as [a|one] token?",
            "how many tokens [is|are|make|do] [100|200|500|1000|2000|10000] words[ have|]?",
            "[100|500|1000|2000] words [are|is] how many tokens?",
            "how many words are [100|1000|4096|8192] tokens?",
            "how many tokens [is|are|has] [a|one|half a] [page|book|letter|paragraph|line][ of text|]?",
        ),
        pairs=(("[a |]token", "[a |]word"),),
        answer=(
            'A token is a piece of text that a model reads or writes in one step: a word, part of a word, or a sign. In English, one token is about three quarters of a word, so 1,000 words are about 1,300 tokens. `localrun tokenize "Hello there"` shows the ids.',
        ),
        short=("A token is the piece of text, often a word or part of one, that a model handles in one step.",),
        simple=("Tokens are the building bricks of text: short words are one brick, long words are several.",),
        weight=2.0,
    ),
    Topic(
        key="tokenizer",
        names=(
            "a tokenizer",
            "the tokenizer",
            "tokenizer",
            "tokenization",
            "bpe",
            "byte[-| ]pair encoding",
            "localrun tokenize",
            "a vocabulary",
            "the vocabulary",
            "bpe",
            "BPE",
            "byte pair merges",
        ),
        tasks=(
            "[count|see|show] [the |my |][tokens|token ids|number of tokens] [of|in] [a text|my text|a file|a prompt]",
            "tokenize [a text|my prompt]",
        ),
        patterns=("how can i see how [text|my text|a prompt] is [tokenized|split into tokens]?",),
        answer=(
            'A tokenizer turns text into token ids and back. Most models use byte-pair encoding (BPE), which starts from single bytes and merges the pairs that occur most often. `localrun tokenize "Hello there"` prints the ids.',
        ),
        weight=1.2,
    ),
    Topic(
        key="llm",
        names=(
            "an LLM",
            "LLMs",
            "a language model",
            "a large language model",
            "language models",
            "llm",
            "a chatbot",
            "a local llm",
            "a local model",
            "a model",
        ),
        patterns=(
            "how do [llms|language models|models] work?",
            "how [does|do] [a language model|an llm|llms] [learn|think]?",
            "how are [models|llms|language models] trained?",
        ),
        answer=(
            "A language model is a network that predicts the next token of a text. Trained on a lot of text, it can write, answer and summarise by predicting one token after another. Large ones know a lot; I am a very small one.",
        ),
        short=("A language model predicts the next token of a text, over and over.",),
        more=(
            "It has two parts in practice: the weights, which are learnt numbers in a file, and a program such as localrun that runs them. Everything the model knows is in the weights; everything it remembers of a chat is in the KV cache.",
        ),
        simple=("It is a program that is very good at guessing the next word.",),
    ),
    Topic(
        key="base_model",
        names=(
            "a base model",
            "an instruct model",
            "a chat model",
            "the instruct in a model's name",
            "instruction tuning",
            "a -it model",
        ),
        pairs=(
            ("[a |]base model", "[an |]instruct model"),
            ("base", "instruct"),
            ("instruct", "chat models"),
            ("instruct", "thinking models"),
        ),
        answer=(
            "A base model only continues text; an instruct model was trained further to answer questions and follow instructions. For chatting take an instruct model, often marked -it, -instruct or -chat.",
        ),
        weight=1.2,
    ),
    Topic(
        key="inference",
        names=("inference", "local inference", "inference in ai", "running a model", "llm inference"),
        pairs=(("inference", "training"), ("training", "inference")),
        answer=(
            "Inference means running a trained model to get an answer, as opposed to training it. localrun does inference on your own machine, in two phases: prefill reads the prompt, decode writes the answer.",
        ),
    ),
    Topic(
        key="training",
        names=("fine-tuning", "finetuning", "LoRA", "fine tuning", "a lora adapter", "training a model", "qlora"),
        tasks=(
            "[train|fine-tune|finetune|fine tune] [a model|my own model|you|the model|qwen|llama][ with localrun| on my data|]",
            "teach [you|the model] [something|new facts|my documents]",
        ),
        patterns=(
            "does localrun [do|support|have] [lora|training|fine-tuning|finetuning]?",
            "does localrun [do|support] [lora|qlora|training]?",
            "can [localrun|it] [train|fine-tune] [models|a model]?",
        ),
        answer=(
            "localrun runs models but does not train them. Fine-tuning means to go on training a model with your own examples; LoRA trains only a few small extra matrices. You need another program for that, and can load its result here as GGUF or safetensors.",
        ),
        weight=1.3,
    ),
    Topic(
        key="rag",
        names=(
            "RAG",
            "retrieval augmented generation",
            "retrieval-augmented generation",
            "chatting with [my |]documents",
            "a vector database",
        ),
        tasks=("chat with my [documents|files|pdfs]", "[search|ask] my documents"),
        patterns=("can i chat with [my|a] [pdfs|documents|folder of pdfs|pdfs folder|notes|document collection]?",),
        answer=(
            "RAG (retrieval-augmented generation) looks up pieces of your documents that fit the question and puts them into the prompt. localrun has no search of documents; it takes the text of whole files: `/attach notes.txt` in a chat.",
        ),
        weight=1.3,
    ),
    Topic(
        key="vision",
        names=("vision models", "multimodal models", "image input"),
        tasks=(
            "[show|send|give|attach] [you|the model|it] [a picture|an image|a photo|pictures|images]",
            "upload [an image|a picture|a photo]",
        ),
        patterns=(
            "can [it|localrun|the model|a model] [see|look at|read|understand|describe] [pictures|images|photos|an image]?",
            "does localrun [support|do|understand] [images|vision|audio|speech|voice]?",
        ),
        answer=(
            "localrun works with text only. Of models that also see or hear, it runs the language model; pictures and sound cannot be given to it.",
        ),
        weight=1.2,
    ),
    Topic(
        key="thinking",
        names=(
            "a reasoning model",
            "reasoning models",
            "thinking models",
            "a thinking model",
            "--think",
            "thinking mode",
            "[the |]thinking[ of a model|]",
            "--think off",
            "chain of thought",
            "the think tags",
        ),
        tasks=(
            "[turn|switch] [off the thinking|the thinking off|thinking on|thinking off|off thinking]",
            "[stop|keep] the model from thinking",
            "[show|hide|see] [the thoughts|the thinking]",
        ),
        patterns=("why does [the model|it|qwen] think so [long|much]?",),
        answer=(
            "A thinking model writes down its reasoning before it answers, which helps with hard questions and takes more tokens. `--think on` or `--think off` chooses where the model supports it, and `--show-thinking` prints the thoughts.",
        ),
        weight=1.3,
    ),
    Topic(
        key="template",
        names=(
            "a chat template",
            "chat templates",
            "the chat template",
            "chatml",
            "[control|special] tokens",
            "a jinja template",
            "a prompt format",
            "--raw",
        ),
        answer=(
            "A chat template turns a list of messages into the exact text a model was trained on, with its own control tokens for user, assistant and the end of a turn. It is stored in the model file; `--raw` leaves it out.",
        ),
        short=("A chat template turns messages into the text format a model was trained on.",),
        weight=1.4,
    ),
    Topic(
        key="system_prompt",
        names=("a system prompt", "the system prompt", "system prompts", "a system message", "--system", "/system"),
        tasks=(
            "[set|change|give|add|write|use] [a|the|my own] system [prompt|message]",
            "tell the model how to behave",
            "make the model [answer briefly|answer in german|play a role|be brief]",
        ),
        pairs=(("[a |]system prompt", "[a |]user [prompt|message]"), ("[a |]system prompt", "[a |]prompt")),
        patterns=(
            "[how|what] [do|are] system [prompts|messages] [work|for|good for|used for]?",
            "what [does|can] a system [prompt|message] [do|change|contain]?",
            "[who|where] [writes|sees|sets|reads] the system prompt?",
        ),
        answer=(
            'A system prompt comes before the chat and tells the model how to behave. Set it with `--system "Be brief."`, in a chat with `/system`, or for all chats with `localrun config system "Be brief."`. I am too small to follow most of them.',
        ),
        weight=1.8,
    ),
    Topic(
        key="prompt",
        names=("a prompt", "prompts", "the prompt", "prompt engineering"),
        answer=(
            "A prompt is the text you give a model: your question and all that stands before it. Say clearly what you want, and give an example if the form matters.",
        ),
    ),
    Topic(
        key="hallucination",
        names=("hallucination", "hallucinations", "a hallucination"),
        facts=("[models|language models|llms] [make things up|make stuff up|hallucinate|invent things]",),
        patterns=(
            "[do you|can you|do models] [hallucinate|make things up|lie|make mistakes]?",
            "can i trust [you|your answers|a language model]?",
            "are you [always |]right?",
            "why are models wrong?",
            "why do [models|language models|llms] [make things up|make stuff up|lie|hallucinate|invent facts]?",
            "can [language models|llms|models|you] [lie|be wrong|invent things]?",
        ),
        answer=(
            "A hallucination is an answer that sounds right but is made up. Every language model can be wrong, large ones too, so check what matters. I try to stay within the few things I was trained on.",
        ),
        weight=1.2,
    ),
)
