"""Words that fill the slots of a chat: names, animals, things people like. Names are mostly made up on the spot."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import phrases, words

FIRST_NAMES = words(
    """
    Anna Ben Clara David Emma Felix Grace Henry Ida Jack Kate Leo Mia Noah Olivia Paul Quinn Rosa Sam Tina Uma
    Victor Wendy Xavier Yara Zoe Alice Bob Carol Dan Eve Frank Gina Hugo Iris James Karen Liam Maria Nina Oscar
    Peter Rita Simon Tom Ursula Vera Will Yusuf Zara Ahmed Aisha Akira Alejandro Amara Andrei Anika Arjun Astrid
    Bjorn Carlos Chen Chloe Deepak Diego Dmitri Elena Emeka Fatima Finn Gabriel Giulia Hana Hassan Helga Hiroshi
    Igor Ines Ivan Jamal Jin Joao Jose Kenji Kofi Lakshmi Lars Layla Lin Luca Magnus Mateo Mei Mohammed Nadia Naomi
    Ngozi Nikolai Omar Pablo Pedro Petra Priya Rafael Raj Ravi Sakura Sana Santiago Sven Tariq Thandi Tomas Wei Yuki
    Zainab Robert Michael Sarah Laura Julia Max Chris Alex Mark John Mary Linda Susan Lisa Nancy Betty Steve Kevin
    Brian George Edward Jason Ryan Sophie Lucy Charlotte Amelia Ella Ruby Daisy Harry Charlie Oliver Jake Thomas
    Oskar Ole Mats Greta Heidi Klaus Jürgen Zoë José Søren Łukasz Renée André Chloé Núria Øystein Ève Božena Siân
    Anaïs Jo Al Bo Ed Ty Vi Lu Mo
    """
)
ONSETS = words(
    """
    b c d f g h j k l m n p r s t v w y z br ch cl dr fl gr kl kr pl pr sh sk st th tr zh qu bl sl sn sp
    """
)
VOWELS = words("a e i o u a e i o a ee oo ia ay ei ou y")
CODAS = ["", "", "", "n", "r", "l", "s", "k", "m", "t", "x", "th", "nd", "sh", "ck", "rk", "st", "lf", "ng", "sk", "z"]

ANIMALS = phrases(
    """
    cat, dog, fox, owl, bear, mouse, rabbit, hedgehog, squirrel, otter, turtle, frog, duck, goose, hen, rooster,
    cow, horse, pig, sheep, goat, donkey, lion, tiger, elephant, giraffe, zebra, monkey, penguin, seal, whale,
    dolphin, shark, octopus, crab, snail, bee, ant, butterfly, ladybug, spider, bat, wolf, deer, moose, beaver,
    badger, raccoon, panda, koala, kangaroo, camel, llama, parrot, crow, sparrow, robin, eagle, swan, stork,
    flamingo, peacock, pigeon, lizard, snake, crocodile, dragon, unicorn, dinosaur, hamster, guinea pig, ferret,
    mole, rat, weasel, lynx, leopard, cheetah, panther, hippo, rhino, gorilla, sloth, armadillo, platypus, walrus,
    jellyfish, starfish, salmon, goldfish, seahorse, lobster, firefly, cricket, grasshopper, dragonfly, caterpillar,
    worm, puppy, kitten, pony, lamb, calf, chick, toad, newt, gecko, chameleon, tortoise, hare, possum, skunk,
    coyote, jackal, hyena, buffalo, bison, yak, alpaca, antelope, gazelle, reindeer, elk, ostrich, emu, kiwi,
    toucan, pelican, seagull, albatross, hawk, falcon, vulture, raven, magpie, woodpecker, hummingbird, swallow,
    heron, crane, turkey, quail, pheasant, tuna, trout, carp, eel, squid, shrimp, clam, oyster, mammoth, phoenix,
    griffin, robot
    """
)
CREATURES = words(
    """
    knight princess wizard pirate witch ghost king queen child girl boy sailor farmer gardener baker teacher
    grandmother astronaut alien snowman fairy giant troll tree cloud star little train kite toy teddy bear computer
    tiny model token moon river mountain
    """
)

COLOURS = words(
    """
    red blue green yellow purple orange pink black white brown grey gray turquoise violet indigo silver gold teal
    maroon navy beige crimson magenta lavender olive cyan mint coral
    """
)
FOODS = phrases(
    """
    pizza, pasta, sushi, chocolate, soup, bread, cheese, rice, apples, strawberries, pancakes, tacos, salad, curry,
    noodles, waffles, burgers, lasagna, dumplings, mangoes, cake, fries, tofu, ramen, cookies, steak, falafel,
    risotto, ice cream
    """
)
CITIES = words(
    """
    Berlin Paris London Madrid Rome Tokyo Oslo Lima Cairo Mumbai Vienna Prague Dublin Lisbon Boston Chicago Toronto
    Sydney Nairobi Seoul Bangkok Hamburg Munich Zurich Athens Warsaw Helsinki Denver Austin Seattle Lagos Quito
    Hanoi Leeds Porto Graz
    """
)
HOBBIES = words(
    """
    chess reading swimming painting cooking football tennis music dancing hiking gardening fishing photography
    cycling running knitting singing sailing climbing gaming skiing yoga baking drawing travelling pottery surfing
    """
)
JOBS = words(
    """
    teacher nurse doctor baker student programmer engineer farmer driver cook gardener lawyer carpenter painter
    musician writer plumber pilot scientist librarian electrician designer mechanic waiter dentist
    """
)
SHADES = words("dark light pale deep bright burnt hot sky forest midnight baby royal neon warm dusty electric pastel")
FLAVOURS = words(
    "fried apple spicy sweet tomato chicken lemon hot green vegetable cheese banana potato fresh carrot thai"
)
INSTRUMENTS = words(
    """
    piano guitar violin flute drums cello trumpet harp saxophone accordion banjo ukulele
    """
)
SPORTS = words(
    """
    football tennis basketball hockey volleyball swimming cricket rugby golf baseball badminton judo skiing handball
    rowing boxing
    """
)
SEASONS = words("spring summer autumn winter")
DRINKS = words("tea coffee water milk lemonade juice cocoa cola beer wine espresso")


def nonsense_word(rng: Random, syllables: int = 0) -> str:
    """A pronounceable word nobody has seen: unseen names, animals and topics are made of these."""
    count = syllables or rng.choice((1, 2, 2, 2, 3, 3))
    word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count))
    return word + rng.choice(CODAS)


def letters(rng: Random) -> str:
    """Random letters: the hardest names to copy."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 7)))


def person_name(rng: Random) -> str:
    roll = rng.random()
    if roll < 0.30:
        name = rng.choice(FIRST_NAMES)
    elif roll < 0.72:
        name = nonsense_word(rng).capitalize()
    elif roll < 0.79:
        name = nonsense_word(rng, rng.choice((4, 5))).capitalize()
    elif roll < 0.87:
        name = (
            (rng.choice(COLOURS + ANIMALS + JOBS) + rng.choice(ANIMALS + HOBBIES + FOODS)).replace(" ", "").capitalize()
        )
    else:
        name = letters(rng).capitalize()
    roll = rng.random()
    if roll < 0.05:
        name += " " + nonsense_word(rng).capitalize()
    elif roll < 0.08:
        name += " " + rng.choice(FIRST_NAMES)
    elif roll < 0.095:
        name += "-" + rng.choice(FIRST_NAMES)
    elif roll < 0.11:
        name = rng.choice(("Mr ", "Mrs ", "Dr ", "Dr. ", "Captain ", "Professor ")) + name
    elif roll < 0.12:
        name += str(rng.randint(1, 99))
    roll = rng.random()
    if roll < 0.20:
        return name.lower()
    return name.upper() if roll < 0.23 else name


def animal(rng: Random) -> str:
    roll = rng.random()
    if roll < 0.80:
        return rng.choice(ANIMALS)
    return rng.choice(CREATURES) if roll < 0.86 else nonsense_word(rng)


def colour(rng: Random) -> str:
    shade = rng.choice(SHADES) + " " if rng.random() < 0.2 else ""
    return shade + rarely_new(rng, COLOURS)


def food(rng: Random) -> str:
    kind = rng.choice(FLAVOURS) + " " if rng.random() < 0.2 else ""
    return kind + rarely_new(rng, FOODS)


def city(rng: Random) -> str:
    name = rarely_new(rng, CITIES, 0.4).title()
    roll = rng.random()
    if roll < 0.1:
        return rng.choice(("New ", "San ", "Saint ", "North ", "Bad ", "East ", "Port ")) + name
    return name + rng.choice((" City", " Beach", " Falls", " Bay", " Town", " Hill")) if roll < 0.18 else name


def rarely_new(rng: Random, known: list[str] | tuple[str, ...], share: float = 0.2) -> str:
    """One of the known values, or now and then a word that was never seen."""
    return nonsense_word(rng) if rng.random() < share else rng.choice(list(known))
