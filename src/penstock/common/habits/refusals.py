"""The errors for a name, an argument or a statement that does not exist, with advice what to type.

This module is imported only after a mistake, when speed does not matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.common.habits.table import advice
from penstock.common.habits.unknown_names import described
from penstock.common.suggestions import did_you_mean
from penstock.errors import CallError, UnknownNameError


def unknown_name(place: str, name: str, owner: str, known: Sequence[str]) -> UnknownNameError:
    """Return the error for the attribute `name`, which `owner` lacks; `known` are the attributes it has.

    `place` is the section of the table of habits that may have advice.
    """
    return UnknownNameError(described(place, name, owner, known), name=name)


def wrong_call(
    call: Callable[..., Any], place: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> CallError | None:
    """Return the error for arguments that do not fit the signature of `call`; None if the arguments fit."""
    signature = inspect.signature(call)
    try:
        signature.bind(*arguments, **keywords)
    except TypeError as error:
        return CallError(_said(signature, place, arguments, keywords, str(error)))
    return None


def refuse_keywords(place: str, keywords: Iterable[str]) -> None:
    """Raise CallError for a keyword argument of another Kafka client that the section `place` has advice on.

    Use it for a call that itself accepts any keyword as a setting.

    Raises:
        CallError: a keyword is another client's; the message says what to type.
    """
    for name in keywords:
        said = advice(place, name)
        if said is not None:
            raise CallError(f"{_called(place)} has no argument {name!r}: {said}")


def _called(place: str) -> str:
    return place.removesuffix(".__init__").removesuffix(".__new__") + "()"


def _said(
    signature: inspect.Signature,
    place: str,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    pythons: str,
) -> str:
    """Return the error text for a wrong call, with advice; `pythons` is the text of Python's own error."""
    found = [each for each in signature.parameters.values() if each.name not in ("self", "cls", "_cls")]
    given_count = len(arguments) - (len(signature.parameters) - len(found))
    called = _called(place)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in found)
    names = [each.name for each in found if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    for name in keywords:
        if name not in names and not takes_any:
            said = advice(place, name)
            if said is not None:
                return f"{called} has no argument {name!r}: {said}"
            hint = did_you_mean(name, names)
            return f"{called} has no argument {name!r}{hint or _takes(found)}"
    places = [each for each in found if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    said = advice(place, "*")
    if given_count > len(places):
        hint = _takes(found) if said is None else f": {said}"
        most = f"{len(places)} at most" if places else "none"
        return f"{called} was given {given_count} arguments without a name, and takes {most}{hint}"
    return f"{called}: {pythons}{_takes(found) if said is None else f': {said}'}"


def _takes(parameters: Sequence[inspect.Parameter]) -> str:
    """Return the end of an error text: the arguments that a call takes, as a caller writes them."""
    words = []
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            words.append(f"*{each.name}")
        elif each.kind is each.KEYWORD_ONLY:
            words.append(f"{each.name}=")
        elif each.kind is not each.VAR_KEYWORD:
            words.append(each.name)
    return f"; it takes {', '.join(words)}" if words else "; it takes none"
