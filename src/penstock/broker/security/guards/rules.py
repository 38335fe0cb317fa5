"""Guards defined by data: the rights for a whole request, and for each resource that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.broker.security.guards.guard import REFUSALS, split, with_fields
from penstock.security.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from penstock.broker.security.guards.guard import Asking

NEVER = 1 << 15
"""A version above those of all APIs: the value of `Each.ids_since` if no version uses ids."""


class Need(NamedTuple):
    """A right required for a whole request: the principal may do one of `operations` on the resource."""

    resource_type: ResourceType
    operations: tuple[Operation, ...]
    field: str | None = None
    """The field of the request that has the resource's name; None if the resource is the cluster."""

    def is_met(self, request: Any, asking: Asking) -> bool:
        """Return True if the principal may do at least one of the operations on the request's resource."""
        name = CLUSTER_NAME if self.field is None else getattr(request, self.field)
        return any(asking.rights.allows(each, self.resource_type, name) for each in self.operations)


class Each(NamedTuple):
    """A right that is required for each resource in a list of the request; each refused one gets an error."""

    resource_type: ResourceType
    operation: Operation
    field: str
    """The field of the request that lists the resources."""
    answer: str
    """The field of the response that lists the results."""
    name: str | None = "name"
    """The field of a list item that has the resource's name; None if the items are the names."""
    ids_since: int = NEVER
    """The first version of the API whose requests have topic ids. The guard passes unknown ids to the
    handler.
    """

    def may(self, item: Any, asking: Asking) -> bool:
        """Return True if the principal may do the operation on the resource that an item names."""
        if asking.context.version >= self.ids_since:
            found = asking.topic_name(item.topic_id)
            return found is None or asking.rights.allows(self.operation, self.resource_type, found)
        name = item if self.name is None else getattr(item, self.name)
        return asking.rights.allows(self.operation, self.resource_type, name)


class Rule:
    """A guard of an API that is defined by data: a callable that refuses or passes on requests.

    Args:
        needs: rights for the whole request; if one is missing, the request is refused.
        each: the right for each resource that the request names.
        unless: a right for the whole request that allows all resources, so that `each` is not checked.
        complete: a function that removes from the response what the principal may not describe.
    """

    __slots__ = ("_complete", "_each", "_needs", "_unless")

    def __init__(
        self,
        *needs: Need,
        each: Each | None = None,
        unless: Need | None = None,
        complete: Callable[[Any, Asking], None] | None = None,
    ) -> None:
        self._needs = needs
        self._each = each
        self._unless = unless
        self._complete = complete

    def __call__(self, request: Any, asking: Asking) -> Any:
        """Refuse the request, or call the handler for its allowed part and add errors for the other."""
        for need in self._needs:
            if not need.is_met(request, asking):
                return asking.refuse(request, REFUSALS[need.resource_type])
        more: list[Any] = []
        each = self._each
        if each is not None and not (self._unless and self._unless.is_met(request, asking)):
            allowed, refused = split(getattr(request, each.field), lambda item: each.may(item, asking))
            if refused:
                more = asking.refused(each.answer, refused, REFUSALS[each.resource_type])
                request = with_fields(request, **{each.field: allowed})
        if self._complete is None and not more:
            return asking.proceed(request)
        return asking.then(request, lambda response: self._completed(response, asking, more))

    def _completed(self, response: Any, asking: Asking, more: list[Any]) -> Any:
        if response is None:
            return None
        if self._complete is not None:
            self._complete(response, asking)
        if more:
            assert self._each is not None
            # The list may be shared: handlers use one empty list for many responses.
            setattr(response, self._each.answer, [*getattr(response, self._each.answer), *more])
        return response


def on_cluster(*operations: Operation) -> Need:
    """Return the requirement (`Need`) of at least one of these operations on the cluster."""
    return Need(ResourceType.CLUSTER, operations)


def on_group(operation: Operation) -> Need:
    """Return the requirement (`Need`) of an operation on the group in the request's `group_id`."""
    return Need(ResourceType.GROUP, (operation,), "group_id")


def on_transactional_id(operation: Operation) -> Need:
    """Return the requirement (`Need`) of an operation on the request's transactional id."""
    return Need(ResourceType.TRANSACTIONAL_ID, (operation,), "transactional_id")


def each_topic(
    operation: Operation, answer: str = "topics", *, name: str = "name", ids_since: int = NEVER
) -> Each:
    """Return the requirement (`Each`) of an operation on each topic in the request's `topics`."""
    return Each(ResourceType.TOPIC, operation, "topics", answer, name, ids_since)


def each_group(operation: Operation, field: str, answer: str) -> Each:
    """Return the requirement (`Each`) of an operation on each group in the request's list `field`."""
    return Each(ResourceType.GROUP, operation, field, answer, None)
