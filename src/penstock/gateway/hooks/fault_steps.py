"""Injected faults in front of a real cluster: how the gateway handles a request that a fault affects.

The faults, and the responses with error codes, are those of `penstock.testing`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.broker.context import CloseConnection
from penstock.broker.faults.answers import failing
from penstock.broker.faults.damage import damaged
from penstock.broker.faults.requests import Request
from penstock.gateway.calls import Damaged, HangUp, Overtaken, Rest, Silence
from penstock.protocol.framing import RequestHeader

if TYPE_CHECKING:
    from penstock.broker.faults.faults import Fault, Faults
    from penstock.gateway.hooks.asked import Answering, HookedRequest, Steps


def suffering(asked: HookedRequest, faults: Faults, hooks: Answering) -> Steps:
    """Apply the injected faults to a request, and pass it through the hooks unless a fault drops it.

    Raises:
        DecodeError: the request cannot be decoded.
    """
    message = asked.read()
    names = yield from hooks.topic_names(asked, message, asked.version)
    header = RequestHeader(asked.key, asked.version, asked.correlation_id, asked.client.client_id)
    request = Request(header, message, asked.client.connection, names.get)
    happening = faults.happening_to(request)
    before = {fault.kind: fault for fault in happening if not fault.applied}
    after = {fault.kind: fault for fault in happening if fault.applied}
    if "drop" in before:
        return Silence()
    if "close" in before:
        return HangUp("a fault", before["close"].reset)
    if "reorder" in before:
        yield Overtaken(before["reorder"].seconds)
    elif "delay" in before:
        yield Rest(before["delay"].seconds)
    answer = yield from _answered(asked, request, happening, hooks, may_pass=not after)
    if isinstance(answer, (Silence, HangUp)):
        return answer
    if "drop" in after:
        return Silence()
    if "close" in after:
        return HangUp("a fault", after["close"].reset)
    if answer is None:
        return None
    if "corrupt" in after:
        damage = after["corrupt"].damage
        return Damaged(answer, lambda whole: damaged(whole, damage, request), damage == "cut")
    if "reorder" in after:
        yield Overtaken(after["reorder"].seconds)
    elif "delay" in after:
        yield Rest(after["delay"].seconds)
    return answer


def _answered(
    asked: HookedRequest, request: Request, happening: list[Fault], hooks: Answering, *, may_pass: bool
) -> Steps:
    """Return the response to a request, in which injected faults may have set error codes."""
    failures = [fault for fault in happening if fault.kind == "fail"]
    if not failures:
        return (yield from hooks.answered(asked, asked.read, may_pass=may_pass))
    message = asked.read()
    answerer = failing(request, failures)
    question = answerer.question(message)
    real: Any = None
    if question is not None:
        real = yield from hooks.answered(asked, partial(_same, question), may_pass=False)
        if isinstance(real, (Silence, HangUp)):
            return real
    try:
        return answerer.answer(message, real)
    except CloseConnection as error:
        return HangUp(str(error))


def _same(message: Any) -> Any:
    return message
