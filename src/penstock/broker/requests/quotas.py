"""Client quotas (KIP-13, KIP-219): limits on rates of use. Clients over quota are throttled.

A quota belongs to an entity: a client id, a user, a pair of both, or the default for clients without a quota
of their own. Clients that do not authenticate are the user `ANONYMOUS`. Use is measured as in Apache Kafka,
in eleven windows of a second. The throttle time is the time until the rate over those windows has fallen to
the quota. For partitions that are created or deleted (KIP-599) there is a token bucket instead, as large as
the quota for all windows.

The module does not use requests or connections: callers pass amounts and `now`, and get delays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from penstock.protocol.error_codes import ErrorCode, error_for

if TYPE_CHECKING:
    from penstock.broker.quota_entities import Entity

CLIENT_ID, USER, IP = ENTITY_TYPES = ("client-id", "user", "ip")
"""The types of quota entities, in the order of Apache Kafka's responses."""

IP_STANDS_ALONE = "combination: a quota of an ip has no user and no client-id"
"""The end of two error messages about an IP entity that is combined with other entity types. Their
beginnings are as in Apache Kafka."""
ANONYMOUS = "ANONYMOUS"

PRODUCED, FETCHED, TIME = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
"""The names of three quotas: produced bytes per second, fetched bytes per second, and percent of the
broker thread's time."""

MUTATIONS = "controller_mutation_rate"
"""The name of the quota on partitions created or deleted, per second."""

CONNECTIONS = "connection_creation_rate"
"""The name of the quota on connections from one IP address, per second."""

WINDOW_S = 1.0
WINDOWS = 11
"""WINDOW_S is the default of `quota.window.size.seconds`, WINDOWS of `quota.window.num`."""

TIME_DELAY_MAX_S = WINDOW_S
"""The longest throttle time for exceeding `request_percentage`: one window, as in Apache Kafka."""

CLIENTS_MAX = 10_000
"""The maximum number of clients whose use is measured; after that, the least recent ones are dropped."""


CLIENT_CHARACTERS_MAX = 1000
"""The maximum number of characters of client ids for quotas: longer ids are truncated. Names of quota
entities are limited to the same length.
"""


class Windows(NamedTuple):
    """The number of windows in which use is measured, and the seconds of each."""

    number: int = WINDOWS
    size_s: float = WINDOW_S


class Usage:
    """Measures the recent use of a quota in several windows of equal length, by default one second each."""

    __slots__ = ("_kind", "_windows")

    def __init__(self, kind: Windows = Windows()) -> None:  # noqa: B008  a tuple does not change
        self._kind = kind
        self._windows: deque[list[float]] = deque()

    def add(self, amount: float, now: float) -> None:
        """Add an amount that was used at `now`, in seconds of the monotonic clock."""
        windows = self._windows
        self._forget(now)
        if windows and now - windows[-1][0] < self._kind.size_s:
            windows[-1][1] += amount
        else:
            windows.append([now, amount])

    def take_back(self, amount: float) -> None:
        """Subtract an amount from the newest window, as if it had not been used."""
        if self._windows:
            self._windows[-1][1] = max(0.0, self._windows[-1][1] - amount)

    def _forget(self, now: float) -> None:
        number, size_s = self._kind
        while self._windows and now - self._windows[0][0] >= number * size_s:
            self._windows.popleft()

    def rate(self, now: float) -> tuple[float, float]:
        """Return the average use per second, and the seconds averaged over: at least all windows but one."""
        self._forget(now)
        number, size_s = self._kind
        if not self._windows:
            return 0.0, max(1, number - 1) * size_s
        elapsed = now - self._windows[0][0]
        missing = number - 1 - int(elapsed / size_s)
        seconds = elapsed + max(missing, 0) * size_s or size_s
        return sum(amount for _, amount in self._windows) / seconds, seconds


class Limit(NamedTuple):
    """The quota that applies to a client: an amount per second for all clients with the same `shared_by`."""

    shared_by: tuple[str | None, str | None]
    most: float


class Quotas:
    """The client quotas of a broker, and the measured use of its clients."""

    def __init__(
        self,
        limits: Mapping[Entity, Mapping[str, float]],
        windows: Windows = Windows(),  # noqa: B008  a tuple does not change
    ) -> None:
        self._limits = limits
        self._windows = windows
        self._found: dict[tuple[str, str, str], Limit | None] = {}
        self._used: dict[tuple[str, tuple[str | None, str | None]], Usage] = {}

    def changed(self) -> None:
        """Clear the cache of limits, because quotas have changed. The measured use stays."""
        self._found.clear()

    def limit(self, kind: str, client_id: str, user: str = ANONYMOUS) -> Limit | None:
        """Return the quota that applies to a client, or None if there is none.

        `user` is the name of the client's principal.
        """
        place = kind, client_id, user
        if place not in self._found:
            if len(self._found) >= CLIENTS_MAX:
                self._found.clear()
            self._found[place] = self._find(kind, client_id, user)
        return self._found[place]

    def _find(self, kind: str, client_id: str, name: str) -> Limit | None:
        """Return a client's most specific quota, or None. As in Kafka, the user comes before client ids."""
        for user, client, shared_by in (
            (name, client_id, (name, client_id)),
            (name, None, (name, client_id)),
            (name, "", (name, None)),
            (None, client_id, (name, client_id)),
            (None, None, (name, client_id)),
            (None, "", (name, None)),
            ("", client_id, (None, client_id)),
            ("", None, (None, client_id)),
        ):
            # The empty name stands for an entity without this part: no entity is called so.
            parts = ((CLIENT_ID, client), (USER, user))
            most = self._limits.get(tuple(part for part in parts if part[1] != ""), {}).get(kind)
            if most is not None:
                return Limit(shared_by, most)
        return None

    def charge(self, kind: str, client_id: str, amount: float, now: float, user: str = ANONYMOUS) -> float:
        """Add an amount that a client has used; return the throttle time in seconds, 0 within the quota."""
        limit = self.limit(kind, client_id, user)
        if limit is None:
            return 0.0
        place = kind, limit.shared_by
        usage = self._used.pop(place, None)
        if usage is None:
            usage = Usage(self._windows)
            if len(self._used) >= CLIENTS_MAX:
                del self._used[next(iter(self._used))]
        self._used[place] = usage
        usage.add(amount, now)
        rate, seconds = usage.rate(now)
        delay_s = max(0.0, (rate - limit.most) / limit.most * seconds)
        # As in Apache Kafka, time that was used does not silence a client for longer than a window.
        return min(delay_s, self._windows.size_s) if kind == TIME else delay_s

    def burst(self, kind: str, client_id: str, user: str = ANONYMOUS) -> float | None:
        """Return the amount that a client may use at once after a pause; None if it has no quota."""
        limit = self.limit(kind, client_id, user)
        return None if limit is None else limit.most * max(1, self._windows.number - 1) * self._windows.size_s


MutationTokens = dict[tuple[str | None, str | None], tuple[float, float]]
"""A dict from `Limit.shared_by` to the number of partitions that may still be created or deleted, and the
time in seconds at which this number was computed.
"""


class Mutations:
    """Quotas on partitions created and deleted. The nodes of a cluster share one dictionary `tokens`."""

    def __init__(self, quotas: Quotas, tokens: MutationTokens, windows: Windows) -> None:
        self._quotas = quotas
        self._tokens = tokens
        self._burst_s = windows.number * windows.size_s

    def charge(
        self, client_id: str, now: float, user: str = ANONYMOUS, *, is_strict: bool
    ) -> MutationCharge | None:
        """Return a counter of the partitions that one request changes; None if its client has no quota."""
        limit = self._quotas.limit(MUTATIONS, client_id, user)
        return None if limit is None else MutationCharge(self, limit, now, is_strict=is_strict)

    def left(self, limit: Limit, now: float) -> float:
        """Return the number of partitions that may be created or deleted now; negative if over quota."""
        burst = limit.most * self._burst_s
        if limit.shared_by not in self._tokens:
            return burst
        left, since = self._tokens[limit.shared_by]
        return min(burst, left + max(0.0, now - since) * limit.most)

    def take(self, limit: Limit, partitions: int, now: float) -> float:
        """Count created or deleted partitions; return the number that is still allowed."""
        left = self.left(limit, now) - partitions
        self._tokens.pop(limit.shared_by, None)
        if len(self._tokens) >= CLIENTS_MAX:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[limit.shared_by] = left, now
        return left


class MutationCharge:
    """Counts the partitions that one request creates or deletes."""

    def __init__(self, mutations: Mutations, limit: Limit, now: float, *, is_strict: bool) -> None:
        self._mutations = mutations
        self._limit = limit
        self._now = now
        self._is_strict = is_strict
        self.delay_s = 0.0
        """The throttle time of the request, in seconds."""

    def take(self, partitions: int) -> None:
        """Count the partitions of one topic. A change that begins within the quota is made completely.

        Raises:
            KafkaError: THROTTLING_QUOTA_EXCEEDED (89), the quota is used up (in versions with this error).
        """
        limit, mutations = self._limit, self._mutations
        if self._is_strict:
            left = mutations.left(limit, self._now)
            if left >= 0:
                mutations.take(limit, partitions, self._now)
                return
        else:
            left = mutations.take(limit, partitions, self._now)
        if left < 0:
            self.delay_s = max(self.delay_s, -left / limit.most)
            if self._is_strict:
                raise error_for(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded")


class Filter(NamedTuple):
    """One component of a DescribeClientQuotas filter: an entity type and the names that match."""

    entity_type: str
    names: frozenset[str | None] | None
    """The names that match; None if any name matches."""


def matching(entities: Iterable[Entity], filters: list[Filter], *, strict: bool) -> list[Entity]:
    """Return the entities that match all filters; with `strict`, only if each of their types has a filter."""
    found = []
    for entity in entities:
        names = dict(entity)
        fits = all(
            each.entity_type in names and (each.names is None or names[each.entity_type] in each.names)
            for each in filters
        )
        if fits and not (strict and len(names) > len(filters)):
            found.append(entity)
    return found
