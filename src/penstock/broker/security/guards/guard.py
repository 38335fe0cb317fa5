"""Code that all guards share: their signature, and functions to split requests and complete responses."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.error_response import error_entries, error_response
from penstock.protocol.field_values import NOT_ASKED
from penstock.security.acls import FITTING_OPERATIONS, ResourceType

if TYPE_CHECKING:
    from penstock.broker.context import Context
    from penstock.broker.security.authorizer import Rights


MESSAGES = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Transactional Id authorization failed.",
}
"""A dict from error code to the message of a refusal, for responses with an error message field."""

WITHOUT_MESSAGE = (ApiKey.PRODUCE, ApiKey.DESCRIBE_GROUPS, ApiKey.DELETE_GROUPS)
"""APIs whose responses have an error message field, which Apache Kafka leaves empty in refusals."""

REFUSALS = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""A dict from resource type to the authorization error code for it, such as TOPIC_AUTHORIZATION_FAILED."""

T = TypeVar("T")


class Asking(NamedTuple):
    """The second argument of a guard: the request's context, the client's rights, and the handler to call."""

    key: int
    """The API key of the request."""
    context: Context[Any]
    rights: Rights
    proceed: Callable[[Any], Any]
    """A function that calls the handler with a request, and returns the response, a `Wait` or None."""

    def refuse(self, request: Any, code: ErrorCode) -> Any:
        """Return the response to a request that is refused as a whole."""
        return error_response(self.key, self.context.version, request, code, self._message(code))

    def refused(self, field: str, items: Iterable[object], code: ErrorCode) -> list[Any]:
        """Return error entries for the request's refused `items`, for the list `field` of the response."""
        return error_entries(self.key, self.context.version, field, items, code, self._message(code))

    def _message(self, code: ErrorCode) -> str | None:
        return None if self.key in WITHOUT_MESSAGE else MESSAGES.get(code)

    def then(self, request: Any, complete: Callable[[Any], Any]) -> Any:
        """Call the handler; apply `complete` to its response, at once or when a `Wait` ends."""
        from penstock.broker.interceptors import when_answered

        return when_answered(self.proceed(request), complete)

    def partly(
        self, request: Any, field: str, allowed: list[Any], answer_field: str, refused: Sequence[Any]
    ) -> Any:
        """Call the handler with the allowed part of a request, and add refused entries to the response."""
        if not refused:
            return self.proceed(request)
        return self.then(with_fields(request, **{field: allowed}), extended(answer_field, refused))

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id, or None if no topic has this id."""
        topic = self.context.node.cluster.topics_by_id.get(topic_id)
        return None if topic is None else topic.name


Guard = Callable[[Any, Asking], Any]
"""A function that gets a request and its `Asking`, and returns a response, a `Wait` or None, like a handler.
"""


def with_fields(request: T, **fields: object) -> T:
    """Return a shallow copy of a request with some fields replaced."""
    changed = copy.copy(request)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def split(items: Iterable[T], is_allowed: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return a list of the allowed items and a list of the refused ones, both in the original order."""
    allowed: list[T] = []
    refused: list[T] = []
    for item in items:
        (allowed if is_allowed(item) else refused).append(item)
    return allowed, refused


def masked(operations: int, rights: Rights, resource_type: ResourceType, name: str) -> int:
    """Return the authorized-operations field for `rights`; `operations` is the handler's value."""
    if operations == NOT_ASKED:
        return operations
    return rights.operations(resource_type, name) & FITTING_OPERATIONS[resource_type]


def extended(field: str, more: Sequence[Any]) -> Callable[[Any], Any]:
    """Return a function that adds the entries `more` to the list `field` of a response."""

    def complete(response: Any) -> Any:
        if response is not None and more:
            # The list may be shared: handlers use one empty list for many responses.
            setattr(response, field, [*getattr(response, field), *more])
        return response

    return complete
