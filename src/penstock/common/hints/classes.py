"""What has a class answer habits of other clients: names, arguments and statements that it does not have.

They end in an error with what to type (`penstock.common.habits.table`). It is an `AttributeError` or a
`TypeError` as ever, so that `hasattr`, `copy`, `pickle` and mocks work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Any, NoReturn, TypeVar

from penstock.common.hints.calls import hinted, refusals

Kind = TypeVar("Kind", bound=type[Any])


def with_hints(place: str, *, leave: Collection[str] = ()) -> Callable[[Kind], Kind]:
    """A decorator of a class: names and arguments that it does not have are answered with what to type.

    `place` is its section in the table. Methods in `leave` stay as they are: what is called for each record.
    """

    def decorate(kind: Kind) -> Kind:
        kind.__getattr__ = _getattr(place)
        # A class of tuples takes its arguments in __new__.
        constructor = "__new__" if issubclass(kind, tuple) else "__init__"
        for name in [constructor, *(name for name in dir(kind) if not name.startswith("_"))]:
            found = inspect.getattr_static(kind, name)
            is_ours = inspect.isfunction(found) and (found.__module__ or "").startswith("penstock")
            if (is_ours or name == constructor) and name not in leave and callable(found):
                setattr(kind, name, hinted(f"{place}.{name}")(found))
        for name, said in STATEMENTS.get(place, {}).items():
            setattr(kind, name, Refused(said) if "enter" in name else _refusing(f"{place}: {said}"))
        return kind

    return decorate


def _getattr(place: str) -> Callable[[Any, str], Any]:
    """A `__getattr__`, which Python calls for what it has not found."""

    def __getattr__(self: Any, name: str) -> Any:  # noqa: N807
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            if name.startswith("_") or hasattr(type(self), name):
                raise
        raise refusals().unknown_name(place, name, f"{type(self).__name__!r} object", dir(self)) from None

    return __getattr__


class Refused:
    """Stands where a ``with`` statement looks for what it calls, and raises what to write when looked at.

    That is an `AttributeError`: the object does not have the method, for everything else.
    """

    def __init__(self, said: str) -> None:
        self._said = said

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise refusals().UnknownNameError(f"{owner.__name__}: {self._said}")


def _refusing(said: str) -> Callable[[Any], NoReturn]:
    """A method for a statement that iterates: Python drops the text of another error there."""

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
"""What Python looks for in each class for a statement that needs the other one, and what to write."""
