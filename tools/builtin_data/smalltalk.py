"""Greetings, manners, moods and questions about the model itself."""

from __future__ import annotations

from tools.builtin_data.exchange import Exchange
from tools.builtin_data.identity import IDENTITY
from tools.builtin_data.manners import MANNERS
from tools.builtin_data.moods import MOODS
from tools.builtin_data.senses import SENSES

EXCHANGES: tuple[Exchange, ...] = (*MANNERS, *MOODS, *IDENTITY, *SENSES)
BY_KEY = {exchange.key: exchange for exchange in EXCHANGES}
