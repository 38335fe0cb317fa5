"""Parts of error messages: "did you mean …?" for an unknown word, and values that are shortened.

`difflib` costs milliseconds to import and grows with the length of both words, so that it is imported only
after a mistake, and only the beginning of long words is compared.
"""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr

WORD_CHARACTERS_MAX = 100
"""How much of a misspelt word is compared: the time grows with the square of its length."""


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
    """Return the repr of a value; of a long one the middle is left out."""
    return _SHOWN.repr(value)
