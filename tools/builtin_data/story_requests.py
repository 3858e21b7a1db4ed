# ruff: noqa: E501 - patterns and sentences stand on one line each
"""The ways people ask for a story, and what they say after one."""

from __future__ import annotations

from tools.builtin_data.grammar import words

QUALITIES = words(
    """
    little small brave young old clever lazy shy happy curious kind tiny funny sleepy hungry lonely magic big sad
    friendly proud gentle tired grumpy fat white black red golden silly blind
    """
)
REQUESTS = (
    "[tell|write|give|read|show] [me|us|me please] a [short |little |nice |funny |small |good |cute |quick |bedtime |sad |happy ||||]story [about|about|about|of|with|on] {x}",
    "[tell|write] me a [short |][tale|fairy tale|bedtime story|fable] [about|of|with] {x}",
    "a [short |little |sweet |bedtime |]story [about|with|of] {x} [please|]",
    "[can|could|would|will] [you|u] [please |][tell|write|give|make up|invent] [me |us |]a [short |]story [about|with] {x}?",
    "[write|tell|invent|compose|create|generate|make|make up|think of|come up with|imagine] a [short |little |nice |][story|tale] [about|with|of] {x}",
    "story [about|with|of|on] {x}",
    "[i want|i'd like|i would like|i wanna hear|i need|i'd love|i would love|i feel like] [to hear |to read ||]a [short |little |bedtime |][story|tale] [about|with] {x}",
    "tell me about {x} in a story",
    "a [story|tale] [starring|in which the hero is|where the main character is|that has|featuring|where the hero is] {x}",
    "[tell|write] me a [story|tale] [starring|in which there is|where there is|that is about|featuring] {x}",
    "[do you have|do you know|have you got|may i hear|can i have|can i hear|could i get|could i hear] a [short |]story [about|with] {x}?",
    "let the story be about {x}",
    "story time[: |! make it about |, about |. ]{x}",
    "[tell|read] my [daughter|son|kids|child|little girl|baby|grandson|sister] a [bedtime |]story about {x}",
    "once upon a time there was {x}",
    "[how about|let's hear|now|and now|please|give us] a story about {x}",
    "tell me a story with {x} in it",
    "story: {x}",
    "[my child|my son|my daughter] wants [a story|to hear a story] about {x}",
    "[tell|write] something about {x}[, a story| as a story|, like a story]",
    "i would [enjoy|like] [reading|hearing] a story about {x}",
)
WORDLESS = (
    "[tell|write|read|give] [me|us] something [nice |sweet |funny |new |lovely |]about {x}",
    "[can you |please |]make something up about {x}",
    "something [sweet |nice |short |for bedtime |for the kids |for my daughter |]about {x}[ please|]",
    "[i feel like|i am in the mood for|let's have|how about] something [to read |nice |]about {x}",
    "[i want|i need|we want|i would like|i wish] [to hear|to read|] something [nice |short |sweet |]about {x}",
    "[have you got|do you have|do you know|is there] [something|anything] [nice |]about {x}?",
    "[entertain|amuse|surprise] me with {x}",
    "the [adventures|adventure|tale] of {x}",
    "what could happen to {x}?",
    "[my kids want|my son wants|my little one wants] to hear about {x}",
)
ANY_REQUEST = (
    "[tell|write|give|read] me a [short |little |nice |funny |bedtime ||]story",
    "[tell|write|give|read] [me|us] a [scary|love|ghost|adventure|sad|happy|christmas|silly|fantasy|children's|good night|new|random|beautiful|sweet] story",
    "[a|one] [scary|love|ghost|adventure|sad|happy|silly|funny|short|fantasy] story[ please|]",
    "story[ about anything| for my kids| for kids| for a child| with a happy end|, any| time please]",
    "[i can't sleep|i cannot sleep|put me to sleep][, | - |. ][tell me a story|a story please|read me a story]",
    "a story[ please|]",
    "[can|could|will] you [tell|write|read] [me |]a [short |bedtime |]story?",
    "[i want|i'd like|i need] [to hear |]a story",
    "tell [a|us a] [story|tale]",
    "[story time|story please|a bedtime story|bedtime story|story]",
    "make up a story",
    "do you know [a|any] [story|stories|tales]?",
    "write a story",
    "[tell me|write] a[n animal story| story about an animal| story about any animal| story about anything]",
    "let me hear a story",
    "write something creative",
    "once upon a time",
    "tell me a story [about whatever you like|you like|of your choice]",
)
IN_PLACE = (
    " who lives in {p}",
    " in {p}",
    " in {p}",
    " living in {p}",
    " at {p}",
    " from {p}",
    " on {p}",
    " that lives near {p}",
)
WHERE_REQUESTS = (
    "[tell me |write |make up |invent |give me |]a [short |bedtime |][story|tale] [where|in which] {x}",
    "[could|can|would] you [make up|write|tell me|invent] a [story|tale] [where|in which] {x}?",
    "i [want|need|would like] a [story|tale] [where|in which] {x}",
)
LIVING = (
    " lives in {p}",
    " lives on {p}",
    " gets lost in {p}",
    " works in {p}",
    " wakes up in {p}",
    " travels to {p}",
    " goes to {p}",
)
USER_PLACES = (
    "a castle",
    "the desert",
    "a big city",
    "the jungle",
    "space",
    "the moon",
    "the mountains",
    "a cave",
    "a school",
    "the woods",
    "a farm",
    "an island",
    "a library",
    "the kitchen",
    "a lighthouse",
    "a zoo",
    "the sea",
    "the forest",
)
THEMES = words(
    "friendship love courage winter hope kindness christmas summer music rain dreams patience luck honesty family"
)
AGAIN = (
    "[another|another one|one more|another story|again|a different one|a new one|more|tell me another|tell me another one|next|one more please|another please|do you have another one|tell me another story|more stories|encore|a different story|got another|one more story|something else]",
)
NEXT_KIND = (
    "[now |and |and now |ok now ]one [about|with] {x}",
    "[now|and now|ok, now] about {x}",
    "[what|how|and what] about {x}?",
    "and about {x}?",
    "the same [with|but with|about|but about|story with|again with] {x}",
    "[same|same story] but [about|with] {x}",
    "now {x}",
    "[another one|another story|another] [about|with] {x}",
    "can you do one [about|with] {x}?",
    "make it [about |]{x} [instead|]",
    "now [the same|a story] about {x}",
)
NEXT_HERO = (
    "[change|make] the name [to |]{x}",
    "[call|name] [it|him|her|the hero] {x} [instead|]",
    "the same [story |]but the hero is [called|named] {x}",
    "now with [the name |]{x} as the [hero|main character]",
)
SHORTER = (
    "[shorter|make it shorter|shorter please|a shorter one|a shorter one please|shorter version|too long|in one sentence|summarize it|summarize|sum it up|that was too long|in short|a summary please|tl;dr|tldr|the short version|can you make it shorter|can you say that in one sentence|give me a summary|briefly please]",
)
ONE_LINE_REQUESTS = (
    "[tell me |write |]a [one-sentence|one sentence|very short|two sentence|two-sentence|tiny] story [about|with] {x}",
    "tell me a story about {x} in [one|two] sentence[s|]",
    "a story about {x}, [very short|one sentence only|just one sentence|in two sentences]",
)
CONTINUE = (
    "[go on|continue|and then|what happened next|what happens next|then what|and then what|what happened then|and after that|keep going|how does it go on|is that the end|longer|a longer one|make it longer|tell me more|what comes next|and|and what happened then]",
)
WHO_IS = (
    "who is {n}?",
    "who's {n}?",
    "and who is {n}?",
    "who was {n} [again|]?",
    "what is {n}?",
    "what [animal|kind of animal|creature] is {n}?",
    "tell me who {n} is",
)
WHAT_NAME = (
    "what [is|was] the [{a}|hero|animal|{a}|main character] called?",
    "what[ is|'s| was] the name of the [{a}|hero|{a}|animal|main character]?",
    "what [is|was] [its|his|her|the {a}'s|the hero's] name?",
    "how [is|was] the {a} called?",
    "who is the [hero|story about|main character]?",
    "who was the story about?",
    "what's the {a}'s name?",
)
WHO_FRIEND = (
    "who did [{n}|the {a}|it|he|she] meet?",
    "who [is|was] the [friend|other one|second one|other animal]?",
    "[which|what] other animal [was|is] [in it|in the story|there]?",
    "who was the other [animal|character]?",
)
WHERE = (
    "where [does|did] [it|the story|that|this] [happen|take place|play]?",
    "where [does|did] [{n}|the {a}|it] live?",
    "where was [that|it|the {a}|{n}]?",
)
MORAL = (
    "what[ is|'s|s] the [moral|point|lesson|message] [of the story|of that|]?",
    "[and the|the] moral?",
    "what [do|can|did] [i|we] learn [from that|from it|from the story|]?",
    "what does [the story|it|that] [mean|teach|teach us]?",
)
LIKED = (
    "[nice|i like it|i liked that|lovely|good story|great story|what a nice story|cute|that was lovely|beautiful|nice story|wow|so sweet|i love it|aww|nice one]",
)
