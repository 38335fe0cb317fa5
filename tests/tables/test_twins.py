"""Tests that the asyncio calls have the parameters of the blocking ones: names, types and defaults."""

from __future__ import annotations

import inspect

import pytest

import penstock

NOT_ASYNC = {
    "protocol": "Kafka 0.7 is read by blocking calls alone",
    "progress": "a bar would be drawn by a thread of its own beside the loop",
}
"""A dict from each parameter that only blocking calls have to the reason."""

ASYNC_DATA = " | AsyncIterable[Tabular]"


def parameters_of(name: str) -> dict[str, tuple[object, str, object]]:
    """Return a dict from each parameter of a call to its kind, annotation and default."""
    found = inspect.signature(getattr(penstock, name)).parameters.values()
    return {each.name: (each.kind, str(each.annotation), each.default) for each in found}


@pytest.mark.parametrize("name", ["read_topic", "scan_topic", "write_topic"])
def test_both_kinds_of_a_call_have_the_same_parameters(name: str) -> None:
    blocking, asynchronous = parameters_of(name), parameters_of(f"{name}_async")
    for only in NOT_ASYNC:
        blocking.pop(only, None)
    if "data" in asynchronous:
        kind, annotation, default = asynchronous["data"]
        assert annotation.endswith(ASYNC_DATA)
        asynchronous["data"] = (kind, annotation.removesuffix(ASYNC_DATA), default)
    assert list(asynchronous.items()) == list(blocking.items())


def test_every_call_for_asyncio_is_compared() -> None:
    asynchronous = {name for name in dir(penstock) if name.endswith("_async")}
    assert asynchronous == {"read_topic_async", "scan_topic_async", "write_topic_async"}
