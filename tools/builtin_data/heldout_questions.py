"""Held-out questions about localrun and language models."""

LINES = {
    "second_token": """
        Why is the 2nd token faster than the 1st one? => prefill/prompt & cache
        why's the first token so damn slow => prefill/prompt
        How come it takes forever until the first word shows up? => prefill/prompt
        why is there such a long pause before you begin to answer? => prefill/prompt
        What is the reason the first token takes longer than the second? => prefill/prompt
        After the first token everything is quick. Why? => prefill/prompt
        Explain to me why the second token arrives faster. => prefill/prompt
        why does the initial token need more time? => prefill/prompt
        wy is the secnd token fastr then the frist => prefill/prompt
        Tell me why tokens after the first come so quickly => prefill/prompt
    """,
    "kv_cache": """
        What is a KV cache? | Can you give me more detail? => KV/cache
        could you tell me what a kv cache is used for => key
        What's that KV cache thing? => key
        I keep reading about the kv cache, what is it? => key
        how would one define the key-value cache => key
        Explain the KV-Cache in one sentence. => key
        Why do LLMs need a KV cache? => key
        what exactly gets stored in the KV cache? => key
    """,
    "download": """
        How can I get a bigger model onto my machine? => localrun pull
        How do I go about downloading a model? => localrun pull
        i want to install another model => localrun pull
        what's the command for getting a new model => localrun pull
        Where could I find more models to download? => localrun pull
        how to dowload a model => localrun pull
        tell me how to download models => localrun pull
    """,
    "concepts": """
        In the context of LLMs, what is quantization? => bits
        What's meant by quantisation? => bits
        what does the model do in the prefill phase? => prompt
        Could you explain what decoding means here? => one token/token at a time
        what is a GGUF file good for? => file
        Tell me what tokens are => piece
        what does temperature do when sampling? => next token/chance/random
        What is the context window of a model? => tokens
        So what does TTFT measure? => first token
        inter token latency, what does it measure => between/one token and the next
        difference between prefill & decode? => prefill & decode
        what is this localrun program for? => machine/computer
        What does localrun do, exactly? => machine/computer
        is my data sent to the internet? => machine
        will a 7b model fit on my laptop? => localrun fit
        how would I start chatting with one of the models => localrun
        Can localrun run without an internet connection? => machine
        Do I need an expensive GPU for this? => CPU
        which model would you recommend to me? => localrun pull
        how can I delete a model again? => localrun rm
    """,
}
