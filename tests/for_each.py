"""A decorator that makes one test of many cases: every case runs, and all failures are listed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

SHOWN = 20
"""The number of failures that are printed; further ones are only counted."""


def for_each(cases: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that makes one test of a function and its cases, passed as first argument.

    A case that is a tuple gives several arguments. pytest takes a millisecond or more to collect, schedule
    and report a test; for all cases together this is needed once. Further arguments of the function are
    fixtures, made once for all cases.

    Args:
        cases: the cases for which the function runs; at least one.
        name: returns the text that names a failing case.
    """
    known = list(cases)
    assert known, "a law without a case cannot fail"

    def decorate(law: Callable[..., None]) -> Any:
        taken = len(known[0]) if type(known[0]) is tuple else 1

        @functools.wraps(law)
        def test(**fixtures: Any) -> None:
            failures = []
            for case in known:
                try:
                    law(*(case if type(case) is tuple else (case,)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    failures.append(f"{name(case)}: {type(error).__name__}: {error}")
            if failures:
                rest = [f"and {len(failures) - SHOWN} more"] if len(failures) > SHOWN else []
                pytest.fail(
                    "\n".join([f"{len(failures)} of {len(known)}:", *failures[:SHOWN], *rest]), pytrace=False
                )

        parameters = list(inspect.signature(law).parameters.values())[taken:]
        test.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return test

    return decorate
