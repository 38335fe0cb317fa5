"""Make one test of a law and its cases: every case runs, and all that fail are listed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

SHOWN = 20
"""How many failures are printed; the rest are counted."""


def for_each(cases: Iterable[Any], name: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Return a decorator that runs a law for every case, the law's first argument (a tuple: its first ones).

    pytest collects, schedules and reports each test by itself, which costs a millisecond and more. A law over
    every message or module costs that once. Further arguments of the law are fixtures, made once for all.

    Args:
        cases: what the law is held to; at least one.
        name: gives the words by which a failing case is listed.
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
