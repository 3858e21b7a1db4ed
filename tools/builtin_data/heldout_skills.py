"""Held-out stories, sums and small puzzles; `fox*3` wants a word three times, `LINES 3` an answer of three lines."""

LINES = {
    "tales": """
        tell me a story about a fox named Pip => fox*2 & pip*3
        Story about an aardvark please! => aardvark*3
        i want a story with a penguin and a walrus in it => penguin*2 & walrus
        could you make up a tale where a robot lives on a farm => robot*2
        story about a gnorf => gnorf*3
        a bedtime story about a tired dragon pls => dragon*2
        tell my little girl a story about a unicorn named Sparkle => unicorn & sparkle*3
        My name is Ivo. | Tell me a story about me => ivo*2
        a story about a toaster => toaster*2
        tell me a story | another | what was the animal called? => called
        tell me a story about a mole called Digby | who is digby? => digby & mole
        tell me a story about an owl | a shorter one please => owl
        tell me a story about a cat | now the same about a hippo => hippo*2
        story about a knight and a dragon in the mountains => knight*2 & dragon
        I'd like to read something about a brave little snail => snail*2
        write a haiku about a frog => LINES 3 & frog
        haiku on autumn please => LINES 3 & autumn
        can you do a haiku? => LINES 3
        write a little poem about my cat => cat & LINES 4
        i need a rhyme about a bear => bear & LINES 4
        give me a riddle => ?
        tell me a riddle | i have no idea, what is it? => it is/answer
        limerick about a goat please => goat & LINES 5
    """,
    "numbers": """
        what's 8 and 7 together? => = 15
        93-47 => = 46
        sixteen times three? => = 48
        whats 81 divided by 9 pls => = 9
        20 / 6 => = 3 remainder 2
        how much is 12 + 12 | and times 2? => = 48
        what is 30 - 4 | minus another 6? => = 20
        4 + 5 | now double it => = 18
        i have 3 apples and buy 4 more, how many have i got now? => = 7
        mia has 12 marbles and loses 5. how many are left? => = 7
        there are 6 bags with 7 candies in each, how many candies? => = 42
        which is bigger, 13 or 31? => "31 is greater"
        is 45 more than 54? => no & 54
        what's smaller: 8 or 18? => "8 is smaller"
        what number is next after 59? => 60
        and what comes before 100? => 99
        2, 4, 6, 8, ... what is next? => 10
        5 10 15 20 ? => 25
        is 37 odd or even => odd
        count down from ten => 10, 9, 8, 7, 6, 5, 4, 3, 2, 1
        count up to 12 please => 9, 10, 11, 12
        what is 4+5+6? => = 15
        half of 64 => = 32
        what's nine squared => = 81
        a book costs 8 dollars, what do 5 books cost? => = 40
        forty minus eight, please => = 32
        what are seven eights? => = 56
        give me the sum of 64 and 19 => = 83
    """,
    "puzzles": """
        what is the opposite of hot? => cold
        whats the contrary of big => small
        antonym of early? => late
        which day follows thursday? => friday
        what day was it before sunday => saturday
        if today is tuesday, what day is tomorrow? => wednesday
        what month comes after september => october
        how many days are in a week? => seven/7
        list the days of the week => monday & sunday
        name all twelve months => january & december
        which letter comes after f? => "G"
        repeat after me: purple monkeys dance => purple monkeys dance
        say wibble => wibble
        Anna is taller than Ben. Who is taller? => anna is/is anna
        Anna is taller than Ben. Who is shorter? => ben is/is ben
        tom is older than sue, and sue is older than kim. who is the oldest? => is tom/tom is
        the ball is under the chair. where is the ball? => chair
        Lena has the key and Omar has the map. Who has the map? => Omar
        is a trout an animal? => yes
        is purple a colour or a food? => colour
        Paul lives in Ghent. Rita lives in Split. Where does Rita live? => Split
        what did i just say? => said
        what is a camel? => animal
    """,
}
