"""People's names: known ones, and ones made up on the spot, so that a name is copied and not chosen from a list."""

from __future__ import annotations

from random import Random

from tools.builtin_data.grammar import words
from tools.builtin_data.made_up import letters, nonsense_word, repeated, rough
from tools.builtin_data.rare_words import NICKNAMES
from tools.builtin_data.things import ANIMALS, COLOURS, FOODS, HOBBIES
from tools.builtin_data.typing_noise import typo

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
    Anaïs Jo Al Bo Ed Ty Vi Lu Mo Tim Jim Kim Ann Amy Ali Ian Jay Ray Roy Ron Rob Ted Joe Ken Len Meg Pam Pat Sue
    Val Viv Zac Abe Art Cal Deb Don Dee Eli Fay Gil Gus Guy Hal Ike Jen Kit Lee Liv Lou Mel Ned Ora Pia Rex Rob Sal
    Sid Tam Tess Una Vic Wes Zed Nils Knut Arne Elke Uwe Anke Jan Piet Sanne Femke Bram Marek Agnieszka Piotr Ewa
    Zofia Vlad Olga Sergei Irina Boris Tatiana Katya Misha Ayşe Mehmet Emre Elif Ebru Rahul Sanjay Anjali Sunita
    Vikram Haruto Aiko Takeshi Min-jun Seo-yeon Jiho Xiaoming Li Zhang Hui Nguyen Thanh Linh Kwame Ama Abena Chidi
    Oluwaseun Folake Thabo Sipho Lerato Ibrahim Khadija Youssef Leila Farid Samira Noor Dariush Shirin Moshe Rivka
    Siobhan Niamh Saoirse Aoife Cormac Padraig Rhys Gwen Dylan Angus Isla Eilidh Fergus Giovanni Francesca Matteo
    Chiara Paolo Sofia Camila Valentina Joaquín Esteban Lucía Íñigo François Hélène Bénédicte Jérôme Maëlle Gaël
    """
)
ACCENTED = str.maketrans("aeioucsz", "áéíóúçšž")
TITLES = (
    "Mr ",
    "Mr. ",
    "Mrs. ",
    "Ms. ",
    "Mrs ",
    "Ms ",
    "Dr ",
    "Dr. ",
    "Captain ",
    "Professor ",
    "Sir ",
    "Aunt ",
    "Uncle ",
)
PREFIXES = ("O'", "D'", "Mc", "Mac", "Al-", "Van ", "De ", "El ", "N'", "Ka'")


def short_name(rng: Random) -> str:
    """Two to four letters, as many nicknames have: the easiest to mistake for another word."""
    return (
        rng.choice("bcdfghjklmnpqrstvwxyz")
        + rng.choice("aeiouy")
        + "".join(rng.choices("bdgklmnprstvxyzaeio", k=rng.choice((0, 1, 1, 2, 2))))
    )


def base_name(rng: Random) -> str:
    """One word in lower case."""
    roll = rng.random()
    if roll < 0.24:
        return rng.choice(NICKNAMES if rng.random() < 0.4 else FIRST_NAMES).lower()
    if roll < 0.45:
        return nonsense_word(rng)
    if roll < 0.54:
        return rough(rng)
    if roll < 0.61:
        return repeated(rng)
    if roll < 0.69:
        return short_name(rng)
    if roll < 0.75:
        return nonsense_word(rng, rng.choice((3, 4, 5)))
    if roll < 0.84:
        return letters(rng)
    if roll < 0.90:
        return typo(rng, rng.choice(FIRST_NAMES).lower())
    plain = rng.choice(COLOURS + ANIMALS + HOBBIES + FOODS).replace(" ", "")
    return plain if roll < 0.95 else rng.choice(COLOURS) + plain


def decorated(rng: Random, name: str) -> str:
    """Now and then two-part, hyphened, with an apostrophe, a title, digits or accents. `name` is capitalised."""
    roll = rng.random()
    if roll < 0.05:
        return name + " " + base_name(rng).capitalize()
    if roll < 0.07:
        return name + " " + rng.choice("ABCDEFGHJKLMNPRSTVWZ") + rng.choice(("", "."))
    if roll < 0.10:
        return name + "-" + base_name(rng).capitalize()
    if roll < 0.13:
        return rng.choice(PREFIXES) + name
    if roll < 0.145:
        at = rng.randint(1, max(1, len(name) - 1))
        return name[:at] + "'" + name[at:]
    if roll < 0.175:
        return rng.choice(TITLES) + name
    if roll < 0.20:
        return name + rng.choice(("", "", "_", "-")) + str(rng.randint(0, 99))
    return name.translate(ACCENTED) if roll < 0.215 else name


def person_name(rng: Random) -> str:
    """A name in the case somebody may type it: the model says it back as it was written."""
    name = decorated(rng, base_name(rng).capitalize())
    roll = rng.random()
    if roll < 0.45:
        return name.lower()
    return name.upper() if roll < 0.49 else name


def one_word_name(rng: Random) -> str:
    name = base_name(rng)
    return name if rng.random() < 0.35 else name.capitalize()


def similar_name(rng: Random, name: str) -> str:
    """Another name that is easily mistaken for this one: Ed and Fred, Mia and Nia, Ann and Annika."""
    roll = rng.random()
    if roll < 0.3:
        other = rng.choice("bcdfghjklmnprstvwz") + name[1:].lower()
    elif roll < 0.45:
        other = rng.choice(("fr", "br", "t", "st", "l", "al", "el", "m", "j", "sh", "k")) + name.lower()
    elif roll < 0.7:
        other = name + rng.choice(
            ("a", "y", "ie", "ika", "abel", "elise", "son", "na", "o", "ette", "bert", "ley", "s")
        )
    elif roll < 0.8:
        other = name[:2] + one_word_name(rng).lower()[-3:]
    elif roll < 0.9 and len(name) > 3:
        other = name[: rng.randint(2, len(name) - 1)]
    else:
        other = typo(rng, name) if len(name) > 2 else name + rng.choice("aeiou")
    other = other.capitalize() if name[:1].isupper() else other.lower()
    return other if other.lower() != name.lower() else name + "a"
