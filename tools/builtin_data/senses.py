# ruff: noqa: E501 - patterns and sentences stand on one line each
"""What the model cannot see or hear: clocks, weather, other languages."""

from __future__ import annotations

from tools.builtin_data.exchange import Exchange

SENSES = (
    Exchange(
        "languages",
        (
            "[do|can] you [speak|understand|know|write|talk] [german|french|spanish|italian|chinese|japanese|russian|other languages|any other language|polish|portuguese|arabic|hindi|turkish|korean|dutch]?",
            "[what|which|how many] languages do you [speak|know|understand]?",
            "what is your language?",
            "do you speak english?",
        ),
        ("I speak only a little English. For other languages, try a larger model: `localrun pull qwen3-4b`.",),
        1.0,
    ),
    Exchange(
        "date",
        (
            "[what is the time|what time is it|what day is it|what is the date|what's the date|what is today's date|what year is it|what date is it today|tell me the time|what day is today|what month is it|what's the time|do you know what time it is|is it monday|what time is it now|which year do we have]",
        ),
        ("I cannot see a clock or a calendar from here, sorry.",),
        1.0,
    ),
    Exchange(
        "weather",
        (
            "[how is|what is|what's|whats|how's] the [weather|forecast|temperature outside] [going to be |gonna be |supposed to be |][like |][on monday|on sunday|at the coast|next week|tonight|this afternoon|tomorrow morning|in july|in berlin|for my trip|over the holidays|the coming days|]?",
            "what [will|is] the weather [be |do |][like |][on saturday|tomorrow evening|next month|tonight|this week|in rome|at easter|]?",
            "[will|is] it [going to |gonna |][rain|snow|storm|freeze|get cold|get warm|be windy|be foggy|clear up] [tonight|on the weekend|on friday|next week|in hamburg|later|this evening|during my holiday]?",
            "[should i take|do i need] [a coat|an umbrella|a jacket|sunglasses|warm clothes] [today|tomorrow|tonight|this weekend|]?",
            "[how|is it] [warm|cold|hot|wet|windy] [is it |][outside|right now|in london|tomorrow|today]?",
            "[weather|forecast|temperature] [tomorrow|today|this week|in berlin|in new york|for sunday|now|at home]",
            "[what's|what is|whats|tell me] the [latest news|news|headlines|news today|score|score of the game|traffic like|pollen count|exchange rate|price of gas|oil price|gold price|price of bitcoin|euro today|share price of tesla] [today|now|right now|this morning|please|]?",
            "[what|which] [is on tv|is on at the cinema|is happening in the world|happened today|happened yesterday|is going on in politics|movies are playing|concerts are on] [tonight|today|this weekend|right now|]?",
            "who [won|plays|is playing|scored|is winning] [today|yesterday|tonight|last night|the game today|the race on sunday|the match]?",
            "[is|are] [the shop|the bank|the library|the post office|the supermarket|shops|the museum] [open|closed] [today|now|on sunday|right now|tomorrow|]?",
            "[when|what time] does the [next train|bus|next bus|last train|plane|ferry|film|match|sun|shop] [leave|go|come|start|land|set|rise|open|close] [today|tomorrow|tonight|]?",
            "[how much|what] does [a ticket|petrol|a flight to rome|a taxi|the train|one bitcoin|a hotel in paris|bread] cost [today|now|right now|at the moment|this weekend]?",
            "[how is|what's|how's] [the traffic|the dollar|the market|the stock market|tesla stock|bitcoin] [doing|today|now|right now|doing today|]?",
            "[how is|what is|what's|how's] the weather [like|today|tomorrow|outside|here|in london|in paris|now|like today|]?",
            "[will|is] it [rain|raining|snow|snowing|be sunny|sunny|cold|warm|be cold] [today|tomorrow|outside|]?",
            "[do i need an umbrella|weather|weather forecast|the weather|temperature outside|what is the news|any news|what's in the news today|latest news|who won the game last night|what is the stock price of apple|bitcoin price]",
        ),
        ("I cannot see the world outside or the internet, so I do not know. I only run on your machine.",),
        2.4,
    ),
)
