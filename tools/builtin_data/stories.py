# ruff: noqa: E501 - patterns and sentences stand on one line each
"""Short animal stories: a plot is a list of sentences, each with alternatives; `?` marks one that may be left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from tools.builtin_data import names, things
from tools.builtin_data.grammar import answer, article, ask, expand, first_of, words
from tools.builtin_data.talk import Talk

HEROES = words(
    """
    Pip Milo Luna Toby Nelly Oscar Poppy Hugo Tilly Bruno Daisy Felix Ruby Otto Hazel Max Rosie Finn Molly Barney
    Willow Jasper Penny Theo Clover Rufus Maisie Gus Ivy Benny
    """
)
PLACES = (
    "the forest",
    "the old garden",
    "the riverbank",
    "the quiet hills",
    "the green valley",
    "the edge of a village",
    "the seaside",
    "the big meadow",
    "a little island",
    "the snowy mountains",
    "the old mill",
    "a warm barn",
)

PLOTS = (
    (  # the lost thing
        "[Once upon a time|Long ago|One day], {A} named {n} lived [near|close to] {place}.",
        "[One morning|One sunny day|One windy afternoon], {n} found a [shiny key|golden button|small silver bell|blue feather|tiny map] under [a leaf|a stone|an old tree].",
        "?{n} [turned it over|looked at it from all sides|held it up to the sun] and [wondered|asked] where it came from.",
        '{f} [came by|passed by|stopped] and said, "[I think it belongs to the owl on the hill|Someone must miss it|I have seen one like it by the pond]."',
        "So the two friends [walked all day|followed the path|crossed the stream], [until they met|and at last they met] an old [owl|badger|tortoise], who [smiled with joy|could hardly believe it|laughed happily].",
        '"[You are honest and kind|What a good heart you have]," the old one said, and [gave them warm honey cakes|told them a story until the stars came out].',
        "[That night|From that day on], {n} the {a} [slept very well|knew that giving back feels better than keeping].",
    ),
    (  # fear of something
        "[There was once|Once there was] {A} called {n}, who was afraid of [the dark|thunder|deep water|the wind].",
        "[All the others|The other animals] [played outside|laughed and played], but {n} stayed [at home|in bed|under a bush].",
        "[One evening|One night], {n} heard a small voice [calling for help|crying]: it was {f}, [lost near {place}|who could not find the way home].",
        "?{n}'s [heart beat fast|knees were shaking], but [there was nobody else|there was no time to wait].",
        "The {a} [took a deep breath|counted to three] and [ran out|went out], [step by step|one step after another].",
        "[Together they found the way|Side by side they walked home], and [the fear was gone|it was not so scary after all].",
        '"[Being brave does not mean having no fear|Brave is what you do when you are afraid]," {n} said, and [smiled|was very proud].',
    ),
    (  # the big race
        "[Every year|Each spring] there was a [great race|big race] around {place}, and {n} the {a} [wanted to win|wanted to take part].",
        '"[You are too slow|You are too small|You will never make it]," the others said, but {n} [trained every morning|did not listen|only smiled].',
        "?On the day of the race the sun [shone|was bright], and everybody [came to watch|was cheering].",
        "Halfway along, {n} saw {f} [stuck in the mud|with a hurt foot|caught in a bush].",
        "The {a} stopped, [helped at once|pulled with all its strength], and [lost a lot of time|all the others ran past].",
        "{n} came last, but [everybody clapped|the crowd cheered louder than ever], because [helping a friend is the best prize|a kind heart wins more than a race].",
    ),
    (  # the winter
        "[In a cold winter|One icy winter], {A} named {n} lived [all alone|quietly] near {place}.",
        "{n} had [a warm home|a soft bed] and [plenty of nuts and berries|a big pot of soup], but nobody to share it with.",
        "[One stormy night|One snowy evening], there was a knock at the door: {f} stood outside, [cold and hungry|shivering].",
        '"Come in," said the {a}, and [made some tea|lit the fire|moved closer to the fire].',
        "?They [told stories|sang songs|played games] until the [snow stopped|sun came up].",
        "When spring came, [neither of them wanted to leave|they planted a garden together].",
        "[And {n} was never lonely again.|Since then, two cups stand on the table.]",
    ),
    (  # the star
        "{n} was [a small|a young|a curious] {a} who [looked at the stars|watched the sky] every night.",
        '"[I want to catch one|One day I will bring one home]," {n} said, and everybody [laughed|shook their heads].',
        "[So the {a} climbed|{n} climbed] the highest [hill|tree|rock] near {place}, but the stars were [still far away|as far as before].",
        "?{n} sat down and [sighed|was a little sad].",
        "Then {f} [came along|sat down too] and pointed at the [lake|pond] below: it was full of [shining stars|stars].",
        "[Together they swam among the lights|They dipped their feet into the light], and {n} [laughed with joy|had never been so happy].",
        "Sometimes what you look for is [closer than you think|right in front of you].",
    ),
    (  # the song
        "[In|Near] {place} there lived {A} named {n}, who [loved to sing|sang from morning to night].",
        "The trouble was that {n} [sang very loudly|could not hold a tune|knew only one song].",
        '"[Please be quiet|Not so loud]," the neighbours [said|begged], and so the {a} [stopped|fell silent].',
        "[Then|But one day] a thick fog came, and {f} [got lost|could not find the way home].",
        "?Nobody could see [a thing|farther than their own nose].",
        "{n} [began to sing|sang as loudly as possible], and the song led [the lost friend|everyone] safely home.",
        "[Now the whole neighbourhood sings along|Since that day, nobody complains about the song of the {a}].",
    ),
    (  # the boat
        "{n} the {a} had [a dream|a great plan]: to build a [boat|raft] and sail [around the lake|down the river|to the island].",
        "[Day after day|For a whole week], {n} collected [branches|wood|old boxes] near {place}.",
        "{f} [wanted to help|brought a rope|made a sail from a big leaf].",
        "?The first boat [sank at once|fell apart], and they [laughed about it|tried again].",
        "On the third try it [floated|held], and the two [sailed away|set off] with [a basket of apples|some bread and cheese].",
        "They saw [silver fish|wild ducks|a rainbow], and came home [tired and happy|when the moon was up].",
        '"[Tomorrow we will go farther|Where do we sail next]," said {n}[.|, already half asleep.]',
    ),
    (  # the garden
        "[Behind|Not far from] {place}, {A} named {n} planted a [tiny seed|single seed] and [waited|watered it every day].",
        '[Nothing happened|Nothing came up] for [a week|many days], and {f} said, "[Give up|That will never grow]."',
        "But the {a} [was patient|did not give up] and [told the seed a story every evening|sang to it every morning].",
        "?Then came the rain, [soft and warm|and after it the sun].",
        "One morning, a [green leaf|small green shoot] [looked out of the earth|appeared], and by summer there was a [huge sunflower|tall apple tree|great pumpkin].",
        "{n} [shared it with everyone|invited all the neighbours to a feast].",
        "Good things [take time|grow slowly], and [patience|a little love] helps.",
    ),
)
QUALITIES = words(
    """
    little small brave young old clever lazy shy happy curious kind tiny funny sleepy hungry lonely magic big sad
    friendly proud gentle
    """
)
REQUESTS = (
    "[tell|write|give|read] me a [short |little |nice |funny |small |good |cute |quick |bedtime ||||]story about {x}",
    "a [short |little |bedtime |]story about {x} [please|]",
    "[can|could|would|will] you [tell|write|give|make up] [me |us |]a [short |]story about {x}?",
    "write a [short |]story about {x}",
    "story about {x}",
    "[i want|i'd like|i would like] [to hear |to read ||]a [short |]story about {x}",
    "make up a [short |]story about {x}",
    "tell a story about {x}",
    "tell me about {x} in a story",
    "invent a story about {x}",
    "tell me a story of {x}",
    "[think of|come up with|make up|invent|imagine] a [short |little |nice |]story [about|with|of|for] {x}",
    "a [story|tale] [starring|in which the hero is|where the main character is|that has] {x}",
    "[tell|write] me a [story|tale] [starring|in which there is|where there is|that is about] {x}",
    "i [would love|'d love|love|need|would enjoy] a [short |little |]story about {x}",
    "tell us a [short |]story about {x}",
    "[write|tell] [me |us |]a [short |]tale [of|about] {x}",
    "do you have a story about {x}?",
    "a [short |sweet |bedtime |]story [with|about|for a child about|for kids about] {x}",
    "may i hear a story about {x}?",
    "let the story be about {x}",
    "story time: {x}",
    "do you know a story about {x}?",
    "a tale about {x}",
    "tell me a [tale|fairy tale|bedtime story] about {x}",
    "tell my [daughter|son|kids|child] a story about {x}",
    "once upon a time there was {x}",
    "how about a story about {x}?",
    "let's hear a story about {x}",
    "now a story about {x}",
    "and now one about {x}",
    "please write me a story with {x}",
    "tell me a story with {x} in it",
    "a story with {x}",
    "can i have a story about {x}?",
    "compose a story about {x}",
    "create a story about {x}",
    "generate a story about {x}",
    "story: {x}",
    "give me something to read about {x}: a story",
)
ANY_REQUEST = (
    "[tell|write|give|read] me a [short |little |nice |funny |bedtime ||]story",
    "a story[ please|]",
    "[can|could|will] you [tell|write|read] [me |]a [short |bedtime |]story?",
    "[i want|i'd like] [to hear |]a story",
    "tell a story",
    "story time",
    "story please",
    "make up a story",
    "do you know [a|any] [story|stories]?",
    "another story",
    "write a story",
    "tell me an animal story",
    "a story about an animal",
    "tell me a story about any animal",
    "bedtime story",
    "let me hear a story",
    "write something creative",
    "once upon a time",
)
AGAIN = (
    "[another|another one|one more|another story|again|a different one|a new one|more|tell me another|tell me another one|next|one more please|another please|do you have another one|tell me another story|more stories|encore]",
)
NEXT_ANIMAL = (
    "[now |and |and now |]one about {x}",
    "now about {x}",
    "what about {x}?",
    "and about {x}?",
    "the same with {x}",
    "same but about {x}",
    "now {x}",
    "another one about {x}",
    "can you do one about {x}?",
    "how about {x}?",
)
SHORTER = (
    "[shorter|make it shorter|shorter please|a shorter one|shorter version|too long|in one sentence|summarize it|summarize|sum it up|that was too long|in short|a summary please|tl;dr|tldr]",
)
ONE_LINE_REQUESTS = (
    "[tell me |write |]a [one-sentence|one sentence|very short|two sentence|two-sentence|tiny] story about {x}",
    "tell me a story about {x} in [one|two] sentence[s|]",
    "a story about {x}, [very short|one sentence only|just one sentence|in two sentences]",
)


@dataclass(frozen=True)
class Story:
    hero: str
    animal: str
    friend: str
    plot: tuple[str, ...]


def short_place(rng: Random) -> str:
    return first_of(rng, PLACES)


def new_story(rng: Random, animal: str, hero: str = "", friend: str = "") -> Story:
    friend = friend or first_of(rng, [name for name in things.ANIMALS[:60] if name != animal])
    return Story(hero or first_of(rng, HEROES), animal, friend, first_of(rng, PLOTS))


def told(rng: Random, story: Story, keep: float = 0.6) -> str:
    """The story as text; `keep` is the chance of each optional sentence."""
    slots = {
        "n": story.hero,
        "a": story.animal,
        "A": article(story.animal),
        "place": short_place(rng),
        "f": article(story.friend),
    }
    sentences = []
    for line in story.plot:
        if line.startswith("?"):
            if rng.random() > keep:
                continue
            line = line[1:]
        text = re.sub(r"\{(\w+)\}", lambda m: slots[m.group(1)], expand(rng, line, first_of))
        sentences.append(text[:1].upper() + text[1:])
    return " ".join(sentences)


def in_brief(rng: Random, story: Story) -> str:
    return answer(
        rng,
        (
            "{A} named {n} helped {f} in need, and the two became the best of friends.",
            "{n} the {a} had a great dream, met {f}, and together they made it come true.",
            "{A} named {n} learnt from {f} that being kind is better than being first.",
        ),
        {"A": article(story.animal), "n": story.hero, "a": story.animal, "f": article(story.friend)},
    )


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def story_turns(talk: Talk) -> None:
    """A request for a story, and sometimes what follows: another one, one about someone else, a shorter one."""
    rng = talk.rng
    story = first_story(talk)
    while rng.random() < 0.28:
        roll = rng.random()
        if roll < 0.4:
            story = new_story(rng, story.animal)
            talk.say("story", ask(rng, AGAIN), told(rng, story))
        elif roll < 0.75:
            story = new_story(rng, things.animal(rng))
            talk.say("story", ask(rng, NEXT_ANIMAL, {"x": article(story.animal)}), told(rng, story))
        else:
            talk.say("story_short", ask(rng, SHORTER), capital(in_brief(rng, story)))


def first_story(talk: Talk) -> Story:
    rng = talk.rng
    roll = rng.random()
    if roll < 0.15:
        story = new_story(rng, first_of(rng, things.ANIMALS[:80]))
        talk.say("story", ask(rng, ANY_REQUEST), told(rng, story))
        return story
    story = new_story(rng, things.animal(rng))
    subject = rng.choice(
        (
            article(story.animal),
            article(story.animal),
            f"a {rng.choice(QUALITIES)} {story.animal}",
            f"the {story.animal}",
            story.animal,
            f"{story.animal}s",
        )
    )
    if roll < 0.33:
        hero = names.person_name(rng).split(" ")[0].capitalize()
        story = new_story(rng, story.animal, hero)
        subject = f"{article(story.animal)} {rng.choice(('named', 'called', 'whose name is'))} {hero}"
    elif roll < 0.43:
        story = new_story(rng, story.animal, friend=things.animal(rng))
        subject = f"{article(story.animal)} and {article(story.friend)}"
    if rng.random() < 0.07:
        talk.say("story_short", ask(rng, ONE_LINE_REQUESTS, {"x": subject}), capital(in_brief(rng, story)))
    else:
        talk.say("story", ask(rng, REQUESTS, {"x": subject}), told(rng, story))
    return story


POEMS = (
    "A little {a} beneath the moon\nwas humming to itself a tune.\nThe stars looked down, the night was deep,\nand soon the {a} fell asleep.",
    "The {a} woke up to greet the day\nand danced along its merry way.\nThe sun was warm, the sky was wide,\nand joy was walking at its side.",
    "I met {A} upon a hill,\nthe wind was soft, the world was still.\nIt looked at me, I looked at it,\nand side by side we stayed a bit.",
)
POEM_REQUESTS = (
    "[write|give|tell|make] me a [short |little |]poem about {x}",
    "a poem about {x}",
    "write a [short |]poem about {x}",
    "[can|could] you write [me |]a poem about {x}?",
    "poem about {x}",
    "a [haiku|rhyme|verse] about {x}",
    "i want a poem about {x}",
    "make up a [rhyme|poem] about {x}",
    "compose a poem about {x}",
)


def poem(talk: Talk) -> None:
    animal = things.animal(talk.rng)
    text = answer(talk.rng, POEMS, {"a": animal, "A": article(animal)})
    talk.say(
        "poem", ask(talk.rng, POEM_REQUESTS, {"x": talk.rng.choice((article(animal), f"the {animal}", animal))}), text
    )
