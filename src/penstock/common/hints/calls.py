"""What has a call answer arguments of other clients: a `CallError`, a `TypeError`, with what to type.

The words are in the table of `penstock.common.habits`, which is read after a mistake only.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])


def hinted(place: str) -> Callable[[Call], Call]:
    """A decorator of a function: arguments that do not fit are answered with what to type."""

    def decorate(call: Call) -> Call:
        @functools.wraps(call)
        async def asynchronous(*arguments: Any, **keywords: Any) -> Any:
            try:
                return await call(*arguments, **keywords)
            except TypeError:
                refuse(call, place, arguments, keywords)
                raise

        @functools.wraps(call)
        def plain(*arguments: Any, **keywords: Any) -> Any:
            try:
                return call(*arguments, **keywords)
            except TypeError:
                refuse(call, place, arguments, keywords)
                raise

        made: Any = asynchronous if inspect.iscoroutinefunction(call) else plain
        explaining: Call = made
        return explaining

    return decorate


def refuse(
    call: Callable[..., Any], place: str, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """Raise the error for a call whose arguments do not fit; return where they do.

    Raises:
        CallError: what does not fit, and what to type.
    """
    error = refusals().wrong_call(call, place, arguments, keywords)
    if error is not None:
        raise error from None


NOT_GIVEN: Any = object()
"""In place of an argument that has to be given, and was not."""


def without_strays(call: Call) -> Call:
    """A decorator of a method that itself takes what does not fit, as `strays` and `others`.

    For what is called so often that one more call would be felt. Both are left out of the signature that
    `help`, editors and mocks see. Arguments that have to be given are `NOT_GIVEN` where they are not: for
    all that does not fit, the method calls `refuse_strays`.
    """
    signature = inspect.signature(call)
    kept = [each for name, each in signature.parameters.items() if name not in ("strays", "others")]
    needed = [each for each in kept[1:] if each.default is each.empty]
    made: Any = call
    made.__signature__ = signature.replace(parameters=kept)
    made.__defaults__ = (*[NOT_GIVEN] * len(needed), *(made.__defaults__ or ()))
    return call


def refuse_strays(
    call: Callable[..., Any], place: str, given: Sequence[Any], others: Mapping[str, Any]
) -> None:
    """Raise the error for what a method `without_strays` was given and does not take, or was not given.

    Raises:
        CallError: what does not fit, and what to type.
    """
    count = next((at for at, each in enumerate(given) if each is NOT_GIVEN), len(given))
    refuse(call, place, given[:count], others)


def refusals() -> Any:
    """The module with the errors, by its name: the nouns of their types have hints themselves."""
    return importlib.import_module("penstock.common.habits.refusals")
