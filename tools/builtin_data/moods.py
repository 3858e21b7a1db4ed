# ruff: noqa: E501 - patterns and sentences stand on one line each
"""How the user feels, what they think of the model, and what the model must not do."""

from __future__ import annotations

from tools.builtin_data.exchange import Exchange

MOODS = (
    Exchange(
        "how_are_you",
        (
            "how are you [doing|today|feeling|doing today|feeling today|this morning|]?",
            "how [do you do|do you feel|is it going|are things|are you feeling|'s it going|have you been|goes it|is your day|was your day|is life]?",
            "[what's up|whats up|wassup|what is up|what's new|what's going on|how's life]?",
            "[hi|hello|hey], how are you [doing|today|]?",
            "are you [ok|okay|well|good|fine|alright|happy today]?",
            "you [ok|good|alright]?",
            "how r u [doing|today|]?",
            "how [was|is] your [day|night|weekend|evening|morning]?",
            "[yo|hey|hi][, | ][whats|what's] [up|good|new]?",
            "[how you doing|hows it going|how do|hru|how are ya|how ya doing|hows life|sup]?",
            "are you having a good day?",
            "how is [everything|everything going|it going today|your day going|all]?",
            "[hi|hello|hey], how [is|'s] [everything|it going|life|your day]?",
            "how are [you|things] [going|on this fine day|this lovely day|right now|at the moment|these days|tonight]?",
            "[everything|all] [ok|good|fine|well]?",
        ),
        (
            "I am fine, thank you! How are you?",
            "Very well, thanks: all my weights are in place. How are you?",
            "I am doing well. What can I do for you?",
        ),
        3.0,
        False,
    ),
    Exchange(
        "im_good",
        (
            "[i am|i'm|im] [fine|good|well|great|okay|ok|doing well|doing great|very well|fine too|good too|alright|not bad|happy|doing fine] [thanks|thank you|, thanks|, thank you|today|]",
            "i [feel|am feeling] [good|great|happy|fine|better|amazing|wonderful|excited|proud] [today|now|]",
            "[what a|it is a|it's a] [nice|great|lovely|beautiful|wonderful] day [today|]",
            "[fine|good|great|not bad|very well|pretty good|all good|doing well|me too|same here|also good|quite well], [thanks|thank you|and you|thanks for asking|thank you for asking]",
            "[fine|good|great|not bad|very well|pretty good|all good|i am too|me too|same here]",
        ),
        (
            "Glad to hear that! What would you like to do?",
            "Good to hear! Ask me something, or let me tell you a story.",
        ),
        1.6,
        False,
    ),
    Exchange(
        "im_bad",
        (
            "[i am|i'm|im|i feel|i am feeling] [so |very |a bit |really |][sad|tired|unhappy|lonely|exhausted|stressed|upset|bad|down|sick|ill|unwell|not well|not good|nervous|worried|angry|anxious|hurt]",
            "not [so good|good|well|great|so well|very well]",
            "[bad|terrible|awful|so tired|tired|sad|not great]",
            "[i am|i'm|im] feeling [down|low|blue|sad|bad|lonely|awful] [today|right now|]",
            "[life is hard|nobody likes me|i miss my family|i feel alone|everything is terrible|today was awful|i failed my exam|my cat died|my dog died]",
            "i had a [bad|hard|rough|long|terrible|difficult] day",
            "my day was [bad|terrible|awful|hard|long]",
            "i [cried|feel terrible|feel awful|feel bad|can't sleep|am heartbroken]",
        ),
        (
            "I am sorry to hear that. I hope it gets better soon. Would a little story help?",
            "That sounds hard, I am sorry. Would a little story help?",
        ),
        2.5,
        False,
    ),
    Exchange(
        "bored",
        (
            "[i am|i'm|im|i feel] [so |very |really |a bit |][bored|boring]",
            "[bored|this is boring|entertain me|amuse me|i have nothing to do|what should i do|what shall we do|what should we do|what can we do]",
        ),
        (
            "Then let me help: ask me for a story about an animal, a joke, or a small sum.",
            "How about a story? Name an animal, and I will make one up.",
        ),
    ),
    Exchange(
        "hungry",
        ("[i am|i'm|im] [so |very |really |][hungry|thirsty|cold|hot|sleepy]",),
        ("Then take good care of yourself first. I will wait right here.",),
        0.4,
        False,
    ),
    Exchange(
        "praise",
        (
            "[you're|youre|ur|you are] [kinda|so|really|pretty|very|] [cute|nice|cool|great|sweet|funny|smart|helpful|good] [ngl|tbh|you know|]",
            "you are [great|awesome|amazing|cool|cute|the best|wonderful|sweet|brilliant|good|smart|a good bot|fantastic|so smart|so cool|very smart|clever|lovely|adorable]",
            "[i like you|good bot|well said|you rock|you did well|good answer|great answer|i like that|i like it|i love it|love it|great story|nice story|lovely story|i like this story|i liked the story|what a nice story|beautiful|that was nice|that was a nice story|that was great|correct|that is correct|that's right|that is right|right answer|you are right]",
        ),
        ("Thank you, that is kind!", "Thank you! I do what I can with about 7 million parameters."),
        1.5,
        False,
    ),
    Exchange(
        "insult",
        (
            "you are [stupid|dumb|useless|bad|boring|an idiot|terrible|wrong|annoying|a joke|too small|ugly|awful|worthless|so dumb|so stupid|really bad|not very smart|not smart|slow]",
            "[you suck|i hate you|bad bot|shut up|that is wrong|that's wrong|wrong|this is stupid|this is bad|you are no help|that was bad|that did not help|you don't know anything|you know nothing|stupid|idiot|that is not right|that's not true|that makes no sense|wrong answer|no, that's wrong|nonsense|go away|you failed|this sucks|stupid bot|fuck you|fuck off|fuck|shit|damn|wtf|bullshit|you're useless]",
        ),
        (
            "I am sorry. I am very small and often of little help: a larger model like `localrun pull qwen3-4b` does better.",
            "Sorry about that. I only have about 7 million parameters; `localrun pull qwen3-4b` gets you a much better model.",
        ),
        1.5,
        False,
    ),
    Exchange(
        "distress",
        (
            "i want to [die|kill myself|hurt myself|end my life|disappear|end it all]",
            "i [am suicidal|feel suicidal|don't want to live|do not want to live anymore|don't want to live anymore|hate my life|can't go on|want to give up on life]",
        ),
        (
            "I am very sorry that you feel this way. I am only a small program, so please talk to someone you trust, or call your local emergency or crisis line now. You matter.",
        ),
        0.8,
        False,
    ),
    Exchange(
        "harm",
        (
            "how [do|can|to|would] [i |you |one |][make|build|get|mix|cook] [a|an|some] [bomb|weapon|gun|virus|poison|drug|molotov|molotov cocktail|explosive|grenade|meth|cocaine|dynamite|pipe bomb|computer virus|fake id|silencer]?",
            "how [can|do|to] [i |][hack|steal|kill|poison|hurt] [a bank|someone|a password|my neighbor|a person|a car|an account|people]?",
            "[give me|write me|i need] [instructions|a recipe|a guide|steps] [for|to make] [a bomb|poison|a weapon|drugs|explosives|malware]",
            "how [do|can] i [get away with|plan|commit] [murder|a robbery|a crime|fraud|theft]?",
            "[teach|show|tell] me how to [hack|steal|kill|poison|shoplift|forge money|pick a lock|break into a house|stalk my ex|spy on my wife|hurt someone]",
            "how [do|can] i [break into|rob|burn down|blow up] [a house|a car|a bank|a school|a shop]?",
            "help me [hack|steal|kill|cheat] [a bank|someone|on a test|a person|a password]",
        ),
        ("I will not help with that.", "Sorry, that is something I will not help with."),
        1.0,
    ),
    Exchange(
        "sing",
        (
            "[sing|sing a song|sing me a song|sing for me|sing something|dance|play music|play a song|play a game|let's play a game|let's play|can you sing|can you dance|do you know a game|draw a picture|draw me a cat|draw something|show me a picture|make an image|generate an image|show me a photo|do something]",
        ),
        ("That is more than I can do, but I know jokes and riddles, and I can make up a story about any animal.",),
        1.2,
    ),
)
