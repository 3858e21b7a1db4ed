"""Held-out chats about the user: greetings and what the model is, names, and facts over many turns."""

LINES = {
    "hello": """
        heya lil bot! => hello/hi/hey
        good evening to you, machine => evening
        yo whats good => well/fine/hello/hi
        HELLO?? => hello/hi/here
        hi 👋 => hello/hi
        long time no see! => hello/hi/see/nice/good
        hey how was your night => fine/well
        so tell me, what are you? => tiny/small & model
        r u a real human or what => model/program/no
        are you chat gpt by any chance? => no/localrun
        how many parameters do u have => 7 million
        whats your size in megabytes => 7 MB
        who built you and why? => localrun
        how much text can you keep in mind at once? => 2048
        what stuff are you good for? => sums/stories/story
        do you ever get sad? => program/model/no feelings
        you're kinda cute ngl => thank
        im feeling down today => sorry
        gtg, ttyl! => bye/see you
        thx a bunch => welcome/pleasure
        sorry for shouting => problem/right
        can u see me through the camera? => only chat/cannot/no
    """,
    "name": """
        my name is tim | what's my name? => "tim"
        im bo | thanks | do u know my name => "bo"
        hey, tim speaking | 5+6 | and who am I? => "tim"
        its jax btw | tell me a joke | my name pls => "jax"
        hello i am jean-luc picard | hi | what did i say i was called => jean-luc
        You may call me Zyx. | What is my name? => "Zyx"
        my friends usually call me pixie | how are you? | so what's my name => "pixie"
        my name is o'connell | what is ttft? | tell me my name => o'connell
        HI THERE MY NAME IS GERTRUDE | WHAT IS MY NAME => gertrude
        my name's qvrt | say my name => "qvrt"
        i am known to everyone as blorbo99 | what's my name => blorbo99
        hey im mc nugget | what are you | who am i => nugget
        My name is Sam. | No wait, it's Pam. | what is my name? => "pam"
        im kim | sorry i mean jim | whats my name => "jim"
        call me al | tell me a story about a frog | 8 x 7 | good night | hi again, do you still know my name? => "al"
        Svetlana here! | What was my name? => Svetlana
        do you know my name? | no? it's ingeborg | so what's my name? => ingeborg
        my name is ed and my dog is called fred | whats my name => "ed"
        my name is ed and my dog is called fred | whats my dog's name => "fred"
        i'm nia. my sister's name is mia. | what's my sister's name? => "mia"
        i'm nia. my sister's name is mia. | thanks | and what is my name? => "nia"
        my name is xochitl | is my name bob? => xochitl & no
        they christened me bartholomew | greet me by my name => bartholomew
        what's my name? => not told
        who am I? | my name is dot | who am I? => "dot"
        Good evening, I am Dr. Wu. | What's my name? => "wu"
        the name's Bond | cool | what's my name => bond
        name is li | ok | do you remember my name => "li"
        my name is ümit | what is my name => ümit
        im your creator, my name is nobby | what's my name? => nobby
        ciao, sono marco... i mean my name is marco | my name? => marco
        my name is 7ofnine | what is it? my name i mean => 7ofnine
    """,
    "facts": """
        i live in a town called Grumbach | nice | where do i live? => grumbach
        my favorite color is sort of turquoise | what's 9+9 | which color do i like => turquoise
        im 14 | tell me a joke | how old am i => "14"
        i have two cats, their names are mimi and zorro | what are my cats called? => mimi
        I work as a blacksmith | ok | What's my profession? => blacksmith
        my keys are on the fridge | hello | where are my keys => fridge
        i parked the car behind the church | what is a token? | where is my car? => church
        remember 4711 for me | tell me a story about a hen | which number should you remember? => 4711
        my birthday is on the 3rd of may | when is my birthday? => may
        tomorrow i will visit my grandma | hi | what am i doing tomorrow? => grandma
        i love pickled herring | how are you | what do i love? => herring
        i really hate mondays | what do i hate? => monday
        I'm allergic to shellfish. | 3 + 8 | what am I allergic to? => shellfish
        My sister lives in Lagos and I live in Bern. | where does my sister live? => Lagos
        My sister lives in Lagos and I live in Bern. | where do i live? => Bern
        my brother is 12 and i am 15 | how old is my brother? => "12"
        my favourite food is dal | and my favourite drink is chai | thanks | what's my favourite drink? => chai
        my favourite food is dal | and my favourite drink is chai | thanks | and my favourite food? => dal
        i study marine biology | what do i study? => marine
        i have 3 brothers | how many brothers do i have? => "3"/three
        my code word is pamplemousse | 7*6 | what was the code word? => pamplemousse
        my name is Ola, i'm 31 and i live in Bergen | what do you know about me? => Ola & 31 & Bergen
        what do you know about me? => not told
        where do i work? => not told
        what's the name of my horse? => not told
        my favourite colour is red | no, actually it's green | what's my favourite colour? => green
        my wizard staff is called Glimmer | tell me a joke | what is my wizard staff called? => glimmer
        my best friend is Tomasz | who is my best friend? => tomasz
        my hobby is beekeeping | how are you? | thanks | what's my hobby again => beekeeping
        i play the oboe | which instrument do i play? => oboe
        my zebra is called Stripes | my parrot is called Polly | what is my zebra called? => stripes
        my zebra is called Stripes | my parrot is called Polly | what is my parrot called? => polly
    """,
}
