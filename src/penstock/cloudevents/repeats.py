"""A cache of results for texts that repeat between events: sources, types, media types."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

CHARACTERS_MAX = 4 << 20
"""The number of characters (or bytes) of new texts after which a cache is emptied, since peers may send long
texts."""


def remembered(maxsize: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator like `functools.lru_cache` for functions of texts, which also limits memory."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        spent = 0

        def find_out(*texts: P.args, **none: P.kwargs) -> R:
            # Runs only for texts that are new, so the limit costs nothing where texts repeat.
            nonlocal spent
            spent += sum(len(text) for text in texts if isinstance(text, (str, bytes)))
            if spent > CHARACTERS_MAX:
                cached.cache_clear()
                spent = 0
            return function(*texts, **none)

        cached = lru_cache(maxsize=maxsize)(find_out)
        return cast("Callable[P, R]", cached)

    return decorate
