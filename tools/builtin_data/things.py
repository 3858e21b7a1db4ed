"""Words that fill the slots of a chat: animals, colours, food, places, work."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import phrases, plural, words
from tools.builtin_data.made_up import nonsense_word, rough
from tools.builtin_data.rare_words import DISHES, WILD_ANIMALS

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
SUBJECTS = words("math history music physics art biology english chemistry law medicine geography latin")
WAYS = words(
    """
    grilled roasted smoked salted stuffed mashed baked boiled steamed raw dried candied crunchy buttered toasted
    frozen iced warm cold fresh stale burnt canned marinated peppered sour bitter creamy homemade organic leftover
    """
)
MANNERS = words(
    "long old loud quiet early late rainy slow cheap dark empty crowded foreign little rude busy silent wet"
)
MATTERS = words(
    """
    walks movies songs books evenings trains streets parties mornings weekends lakes towns roads jokes cars shoes
    hotels summers puzzles stories museums games shops beaches neighbours politicians phones forests buses winters
    """
)
SEASONS = words("spring summer autumn winter")
DRINKS = words("tea coffee water milk lemonade juice cocoa cola beer wine espresso")


def animal(rng: Random) -> str:
    roll = rng.random()
    if roll < 0.64:
        return rng.choice(WILD_ANIMALS if rng.random() < 0.35 else ANIMALS)
    if roll < 0.70:
        return rng.choice(CREATURES)
    if roll < 0.77:
        return rng.choice([kind for kind in WILD_ANIMALS if kind[0] in "aeiou"])
    if roll < 0.82:
        return rng.choice("aaeiou") * rng.choice((1, 1, 2)) + rng.choice((nonsense_word, rough))(rng)  # takes "an"
    return (rough if rng.random() < 0.2 else nonsense_word)(rng)


def colour(rng: Random) -> str:
    shade = rng.choice(SHADES) + " " if rng.random() < 0.2 else ""
    return shade + rarely_new(rng, COLOURS)


def food(rng: Random) -> str:
    kind = rng.choice(FLAVOURS) + " " if rng.random() < 0.2 else ""
    return kind + rarely_new(rng, (DISHES if rng.random() < 0.4 else FOODS), 0.25)


def city(rng: Random) -> str:
    name = rarely_new(rng, CITIES, 0.4)
    if rng.random() < 0.35:
        return name.lower()
    name = name.title()
    roll = rng.random()
    if roll < 0.1:
        return rng.choice(("New ", "San ", "Saint ", "North ", "Bad ", "East ", "Port ")) + name
    return name + rng.choice((" City", " Beach", " Falls", " Bay", " Town", " Hill")) if roll < 0.18 else name


def liking(rng: Random) -> str:
    """What people love or hate: of one word, of two, or a plural of a word nobody knows."""
    roll = rng.random()
    if roll < 0.25:
        return f"{rng.choice(WAYS)} {rarely_new(rng, (*DISHES, *FOODS), 0.25)}"
    if roll < 0.35:
        return f"{rng.choice(MANNERS)} {rarely_new(rng, MATTERS, 0.3)}"
    if roll < 0.45:
        return plural(rng.choice(WILD_ANIMALS if rng.random() < 0.6 else ANIMALS))
    if roll < 0.52:
        return plural((rough if rng.random() < 0.5 else nonsense_word)(rng))
    return rarely_new(rng, (*HOBBIES, *FOODS, *DISHES), 0.25)


def rarely_new(rng: Random, known: list[str] | tuple[str, ...], share: float = 0.35) -> str:
    """One of the known values, or now and then a word that was never seen."""
    if rng.random() >= share:
        return rng.choice(list(known))
    return (rough if rng.random() < 0.2 else nonsense_word)(rng)
