"""Rules for translating requests: which versions of clients and cluster, and the function that converts."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from penstock.gateway.calls import NodeCall
from penstock.gateway.translation.errors import replace_codes
from penstock.gateway.translation.fields import convert
from penstock.protocol.message import Message

if TYPE_CHECKING:
    from penstock.gateway.calls import Ranges

M = TypeVar("M", bound=Message)

Steps: TypeAlias = Generator[NodeCall, Any, Message | None]
"""A translation in progress: a generator that yields calls to the cluster, gets their responses, and returns
the response to the client."""


@dataclass(frozen=True, slots=True)
class TranslatedRequest:
    """A client's request in `version`, and the version `target` in which the gateway sends it on."""

    api_key: int
    version: int
    request: Any
    target: int
    upstream: Ranges


@dataclass(frozen=True, slots=True)
class TranslationRule:
    """The translation of some versions of an API.

    `done` and `inexact` are texts for the reference page in the documentation."""

    api_key: int
    versions: tuple[int, int]
    """The first and last version of clients' requests to which the rule applies."""
    targets: tuple[int, int]
    """The first and last version of the API into which the rule can translate, if the cluster has them."""
    run: Callable[[TranslatedRequest], Steps]
    done: str
    inexact: str = ""
    takes_highest: bool = False
    """True if the rule translates to the highest possible version, False if to the lowest."""
    needs: tuple[int, ...] = ()
    """API keys that the cluster must support, in addition to the request's API, for this rule to apply."""

    def target(self, version: int, upstream: Ranges) -> int | None:
        """Return the version into which to translate a client's `version`; None if the cluster has none."""
        offered = upstream.get(self.api_key)
        first, last = self.versions
        if offered is None or not first <= version <= last or any(key not in upstream for key in self.needs):
            return None
        low, high = max(self.targets[0], offered[0], version + 1), min(self.targets[1], offered[1])
        if low > high:
            return None
        return high if self.takes_highest else low


def by_fields(asked: TranslatedRequest) -> Steps:
    """Translate a request and its response by copying fields of the same name.

    Raises:
        Refused: the request sets a field that the cluster's version does not have.
    """
    request = convert(asked.request, asked.version, asked.target)
    response: Message = yield NodeCall(asked.api_key, asked.target, request)
    return answered(response, asked)


def by_fields_exactly(asked: TranslatedRequest) -> Steps:
    """Translate a request and its response by copying fields; refuse if a field that is set would be lost.

    Raises:
        Refused: the request or the response sets a field that the other version does not have.
    """
    request = convert(asked.request, asked.version, asked.target)
    response: Message = yield NodeCall(asked.api_key, asked.target, request)
    return answered(response, asked, may_lose=False)


def answered(response: M, asked: TranslatedRequest, *, may_lose: bool = True) -> M:
    """Convert the cluster's response to the version of the client, with error codes that the client has.

    Raises:
        Refused: the response has a null that the client's version does not allow, or (unless `may_lose`) sets
            a field that the client's version does not have.
    """
    converted = convert(response, asked.target, asked.version, may_lose=may_lose)
    replace_codes(converted, asked.version)
    return converted
