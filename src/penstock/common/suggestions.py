"""Parts of error messages: "did you mean …?" for an unknown word, and values that are shortened.

`difflib` takes milliseconds to import, and the time of its comparisons grows with the length of both words:
it is imported only after a mistake, and only the beginnings of long words are compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr

WORD_CHARACTERS_MAX = 100
"""The number of characters of a misspelt word that are compared: the time grows with the length squared."""


def nearest(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return up to `count` of the `known` words that are similar to `word`, the most similar one first."""
    from difflib import get_close_matches

    return get_close_matches(word[:WORD_CHARACTERS_MAX], list(known), n=count, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str], count: int = 1, *, quoted: bool = False) -> str:
    """Return ``; did you mean x or y?`` with the similar words, or an empty text if there are none.

    `quoted` puts the words in quotes.
    """
    near = nearest(word, known, count)
    if not near:
        return ""
    return "; did you mean " + " or ".join(repr(match) if quoted else match for match in near) + "?"


_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 60
_SHOWN.maxlong = 40


def short_repr(value: object) -> str:
    """Return the repr of a value, without the middle part if it is long."""
    return _SHOWN.repr(value)
