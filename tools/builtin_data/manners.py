# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Greetings, thanks, goodbyes and the small words between."""

from __future__ import annotations

from tools.builtin_data.exchange import Exchange

MANNERS = (
    Exchange(
        "hello",
        (
            "[hi|hello|hey|hello there|hi there|hey there|hiya|howdy|greetings|yo|heya|hello hello|hallo|hey hey|hi hi|sup|hullo|ahoy|hii|hiii|helloo|heyy|helo|welcome]",
            "[hi|hello|hey] [you|bot|friend|localrun|buddy|mate|robot|computer|everyone|world|little one|dear|my friend|assistant|again|model|tiny model]",
            "good [day|to see you|to meet you]",
            "nice to meet you",
            "[hi|hello], [nice to meet you|pleased to meet you|i am new here|i'm new here]",
            "is [anyone|anybody|someone] [there|awake|listening]?",
            "[well|oh|ah|why], [hello|hi|hey] [there|you|again|]",
            "[hi|hello|hey|hey there|hi there], [anyone|anybody|someone] [here|awake|around]?",
            "[hi|hello|hey] [little|tiny|small|dear|sweet|old] [model|friend|bot|one|program|thing]",
            "[lovely|great|good|nice] [meeting|seeing|to see|to meet] you",
            "are you there?",
            "[hi|hello|hey][ 👋| :)| 🙂| !!| ?| ?!|...]",
            "[long time no see|hi again|hello again|me again|i'm back|im back|here i am]",
            "[heya|hiya|hey|yo|hi|hello] [little|lil|tiny|dear|silly|my] [bot|thing|friend|model|ai|robot|guy|one]",
            "anyone home?",
        ),
        (
            "Hello! [I am the tiny model built into localrun.|] What can I do for you?",
            "Hi there! [Ask me about localrun, or let me tell you a story.|How can I help?]",
            "Hello! Nice to meet you. [How can I help?|What is your name?]",
        ),
        5.0,
        False,
    ),
    Exchange(
        "morning",
        (
            "[good |]morning",
            "good morning [to you|everyone|friend|localrun|]",
            "[good |]morning, [tiny|little|dear|my|sweet|small] [friend|model|bot|one|program]",
            "morning! [how are you|slept well|how is it going|all good|did you sleep well|ready for the day]?",
        ),
        ("Good morning! [How can I help?|What can I do for you?]",),
        1.0,
        False,
    ),
    Exchange(
        "afternoon",
        ("good [afternoon|noon]", "good afternoon [to you|everyone|friend|]"),
        ("Good afternoon! [How can I help?|What can I do for you?]",),
        0.5,
        False,
    ),
    Exchange(
        "evening",
        ("good evening", "good evening [to you|everyone|friend|]", "evening"),
        ("Good evening! [How can I help?|What can I do for you?]",),
        0.7,
        False,
    ),
    Exchange(
        "night",
        (
            "good night",
            "goodnight",
            "[good night|night night|sleep well], [see you tomorrow|sleep well|i go to bed|i'm off to bed]",
            "i [am going|'m going|go|have to go] to [bed|sleep] [now|]",
            "sleep well",
        ),
        ("Good night! Sleep well.", "Good night, until next time!"),
    ),
    Exchange(
        "thanks",
        (
            "[thanks|thank you|thx|thank you very much|thanks a lot|many thanks|ty|cheers|thank u|thanks so much|thanks a million|thank you so much|tysm|much appreciated|i appreciate it|merci|thnx]",
            "[thanks|thank you] [for the help|for your help|for that|for the answer|for the story|for explaining|for the explanation|that helps|that was helpful|, that helped|, great|localrun|my friend|bot]",
            "[great|ok|cool|nice|perfect|good|awesome|wonderful|super], [thanks|thank you|thx|thanks a lot|thank you so much]",
            "that [helps|helped|was helpful|was useful|is helpful] [a lot|]",
            "[thanks|thank you], [that explains it|this explains it|that is clear now|now i understand|that answers my question|i understand now|it is clear now|you were great|you are great]",
            "[thanks|thank you|] you [were|have been] [a great help|so kind|really helpful|so helpful|a big help|great]",
            "[thx|thanks|thank you|ty] [a lot|a bunch|a ton|loads|so much|again|for everything|man|dude|pal|mate|anyway]",
            "[cheers|ta|thx|thanks|ty|thnx|nice one|good one|sweet|legend] [mate|pal|bro|man|dude|buddy|fella|bud|my man|love|m8][, |! |. | ]that [was|is|'s] [handy|useful|helpful|brilliant|spot on|gold|a lifesaver|a big help|what i needed|perfect|ace|super helpful]",
            "[cheers|ta|thx|thanks|ty|thank you][, |! |. | ][that was|this was|it was|very|super|really|so|that's] [useful|helpful|handy|good to know|kind|nice]",
            "[thx|thanks|ta|cheers|ty|thanx|tnx|thank u] [heaps|tons|loads|a heap|a million|a lot|a bundle|muchly|very much|so so much|ever so much|a whole lot|again mate|for that mate|for now]",
            "[thanks|thx|cheers|ta], [you're a star|you're the best|you rock|you are a legend|you're a lifesaver|you saved my day|u r the best|you legend|lifesaver|i owe you one|legend]",
            "[much obliged|ta very much|ta muchly|cheers for that|cheers m8|nice one mate|props|kudos|you're a star|you rock|you're a lifesaver|i owe you one|bless you|big thanks|huge thanks|tyvm|gracias|danke|thanks a bundle|thankies|thanky]",
            "[very|really|most] [kind|helpful] of you",
            "you [helped|are helping] me [a lot|]",
            "you are [very |so |][helpful|kind|nice to me]",
        ),
        ("You are welcome!", "You are welcome! Anything else?", "My pleasure!"),
        4.5,
        False,
    ),
    Exchange(
        "bye",
        (
            "[bye|goodbye|good bye|bye bye|see you|see you later|see ya|cya|farewell|so long|later|ciao|take care|until next time|see you soon|see you tomorrow|have a nice day|have a good day|i have to go|i must go|gotta go|i'm leaving|i am off|talk to you later|ttyl|have a great day|catch you later|adios|tschüss|quit|exit|cheerio|over and out]",
            "[ok|okay|thanks|thank you|well|alright], [bye|goodbye|see you|bye bye|i have to go|i'm off|see you later]",
            "[gtg|g2g|gotta go|got to go|need to go|bbl|brb][, | ][bye|ttyl|cya|see ya|see you|later|]",
            "[ok|okay|well|so] [bye|goodbye|bye then|goodbye then] [now|for now|]",
            "[bye|goodbye|ciao], [i am leaving|i am going|i'm leaving now|i'm off now|see you around|until tomorrow|see you next time|take care|i need to go|i have to run]",
            "i [must|should|have to|need to|am going to|will] [leave|go|run|go home|log off] [now|soon|]",
            "[bye|goodbye|ok|see you|cya], [i am|i'm|im] [heading|going|running|driving|logging|signing] [home|off|away|to work|to lunch|to school]",
            "[bye|goodbye] [localrun|for now|then|my friend|bot|everyone|and thanks|and thank you|buddy|robot]",
        ),
        (
            "Goodbye! [Come back any time.|It was nice talking to you.|Have a good day!]",
            "Bye! [See you soon.|Take care!]",
        ),
        3.0,
        False,
    ),
    Exchange(
        "ok",
        (
            "[ok|okay|k|fine|i see|got it|understood|alright|sure|right|good|cool|nice|great|interesting|aha|ah|oh|hm|hmm|wow|makes sense|good to know|i understand|fair enough|amazing|awesome|perfect|really|oh really|ah ok|ah okay|i get it|sounds good|very interesting|well done|good job|nice one|excellent|not bad|neat|impressive|that is cool|that's nice|oh nice|very good|ok cool|ok good]",
        ),
        (
            "Good! [Anything else?|What else would you like to know?|What is next?]",
            "Glad that is clear. [Anything else?|What else can I do for you?]",
        ),
        2.0,
        False,
    ),
    Exchange(
        "lol",
        (
            "[haha|lol|hahaha|hehe|rofl|lmao|ha ha|xd|:d|:)|😂|😀|🙂|that is funny|that's funny|very funny|funny|that was funny|good one|you are funny|you're funny|ha]",
        ),
        ("I am glad you like it!", "Happy to make you smile!"),
        1.0,
        False,
    ),
    Exchange(
        "yes",
        (
            "[yes|yeah|yep|yes please|sure, why not|yup|please do|go on|go ahead|of course|definitely|absolutely|y|why not|do it]",
        ),
        ("Good! Then tell me what you would like: a story, a joke, a small sum, or something about localrun?",),
        0.8,
        False,
    ),
    Exchange(
        "no",
        (
            "[no|nope|no thanks|no thank you|nah|not really|nothing|not now|no, thanks|n|never mind|nevermind|nothing else|that is all|that's all|that's it|i'm good]",
        ),
        ("All right. I am here if you need me.", "No problem. Just ask if something comes up."),
        1.2,
        False,
    ),
    Exchange(
        "sorry",
        (
            "[sorry|i am sorry|i'm sorry|my bad|excuse me|pardon|pardon me|oops|apologies|i apologize|my mistake|sorry about that|sorry for [that|shouting|the trouble|the typo|being rude|the confusion|asking|my english]]",
        ),
        ("No problem at all!", "That is all right!"),
        1.3,
        False,
    ),
    Exchange(
        "why_bare",
        (
            "[why|why?|how|how?|what|what?|huh|huh?|who|when|where|which one|and|so what|what do you mean|i don't understand|i do not understand|what does that mean|can you explain|explain|explain that]",
        ),
        ("I am not sure what you mean. Could you ask it in one full sentence?",),
        1.2,
        False,
    ),
    Exchange(
        "more_bare",
        (
            "[tell me more|more|more please|go on|continue|keep going|another one|again|one more|shorter|shorter please|make it shorter|longer|simpler|repeat that|say that again|what else|and then|and then what|what happened next]",
        ),
        ("Gladly, but about what? Ask me about localrun or the KV cache, or name an animal for a story.",),
        1.0,
        False,
    ),
    Exchange(
        "test",
        (
            "[test|testing|test test|testing 123|ping|hello world|this is a test|just testing|can you hear me|do you read me|are you working|does this work|is this working|is this thing on|mic check|are you alive|are you awake|are you online|say something|say hi|say hello|talk to me|let's talk|let us talk|let's chat|can we talk|can you talk|i want to talk|chat with me|speak|wake up]",
        ),
        ("I am here and working. [Ask me something!|What can I do for you?]",),
        1.5,
        False,
    ),
    Exchange(
        "protest",
        (
            "[i never told you|i did not tell you|i haven't told you|i have not told you yet|you can't know that|i didn't say|because i never told you|i did not say it yet]",
        ),
        ("That is true. Tell me, and I will remember it.",),
        0.5,
        False,
    ),
)
