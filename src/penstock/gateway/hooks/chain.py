"""`Hooks`: the hooks of a gateway in order, and the handling of a request that passes through them.

Requests pass through hooks in order, responses in reverse order. `on_batches` is called last before a request
is sent to the cluster, and first after its response, so that it gets the topic names of the cluster. This
module does no I/O: a generator handles each request; it yields calls to the cluster, and the caller sends it
the responses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import PenstockError
from penstock.gateway.calls import HangUp, NodeCall, PassedOn, Rest, Silence
from penstock.gateway.hooks.asked import HookedRequest
from penstock.gateway.hooks.hook import UNHOOKED, Client, ClientRequest, Hook, Refused
from penstock.gateway.hooks.names import topic_ids_in
from penstock.gateway.hooks.partitions import changed_produce, changed_responses, with_refusals
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_response
from penstock.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from penstock.protocol.since import METADATA_TOPIC_IDS_SINCE

if TYPE_CHECKING:
    from penstock.broker.faults.faults import Faults
    from penstock.gateway.hooks.asked import Steps
    from penstock.gateway.hooks.hook import OnBatches, OnRequest, OnResponse

TOPIC_NAMES_MAX = 10_000
"""The most topic names that are cached, by topic id. Beyond this number, the whole cache is cleared."""


class Chain(NamedTuple):
    """The functions of all hooks for one API, in the order in which they are called."""

    on_request: tuple[OnRequest, ...]
    on_response: tuple[OnResponse, ...]
    on_batches: tuple[OnBatches, ...]
    blocks: bool


NO_CHAIN = Chain((), (), (), False)


class Hooks:
    """The hooks of one gateway, in order. Hooks can be added from any thread."""

    def __init__(self, hooks: Iterable[Hook] = ()) -> None:
        self.keys: frozenset[int] = frozenset()
        """The keys of APIs that have hooks or faults. Thread-safe: changes replace the whole set."""
        self.faults: Faults | None = None
        self._numbers = itertools.count(1)
        self._hooks: tuple[Hook, ...] = tuple(hooks)
        self._chains: dict[int, Chain] = {}
        self._topic_names: dict[bytes, str] = {}
        self.renew()

    def add(self, hook: Hook) -> None:
        """Add a hook after the existing ones."""
        self._hooks = (*self._hooks, hook)
        self.renew()

    def faults_of(self) -> Faults:
        """Return the object that holds the faults to inject at this gateway; create it on the first call."""
        if self.faults is None:
            from penstock.broker.faults.faults import Faults

            self.faults = Faults(self.renew)
        return self.faults

    def renew(self) -> None:
        """Recompute which APIs have hooks or faults, after hooks or faults have changed."""
        chains = {}
        for key in API_TABLE:
            asked = [each for each in self._hooks if key in each.keys_of_requests]
            batched = [each for each in self._hooks if key in each.keys_of_batches]
            if asked or batched:
                chains[key] = Chain(
                    tuple(each.on_request for each in asked if each.on_request is not None),
                    tuple(each.on_response for each in reversed(asked) if each.on_response is not None),
                    tuple(each.on_batches for each in batched if each.on_batches is not None),
                    any(each.blocks for each in (*asked, *batched)),
                )
        self._chains = chains
        keys = set(chains)
        for fault in self.faults.active if self.faults is not None else ():
            own = fault.target.key
            keys |= (API_TABLE.keys() if own is None else {own}) - UNHOOKED
        self.keys = frozenset(keys)

    def client_of(self, peer: str, software: tuple[str, str], client_id: str, number: int) -> Client:
        """Return the `Client` object that hook functions get for a connection.

        `number` is the number of the connection; 0 assigns the next free number.
        """
        address, _, port = peer.rpartition(":")
        return Client(address, int(port), *software, client_id, number or next(self._numbers))

    def may_block(self, key: int) -> bool:
        """Return True if functions for an API may block, so that they run in a thread."""
        return self._chains.get(key, NO_CHAIN).blocks

    def steps(self, asked: HookedRequest) -> Steps:
        """Return the generator that passes a request through injected faults and hooks to the cluster."""
        if self.faults is not None and self.faults.active:
            from penstock.gateway.hooks.fault_steps import suffering

            return suffering(asked, self.faults, self)
        return self.answered(asked, asked.read)

    def answered(self, asked: HookedRequest, read: Callable[[], Any], *, may_pass: bool = True) -> Steps:
        """Return the generator that passes a request through the hooks and to the cluster, without faults.

        `read` returns the decoded request. Without `may_pass` the generator never returns `PassedOn`.
        """
        if asked.is_translated:
            return self._translated(asked, read)
        request = ClientRequest(asked.key, asked.version, asked.version, asked.client, read)
        return self._exchange(asked, request, None, may_pass=may_pass)

    def _translated(self, asked: HookedRequest, read: Callable[[], Any]) -> Steps:
        inner = asked.translation.translate(asked.key, asked.version, read(), asked.upstream)
        answer: Any = None
        while True:
            try:
                call = inner.send(answer)
            except StopIteration as end:
                return end.value
            if call.api_key not in self._chains:
                answer = yield call
                continue
            request = ClientRequest(
                call.api_key, call.version, asked.version, asked.client, partial(_same, call.message)
            )
            answer = yield from self._exchange(asked, request, call.node_id, may_pass=False)
            if isinstance(answer, (Silence, HangUp)):
                inner.close()
                return answer

    def _exchange(
        self, asked: HookedRequest, request: ClientRequest, node_id: int | None, *, may_pass: bool
    ) -> Steps:
        """Pass one request through the hooks and to the cluster; return its response or another outcome."""
        chain = self._chains.get(request.key, NO_CHAIN)
        try:
            for before in chain.on_request:
                answer = before(request)
                if request.end:
                    return _end_of(request)
                if request.delay_s:
                    yield from _delay(request)
                if answer is not None:
                    return answer
            refusals: Any = None
            if chain.on_batches and request.key == ApiKey.PRODUCE:
                names = yield from self.topic_names(asked, request.message, request.version)
                refusals = changed_produce(request, names, chain.on_batches)
                if refusals is not None and not request.message.acks:
                    return HangUp("a hook refuses records that are sent without acknowledgement")
                if refusals is not None and not request.message.topic_data:
                    return with_refusals(None, refusals)
            needs_answer = chain.on_response or chain.on_batches
            if may_pass and not (request.is_decoded or needs_answer):
                return PassedOn()
            response = yield NodeCall(request.key, request.version, request.message, node_id)
            if response is None:
                return None
            if refusals is not None:
                response = with_refusals(response, refusals)
            if chain.on_batches and request.key != ApiKey.PRODUCE:
                names = yield from self.topic_names(asked, response, request.version)
                changed_responses(request, response, names, chain.on_batches, asked.caught)
            for after in chain.on_response:
                changed = after(request, response)
                response = response if changed is None else changed
                if request.end:
                    return _end_of(request)
                if request.delay_s:
                    yield from _delay(request)
            return response
        except Refused as error:
            return refusal(request.key, request.version, request.message, error.code, error.reason)
        except Exception:
            asked.caught(f"a hook for {request!r}")
            text = "a hook of the gateway has failed; its log says why"
            return refusal(
                request.key, request.version, request.message, ErrorCode.UNKNOWN_SERVER_ERROR, text
            )

    def topic_names(self, asked: HookedRequest, message: Any, version: int) -> Steps:
        """Return topic names by the topic ids in a message; look up unknown ones by a Metadata request."""
        ids = topic_ids_in(message, version)
        unknown = [each for each in ids if each not in self._topic_names]
        low, high = asked.upstream.get(ApiKey.METADATA, (0, -1))
        if unknown and low <= METADATA_TOPIC_IDS_SINCE <= high:
            if len(self._topic_names) + len(unknown) > TOPIC_NAMES_MAX:
                self._topic_names.clear()
            question = MetadataRequest(
                topics=[MetadataRequestTopic(topic_id=each, name=None) for each in unknown],
                allow_auto_topic_creation=False,
            )
            answer = yield NodeCall(ApiKey.METADATA, METADATA_TOPIC_IDS_SINCE, question)
            for topic in answer.topics:
                if topic.name and not topic.error_code:
                    self._topic_names[topic.topic_id] = topic.name
        return {each: self._topic_names[each] for each in ids if each in self._topic_names}


def _same(message: Any) -> Any:
    return message


def _end_of(request: ClientRequest) -> Silence | HangUp:
    return Silence() if request.end == "drop" else HangUp("a hook closes the connection")


def _delay(request: ClientRequest) -> Steps:
    yield Rest(request.delay_s)
    request.delay_s = 0.0


def refusal(key: int, version: int, message: Any, code: int, reason: str) -> Any:
    """Return the error response to a request, or a `HangUp` if the API's response has no error field."""
    if key == ApiKey.PRODUCE and not message.acks:
        return HangUp(f"a Produce without acknowledgement is refused: {reason}")
    try:
        return error_response(key, version, message, code, reason or None)
    except (PenstockError, AttributeError):
        return HangUp(f"{API_TABLE[key].name} has no place for an error: {reason}")
