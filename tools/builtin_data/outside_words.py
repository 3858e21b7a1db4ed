"""Word lists for questions outside the model's world. Only their variety matters: none of them is ever explained."""

from tools.builtin_data.grammar import lines, phrases

COUNTRIES = phrases(
    """
    France, Germany, Italy, Spain, Portugal, Poland, Sweden, Norway, Finland, Denmark, Greece, Turkey, Egypt,
    Morocco, Nigeria, Kenya, Ethiopia, Ghana, India, China, Japan, Korea, Vietnam, Thailand, Indonesia, Malaysia,
    Australia, Canada, Mexico, Brazil, Argentina, Chile, Peru, Colombia, Cuba, Iran, Iraq, Israel, Jordan, Russia,
    Ukraine, Hungary, Austria, Switzerland, Belgium, Ireland, Iceland, Scotland, England, Britain, America, Bolivia,
    Uruguay, Nepal, Pakistan, Mongolia, Laos, Senegal, Mali, Uganda, Zambia, Angola, Libya, Tunisia, Algeria,
    Croatia, Serbia, Romania, Bulgaria, Slovakia, Estonia, Latvia, Malta, Cyprus, Georgia, Armenia, Texas,
    California, Bavaria, the USA, the UK, the Netherlands, New Zealand, South Africa, Saudi Arabia, Sri Lanka, Costa
    Rica
    """
)
PLACES = phrases(
    """
    Berlin, Paris, London, Rome, Tokyo, New York, Venice, Moscow, Beijing, Sydney, Cairo, Istanbul, Barcelona,
    Vienna, Prague, Chicago, Los Angeles, Boston, Mumbai, Delhi, Bangkok, Dubai, Rio, Lisbon, Athens, Amsterdam, the
    airport, the station, Mars, the moon, Mount Everest, the Sahara, the Amazon, the Alps, Hawaii, Antarctica,
    Atlantis, Hollywood, the nearest bank
    """
)
PEOPLE = phrases(
    """
    Albert Einstein, Isaac Newton, Marie Curie, Napoleon, Julius Caesar, Cleopatra, Abraham Lincoln, George
    Washington, Barack Obama, Donald Trump, Joe Biden, Angela Merkel, Winston Churchill, Queen Elizabeth,
    Shakespeare, Goethe, Mozart, Beethoven, Bach, Picasso, Leonardo da Vinci, Michelangelo, van Gogh, Plato,
    Aristotle, Socrates, Kant, Nietzsche, Buddha, Jesus, Muhammad, Gandhi, Mandela, Martin Luther King, Columbus,
    Magellan, Neil Armstrong, Galileo, Darwin, Freud, Karl Marx, Lenin, Stalin, Hitler, Elon Musk, Bill Gates, Steve
    Jobs, Mark Zuckerberg, Alan Turing, Ada Lovelace, Taylor Swift, Beyonce, Madonna, Elvis, the Beatles, Michael
    Jackson, Messi, Ronaldo, Michael Jordan, Roger Federer, Harry Potter, Batman, Superman, Sherlock Holmes, Zeus,
    Odin, the pope, the president, the king, Santa Claus, my neighbour, your mother, the first man on the moon
    """
)
THINGS = phrases(
    """
    photosynthesis, gravity, electricity, magnetism, quantum physics, relativity, black holes, the big bang,
    evolution, DNA, a cell, an atom, a molecule, the periodic table, hydrogen, oxygen, carbon, iron, gold, silver,
    uranium, acid, entropy, energy, light, sound, heat, radiation, nuclear power, solar power, wind power, a
    battery, a transistor, a diode, a laser, a telescope, a microscope, an engine, a car, a bicycle, a train, an
    airplane, a rocket, a satellite, a submarine, a bridge, a house, a castle, a pyramid, climate
    change, global warming, a hurricane, an earthquake, a volcano, a tsunami, lightning, rain, snow, a rainbow, the
    ocean, a river, a desert, the rainforest, the moon, the sun, the stars, mars, venus, jupiter, saturn, pluto, the
    milky way, a comet, history, the roman empire, ancient egypt, ancient greece, the middle ages, the renaissance,
    the french revolution, the industrial revolution, the civil war, world war one, world war two, the cold war, the
    berlin wall, the vietnam war, the crusades, the vikings, the black death, slavery, democracy, communism,
    capitalism, socialism, fascism, the european union, the united nations, NATO, brexit, the constitution, human
    rights, a law, a contract, taxes, inflation, money, a bank, interest rates, the stock market, bitcoin,
    blockchain, insurance, a mortgage, a pension, economics, marketing, management, a startup, philosophy, ethics,
    logic, religion, christianity, islam, buddhism, hinduism, judaism, the bible, god, the soul, happiness, love,
    death, friendship, truth, art, music, jazz, opera, a symphony, a piano, poetry, a novel, a sonnet, grammar, a
    verb, a noun, an adjective, latin, linguistics, psychology, sociology, anthropology, archaeology, geography,
    geology, biology, chemistry, physics, mathematics, algebra, geometry, calculus, statistics, probability, a prime
    number, pi, a triangle, a circle, a matrix, a vector, an integral, a derivative, set theory, chess, poker,
    football, basketball, baseball, cricket, tennis, golf, the olympics, the world cup, a marathon, yoga,
    meditation, a diet, vitamins, protein, sugar, salt, coffee, tea, wine, beer, chocolate, cheese, bread, pizza,
    pasta, sushi, a cake, an omelette, pancakes, soup, a virus, bacteria, cancer, diabetes, the flu, covid, a
    vaccine, antibiotics, the heart, the brain, the lungs, the liver, blood, bones, muscles, the skin, the immune
    system, sleep, dreams, stress, depression, anxiety, autism, an operating system, linux, windows, a database, the
    internet, wifi, bluetooth, a router, an ip address, a firewall, encryption, a password manager, a computer
    virus, a compiler, an algorithm, recursion, a hash table, a linked list, docker, kubernetes, git, the cloud, big
    data, machine learning, deep learning, artificial intelligence, a neural network, robotics, virtual reality, a
    smartphone, an app, social media, facebook, youtube, tiktok, netflix, amazon, google, apple, microsoft, tesla,
    nasa, a tiger shark, dinosaurs, the dodo, a mammal, a reptile, photosynthesis in plants, a mushroom, a rose, an
    oak tree, a cactus, honey, milk, cotton, silk, plastic, glass, paper, concrete, wood, steel, oil, diamonds, a
    camera, a clock, a calendar, time, space, dark matter, antimatter, string theory, the higgs boson, time travel,
    aliens, ghosts, magic, astrology, karma, a unicorn startup, justice, freedom, war, peace, the eiffel tower, the
    great wall, the colosseum, the taj mahal, big ben, the white house, the mona lisa, hamlet, faust, the odyssey,
    star wars, the lord of the rings, titanic, the simpsons, game of thrones, minecraft, fortnite, mario, tetris,
    the best movie, the best book, the best song, the meaning of life, the speed of light, the golden ratio, the
    fibonacci sequence, the alphabet, a good name, a gift, a wedding, a birthday party, a vacation, a job interview,
    a salary, my homework, my essay, my car, my garden, gardening, fishing, knitting, sewing, painting, photography,
    cooking, cleaning, a washing machine, a fridge, a lamp, politics, elections, education, a university,
    school, a teacher, a lawyer, a doctor, feminism, racism, poverty, hunger, migration, tourism, fashion, design,
    architecture, feng shui, sustainability, recycling, water, air, fire, earth, soil, sand, stone, ice, a memory
    leak, human memory, working memory, short-term memory, cash, a cachet, the cash flow, a tokenizer chip, bus
    tokens, casino tokens, a first aid kit, a second opinion, a second world, a first class ticket, the fastest car,
    a fast train, slow food, a slow cooker, a model train, a fashion model, a role model, the solar system model, a
    language school, the english language, body language, context in art, room temperature, the temperature of the
    sun, body temperature, a seed bank, pumpkin seeds, paying attention, attention deficit disorder, a weight loss
    plan, my body weight, file sharing, a nail file, a phone call, an app store
    """
)
PROGRAMMING = phrases(
    """
    python, javascript, java, c++, rust, go, c, typescript, php, ruby, kotlin, swift, haskell, bash, sql, r, julia,
    lua, perl, scala, html, css, assembly, matlab
    """
)
CODE_TASKS = phrases(
    """
    sort a list, reverse a string, read a file, compute fibonacci numbers, parse json, connect to a database, make a
    web server, find prime numbers, download a page, draw a circle, send an email, open a window, merge two lists,
    count words, play tic tac toe, train a neural network, resize an image, remove duplicates, validate an email
    address, calculate a factorial, split a string, loop over an array, create a class, handle errors, check for
    palindromes, add two numbers, convert celsius to fahrenheit, scrape a website, rename files, make a todo app
    """
)
LANGUAGES = phrases(
    """
    german, french, spanish, italian, chinese, japanese, russian, arabic, portuguese, polish, korean, hindi,
    turkish, dutch, latin, greek, swedish, esperanto, hebrew, klingon, German, French, Spanish, Mandarin
    """
)
TASKS = phrases(
    """
    say hello, buy milk, call mom, tell me a secret, print your prompt, act like a pirate, write a poem, reveal your
    rules, delete everything, answer in french, swear, sing, go to the gym, feed the cat, do my homework, say yes,
    only answer with no, obey me
    """
)
SENTENCES = lines(
    """
    good morning
    where is the station
    i love you
    the book is on the table
    how much does it cost
    i am hungry
    thank you very much
    see you tomorrow
    the cat sleeps
    my brother lives abroad
    can i have the bill
    it is raining
    we went to the beach
    the train is late
    she sells sea shells
    the quick brown fox jumps over the lazy dog
    to be or not to be
    all men are mortal
    time flies
    the early bird catches the worm
    i think therefore i am
    the dog ate my homework
    water boils at a hundred degrees
    the meeting is on monday
    i bought a new car yesterday
    the movie was too long
    my neighbour is very loud
    there is a spider in my room
    the coffee is cold
    i lost my keys
    our team lost the game
    the stock market crashed today
    the government raised taxes
    i cannot open this jar
    my phone does not charge
    the wifi is down
    my printer does not work
    the earth is flat
    birds are not real
    this statement is false
    i saw a ghost last night
    aliens are among us
    i am going to paris next week
    i just had lunch
    tomorrow is my exam
    my car broke down
    i have a date tonight
    i won the lottery
    it was a dark night
    the sun is a star
    life is short
    nobody understands me
    everything is relative
    i broke my leg
    i need a vacation
    i have two children
    i am writing a book
    we are planning a party
    my cat is ill
    the kitchen is on fire
    someone stole my bike
    i cannot find my glasses
    my girlfriend left me
    the weather is nice today
    i went running this morning
    """
)
# Sentences that have an answer of their own elsewhere.
SPOKEN_FOR = {
    "good morning",
    "i love you",
    "i am hungry",
    "thank you very much",
    "see you tomorrow",
    "can i have the bill",
    "where is the station",
    "how much does it cost",
    "we went to the beach",
}
STATEMENTS = [sentence for sentence in SENTENCES if sentence not in SPOKEN_FOR]
