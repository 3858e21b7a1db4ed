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
            "[how is|what is|what's|how's] the weather [like|today|tomorrow|outside|here|in london|in paris|now|like today|]?",
            "[will|is] it [rain|raining|snow|snowing|be sunny|sunny|cold|warm|be cold] [today|tomorrow|outside|]?",
            "[do i need an umbrella|weather|weather forecast|the weather|temperature outside|what is the news|any news|what's in the news today|latest news|who won the game last night|what is the stock price of apple|bitcoin price]",
        ),
        ("I cannot see the world outside or the internet, so I do not know. I only run on your machine.",),
        1.2,
    ),
)
