"""Advice for users of other Kafka clients: errors for wrong names and arguments say what to type.

Errors for statements, such as ``async with`` for a blocking client, have advice, too. The texts are in the
table of `penstock.common.habits`, which is read only after a mistake. The errors are `AttributeError` or
`TypeError` as usual, so that `hasattr`, `copy`, `pickle` and mocks work.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type[Any])


def hinted(place: str) -> Callable[[Call], Call]:
    """Return a decorator for a function: a call with wrong arguments raises CallError with advice.

    `place` is the function's section in the table of `penstock.common.habits`.
    """

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
    """Raise CallError if `arguments` and `keywords` do not fit the signature of `call`; else return None.

    Raises:
        CallError: the arguments do not fit; the message says what to type.
    """
    error = refusals().wrong_call(call, place, arguments, keywords)
    if error is not None:
        raise error from None


NOT_GIVEN: Any = object()
"""The default of a required parameter in a method decorated with `without_strays`."""


def without_strays(call: Call) -> Call:
    """Return the method, with its parameters `*strays` and `**others` hidden from its public signature.

    A method that is called very often collects wrong arguments in these two parameters and calls
    `refuse_strays` for them, which is faster than a wrapper. `help`, editors and mocks see the signature
    without them. Required parameters get the default `NOT_GIVEN`.
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
    """Raise CallError for wrong arguments of a method decorated with `without_strays`.

    Raises:
        CallError: the arguments do not fit; the message says what to type.
    """
    count = next((at for at, each in enumerate(given) if each is NOT_GIVEN), len(given))
    refuse(call, place, given[:count], others)


def refusals() -> Any:
    """Import and return `penstock.common.habits.refusals`, late because its error types use this module."""
    return importlib.import_module("penstock.common.habits.refusals")


def with_hints(place: str, *, leave: Collection[str] = ()) -> Callable[[Kind], Kind]:
    """Return a decorator for a class: unknown names and arguments raise errors with advice.

    `place` is the class's section in the table of `penstock.common.habits`. Methods in `leave` are not
    wrapped, because they are called for each record.
    """

    def decorate(kind: Kind) -> Kind:
        kind.__getattr__ = _getattr(place)
        if issubclass(kind, tuple):
            of_tuples: Any = kind
            of_tuples.__getitem__ = _getitem(place)
        # A class of tuples takes its arguments in __new__.
        constructor = "__new__" if issubclass(kind, tuple) else "__init__"
        for name in [constructor, *(name for name in dir(kind) if not name.startswith("_"))]:
            found = inspect.getattr_static(kind, name)
            is_ours = inspect.isfunction(found) and (found.__module__ or "").startswith("penstock")
            if (is_ours or name == constructor) and name not in leave and callable(found):
                setattr(kind, name, hinted(f"{place}.{name}")(found))
        for name, said in STATEMENTS.get(place, {}).items():
            setattr(kind, name, MissingMethod(said) if "enter" in name else _refusing(f"{place}: {said}"))
        return kind

    return decorate


def _getattr(place: str) -> Callable[[Any, str], Any]:
    """Return a `__getattr__` that raises UnknownNameError with advice."""

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            if name.startswith("_") or hasattr(type(self), name):
                raise
        raise refusals().unknown_name(place, name, f"{type(self).__name__!r} object", dir(self)) from None

    return __getattr__


def _getitem(place: str) -> Callable[[Any, Any], Any]:
    """Return a `__getitem__` for tuple classes: an index that is a name raises CallError with advice.

    Other clients' records accept names. Attributes, iteration and unpacking do not use `__getitem__`.
    """

    def __getitem__(self: Any, index: Any) -> Any:  # noqa: N807
        if not isinstance(index, str):
            return tuple.__getitem__(self, index)
        owner = type(self).__name__
        if index in self._fields:
            raise refusals().CallError(f"{owner}[{index!r}] is not there: write .{index}")
        error = refusals().unknown_name(place, index, f"{owner!r} object", dir(self))
        raise refusals().CallError(str(error))

    return __getitem__


class MissingMethod:
    """A descriptor for a method that a class lacks, such as `__enter__`: reading it raises UnknownNameError.

    The error is an `AttributeError`, so that for all other code the object does not have the method.
    """

    def __init__(self, said: str) -> None:
        self._said = said

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise refusals().UnknownNameError(f"{owner.__name__}: {self._said}")


def _refusing(said: str) -> Callable[[Any], NoReturn]:
    """Return a method that raises CallError with the advice `said`, for methods such as `__iter__`.

    `MissingMethod` does not help for these methods: Python drops an exception that the lookup of such a
    method raises.
    """

    def refuse_iteration(self: Any) -> NoReturn:
        raise refusals().CallError(said)

    return refuse_iteration


def _async_with(name: str) -> str:
    return (
        f"this is the blocking client: write with {name}(...), or, for asyncio, "
        f"async with Async{name}(...) (from penstock import Async{name})"
    )


def _plain_with(name: str) -> str:
    return (
        f"this is the client for asyncio: write async with Async{name}(...), or, without asyncio, "
        f"with {name}(...) (from penstock import {name})"
    )


STATEMENTS: dict[str, dict[str, str]] = {
    **{name: {"__aenter__": _async_with(name)} for name in ("Producer", "Admin")},
    **{f"Async{name}": {"__enter__": _plain_with(name)} for name in ("Producer", "Admin")},
    "Consumer": {
        "__aenter__": _async_with("Consumer"),
        "__aiter__": "this is the blocking client: write for record in consumer, or use AsyncConsumer",
        "__next__": "write for record in consumer, next(iter(consumer)), or consumer.poll(max_records=1)",
    },
    "AsyncConsumer": {
        "__enter__": _plain_with("Consumer"),
        "__iter__": "this is the client for asyncio: write async for record in consumer, or use Consumer",
        "__anext__": "write async for record in consumer, or await consumer.poll(max_records=1)",
    },
}
"""A dict from class to the special methods that the class lacks because they serve the other kind of
statement (``async with`` for a blocking client, ``with`` for an asyncio client, ...), and the advice for
each."""
