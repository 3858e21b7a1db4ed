"""Real words and names of many letter pairs and doubled letters: what is said back must be copied, not guessed."""

from __future__ import annotations

from tools.builtin_data.grammar import phrases, words

NICKNAMES = words(
    """
    Abby Addy Aggie Andy Annabel Annie Archie Arnie Ash Aubrey Augie Axel Babs Baxter Beau Becca Becky Bella Bennett
    Bertie Bess Betsy Bex Biff Billie Birdie Blake Bobbie Bonnie Brett Britt Brooke Bubba Buddy Buffy Buzz Byron
    Cassie Cecily Chaz Chip Chuck Cissy Coby Cody Colby Connor Corky Cosmo Dabney Danny Darcy Debbie Derek Dexter
    Dickie Didi Dinah Dixie Dobby Dodge Dolly Donna Dotty Dudley Duffy Duke Dusty Dwight Eddy Effie Egbert Elliott
    Elmo Emmett Enzo Ernie Errol Ethel Etta Ezra Fabian Fergie Fifi Fitz Fizz Flossie Floyd Flynn Fluffy Foggy
    Freddy Frodo Fuzzy Gabby Garth Geoff Georgie Gertie Gibby Giggs Ginny Glenn Goldie Gordy Gretchen Griff Gunther
    Gussie Guthrie Gwyneth Hatty Hector Hettie Hobbes Hobbs Hoppy Howie Hubert Huck Hutch Iggy Immy Ingrid Izzy
    Jabba Jacky Jazz Jeeves Jeff Jenny Jessie Jethro Jiff Jimmy Jinx Jojo Jonny Judd Judy Jutta Kassy Kenny Kirby
    Kitty Knox Koko Kurt Kylie Lassie Leroy Lexi Libby Lilly Lizzie Lloyd Lolly Lotte Ludwig Lulu Lydia Mabel Maddox
    Maggie Mandy Matty Maude Maxwell Mickey Miffy Mikko Mimi Minnie Missy Mitzi Mobby Mopsy Morris Mossy Muffin
    Murphy Myrtle Nanny Nate Nettie Newt Nibbles Nick Nifty Niki Nobbs Noddy Nutty Odette Olaf Olga Ollie Oona Orville
    Ossie Otis Ozzy Paddy Pebbles Peggy Percy Perry Petey Phoebe Piggy Pinky Pippa Poe Poppet Puck Pudding Puff
    Quentin Quincy Ralph Randolph Rascal Reggie Rhoda Rhett Ricky Robbie Rocky Rodney Roddy Rollo Ronny Roxy Rusty
    Ruth Sabby Sally Sammy Sandy Sasha Scott Scruffy Seth Shaggy Shelly Shiloh Sibyl Sissy Skippy Sly Smudge Snoopy
    Socks Sonny Sparky Spike Spot Stacey Stella Strudel Stubbs Sunny Sybil Tabby Taffy Teddy Terry Thelma Theodora
    Tibby Tiffany Tigger Timmy Tippy Tobias Todd Tommy Tracey Trixie Trudy Tubby Tucker Twiggy Ulf Ulrich Vinny Viggo
    Wally Wanda Whiskers Wilbur Wilma Winnie Wobble Wolfgang Woody Wyatt Xander Yoko Yvette Yvonne Zack Zelda Ziggy
    Zippy Zuzu Zsofia Bartholomea Annalena Marianne Leopold Cornelius Anastasia Evangeline Montgomery Persephone
    """
)
WILD_ANIMALS = phrases(
    """
    aphid, anaconda, anteater, axolotl, baboon, bandicoot, barnacle, beetle, binturong, blobfish, boar, bobcat,
    bumblebee, bunny, canary, cassowary, catfish, centipede, chinchilla, chipmunk, cicada, cobra, cockatoo, condor,
    cormorant, cougar, cuckoo, dingo, dodo, dormouse, dugong, earwig, echidna, egret, ermine, finch, fossa, gazelle,
    gerbil, gibbon, gnu, gopher, grouse, guppy, haddock, hornet, ibex, ibis, iguana, impala, jaguar, jackdaw,
    kingfisher, kookaburra, krill, ladybird, lemming, lemur, locust, loris, lyrebird, macaw, mackerel, manatee,
    mandrill, marmot, meerkat, millipede, mongoose, mosquito, moth, muskrat, narwhal, nightingale, nuthatch, ocelot,
    okapi, opossum, orangutan, oryx, osprey, pangolin, partridge, pika, piranha, polecat, porcupine, puffin, puma,
    python, quokka, quoll, reindeer, roadrunner, salamander, sardine, scorpion, serval, shrew, slug, spoonbill,
    springbok, stingray, stoat, sturgeon, tadpole, tapir, tarantula, tarsier, termite, tern, thrush, vicuna, viper,
    vole, wallaby, warthog, wasp, wildebeest, wolverine, wombat, woodlouse, wren, yabby, zebu
    """
)
DISHES = phrases(
    """
    almonds, anchovies, artichokes, asparagus, avocado, bagels, bananas, beetroot, biryani, blackberries, blueberries,
    broccoli, brownies, butter, cabbage, carrots, cashews, cauliflower, celery, cherries, chickpeas, chutney, cinnamon,
    clams, coconut, couscous, crab, cranberries, crayfish, crumpets, cucumber, custard, doughnuts, eggplant, figs,
    fudge, garlic, ginger, gluten, gnocchi, goulash, granola, gravy, grits, guacamole, haggis, halloumi, hazelnuts,
    honey, hummus, jelly, kale, kebab, ketchup, kimchi, leeks, lentils, lettuce, licorice, lobster, macaroni,
    marmalade, meatballs, mozzarella, muffins, mushrooms, mussels, mustard, nougat, nutmeg, oatmeal, okra, olives,
    onions, oysters, paella, papaya, parsley, parsnips, pecans, pepper, pesto, pickles, pineapple, pistachios, plums,
    porridge, pretzels, prunes, pumpkin, quiche, quinoa, radishes, raisins, ratatouille, rhubarb, saffron, salami,
    sauerkraut, sausages, scallops, schnitzel, sesame, shrimp, spaghetti, spinach, squash, stuffing, sultanas,
    swordfish, tapioca, tempeh, toffee, truffles, turnips, vanilla, walnuts, wasabi, watercress, wheat, whitefish,
    yoghurt, zucchini
    """
)
RARE_WORDS = tuple(word for word in (*NICKNAMES, *WILD_ANIMALS, *DISHES) if len(word) > 3)
