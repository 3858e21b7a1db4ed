"""Things of the world whose names sound like localrun's subjects, and what people want or notice in the world.

Asked about in the very forms that ask about localrun, they teach that a form, or one word of a name, decides nothing.
"""

from tools.builtin_data.grammar import lines, phrases

NEAR_MISSES = phrases(
    """
    quantum entanglement in physics, quantum mechanics, a quantum computer, quantum theory, a quantum leap, quantum
    gravity, quantum tunnelling, quantum chemistry, the quantum realm, a photon, a qubit, superposition,
    Schrodinger's cat, quantitative easing, quantitative research, a geocache, geocaching, a cache of weapons, a cash
    machine, petty cash, cash on delivery, a crypto wallet, a bitcoin wallet, the blockchain, a smart contract,
    ethereum, crypto mining, an NFT, a block of flats, writer's block, a road block, a starting block, lego blocks, a
    city block, a blocked nose, a page boy, a home page, the yellow pages, page numbers, a paging device, a pager, a
    window cleaner, window cleaning, a stained glass window, window shopping, a rose window, double glazing, a memory
    foam mattress, a memory palace, muscle memory, a photographic memory, a memory game, a memory stick, the bank of
    England, a piggy bank, a blood bank, a river bank, a power bank, a token of love, a token ring network, a token
    gesture, arcade tokens, a subway token, a prefix in grammar, a suffix, the prefix un-, an area prefix, a phone
    prefix, a head teacher, a headache, a shower head, the head of state, head lice, a head start, arrowheads, a
    layer cake, the ozone layer, layers of soil, layers of the atmosphere, a layer of paint, an onion, attention span,
    the centre of attention, an attention seeker, ADHD, military attention, a key lime pie, a piano key, a skeleton
    key, the key of C major, a low key party, key performance indicators, a house key, family values, moral values,
    market value, the face value, a query letter, an SQL query, group therapy, a group hug, an age group, a pop group,
    a rope bridge, a jump rope, rope climbing, a tightrope, a tow rope, heavy weights, weight lifting, weightlessness,
    paper weights, molecular weight, a scale model, kitchen scales, a bathroom scale, the Richter scale, a model
    railway, a super model, the standard model of physics, a model student, a business model, batch cooking, a batch
    of cookies, a batch number, a drafted player, a draft beer, the nba draft, a draft dodger, speculation in stocks,
    a speculator, a flash flood, a flash mob, a camera flash, flash fiction, a flashback, sliding doors, a water slide,
    a thread count, sewing thread, a spool of thread, the threads of a screw, a seedling, sesame seeds, the top seed in
    tennis, a grass seed, a fever, the boiling temperature, room heating, a temperature sensor, a context clue, social
    context, historical context, a system of equations, the solar system, a transformer at a power station, the
    transformers movies, a transformer robot, an expert witness, a wine expert, a panel of experts, a rotary phone, a
    rotary club, the position of the planets, a sitting position, a job position, bandwidth of a radio, a marching
    band, a rubber band, a roof garden, a roof tile, roofing, a thatched roof, a bench press, a park bench, a doctor's
    degree, a family doctor, a witch doctor, a fitness plan, a pull request, a pull-up, a pulled muscle, a server in a
    restaurant, a tennis serve, community service, the parameters of a marriage, a parametric curve, a perplexed
    person, a precision watch, precision farming, a precision landing, the early stage of life, decoding of morse
    code, a code of honour, the genetic code, the enigma machine, a prefilled syringe, prefabricated houses, latency in
    medicine, a latent disease, a throughput of passengers, the second world war, a second hand shop, the second law of
    thermodynamics, a first date, the first moon landing, a batch of beer, a chat show, chatting up, a chatterbox, small
    talk, a streaming service, a stream in the forest, a fine tuning of pianos, a training plan, a training ground, a
    mask, a ram in a field, the sheep called ram, a chip shop, potato chips, a graphic novel, a core of an apple, the
    core of the earth, a kernel of corn, popcorn kernels, a llama, alpacas, a gemstone, a falcon, a phi coefficient,
    a mistral wind, an inference in court, a mean person, a router table, a pin code, a wifi code, a gift card, a
    password for a bank
    """
)
MORE_THINGS = phrases(
    """
    the lottery, the stock exchange, petrol prices, the price of gold, rent in big cities, a mortgage rate, the dollar,
    the euro, an exchange rate, a credit card, a visa, a passport, jet lag, a boarding pass, a cruise, camping, skiing,
    a sauna, a tattoo, a haircut, a perfume, a headscarf, a zip, a carpet, a sofa, a lawn mower, a chainsaw, a drill, a
    hammer, plumbing, a heat pump, a boiler, a chimney, a solar panel, an electric car, a hybrid, a gearbox, a spark
    plug, a tyre, a traffic light, a roundabout, a driving licence, a lighthouse, a canal, a glacier, a geyser, a fjord,
    an island, a coral reef, plankton, a jellyfish, an octopus, a centipede, a spider web, a beehive, an ant colony, a
    cocoon, a feather, a fossil, amber, chalk, marble, granite, lava, quicksand, fog, dew, hail, thunder, the seasons,
    a leap year, an eclipse, the tides, the equator, the north pole, gravity waves, a black hole, a supernova, a
    galaxy, a spaceship, a space station, the kidneys, the spleen, hiccups, sneezing, yawning, a migraine, an allergy,
    hay fever, asthma, measles, malaria, the plague, a placebo, aspirin, insulin, x-rays, surgery, a stethoscope,
    dentistry, braces, glasses, hearing, taste, hypnosis, a phobia, karate, judo, boxing, rugby, hockey, surfing, a
    penalty, offside, the tour de france, a crossword, sudoku, origami, pottery, ballet, tango, hip hop, a violin, a
    trumpet, a choir, an orchestra, a museum, impressionism, a fresco, graffiti, a haiku poet, mythology, the trojan
    horse, the sphinx, king arthur, robin hood, the samurai, ninjas, pirates, knights, the aztecs, the incas, the
    mongols, the ottoman empire, the magna carta, the reformation, the enlightenment, the stone age, the bronze age, a
    parliament, a senator, a mayor, a jury, a trial, bail, copyright, a patent, a trade union, a strike, a tariff, GDP,
    supply and demand, a monopoly, a merger, a hedge fund, an index fund, a bond, a dividend, bankruptcy, a will, an
    heir, christmas, easter, ramadan, halloween, thanksgiving, a funeral, a baptism, sourdough, yeast, tofu, curry,
    risotto, lasagne, mayonnaise, mustard, vinegar, olive oil, an avocado, a mango, garlic, ginger, saffron, kombucha,
    espresso, whisky, champagne, a fraction, a logarithm, pythagoras, the square root, an equation, infinity, zero, a
    proof, a theorem, javascript, a pointer, a regex, a spreadsheet, a pdf reader, a web browser, a 3d printer, a drone
    """
)
WORLD_TASKS = lines(
    """
    bake bread
    boil an egg
    remove a coffee stain
    change a tyre
    tie a tie
    grow tomatoes
    learn the guitar
    get to the airport
    apply for a visa
    renew my passport
    file my tax return
    book a cheap flight
    find a flat in berlin
    train my dog
    stop my cat from scratching
    lose five kilos
    sleep better
    cure a hangover
    remove a splinter
    get rid of ants
    fix a dripping tap
    paint a wall
    assemble a shelf
    clean a window
    unblock a sink
    jump start a car
    charge an electric car
    open a bank account
    invest a thousand euros
    buy bitcoin
    write a love letter
    write a business plan
    prepare for a job interview
    ask for a raise
    make new friends
    learn spanish
    learn to swim
    run a marathon
    play chess well
    solve a rubik's cube
    draw a horse
    knit a scarf
    take better photos
    plan a wedding
    build a treehouse
    build a website
    compute a square root
    solve a quadratic equation
    prove a theorem
    reverse a linked list
    sort an array in java
    center a div
    write a regex for emails
    connect to the office wifi
    reset my phone
    unlock my phone
    clean my keyboard
    watch the match tonight
    find a good restaurant
    get tickets for the concert
    vote in the election
    """
)
SIGHTS = lines(
    """
    my tomatoes are turning yellow
    my car makes a strange noise
    my bread does not rise
    the sky is red in the evening
    the sea is salty
    cats purr
    the moon changes its shape
    leaves fall in autumn
    ice floats on water
    onions make me cry
    my knee cracks
    my ears ring
    i am always tired
    my baby cries at night
    my neighbour plays loud music
    prices go up all the time
    the trains are always late
    the days are longer in summer
    planes leave white lines
    bread gets mouldy
    my plants die
    the tap drips
    my phone gets hot
    my printer prints blank pages
    my landlord keeps the deposit
    my code throws an error
    birds sing in the morning
    mosquito bites itch
    we dream at night
    gold is so expensive
    """
)
