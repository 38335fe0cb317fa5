"""`ClientMetrics`: clients that push metrics (KIP-714): subscriptions, checks of pushes, and values.

The rules are those of Apache Kafka's ClientMetricsManager: a client asks which metrics to push, gets a client
instance id and a subscription id, and pushes after every interval. A push that comes too early gets
THROTTLING_QUOTA_EXCEEDED (89); after the subscription has changed, the next push gets UNKNOWN_SUBSCRIPTION_ID
(117), and the client asks again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.client_metrics.newest_values import NewestValues, Pusher
from penstock.broker.client_metrics.subscriptions import (
    MetricsSubscription,
    RequestedMetrics,
    asked_of,
    subscription_of,
)
from penstock.broker.requests.kept_state import KeptState
from penstock.broker.requests.patterns import PatternError
from penstock.common.logs import logger_named
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.uuid import ZERO_UUID, random_uuid, uuid_to_text

if TYPE_CHECKING:
    from penstock.telemetry.otlp import Pushed

logger = logger_named("penstock.broker")

INSTANCES_MAX = 16384
"""The maximum number of clients with stored state, as in Apache Kafka. A further client replaces the
one idle for longest.
"""

EXPIRY_S = 60.0
"""The seconds without a request after which a client's state is dropped. Three push intervals apply if
they are longer.
"""

EXPIRY_STEP_S = 10.0

INSTANCE_BYTES = 1500
"""The estimated memory of one client's state, in bytes."""

_RESERVED = (ZERO_UUID, bytes(15) + b"\x01")
_CODECS = range(5)


class Origin(NamedTuple):
    """The client that a request comes from: client id, software and address."""

    client_id: str
    software_name: str | None
    software_version: str | None
    address: str
    port: int


class Instance:
    """A client instance: the metrics to push, and the times of its last requests (monotonic seconds)."""

    __slots__ = (
        "asked",
        "asked_at",
        "error",
        "expires_at",
        "generation",
        "is_terminating",
        "origin",
        "pushed_at",
        "subscription_id",
    )

    def __init__(
        self, origin: Origin, asked: RequestedMetrics, subscription_id: int, generation: int
    ) -> None:
        self.origin = origin
        self.asked = asked
        self.subscription_id = subscription_id
        self.generation = generation
        """The version number of the subscriptions from which `asked`, the metrics to push, was
        computed.
        """
        self.asked_at = self.pushed_at = -inf
        self.expires_at = inf
        self.is_terminating = False
        self.error = ErrorCode.NONE
        """The error code in the response to the client's latest request."""


class ClientMetrics:
    """The state of a broker that accepts metrics from clients (KIP-714).

    `settings` returns the settings of all subscriptions by name. `version` returns a number that changes
    whenever these settings may have changed. `cpu_s` returns the CPU seconds that this thread has used.
    """

    def __init__(
        self,
        settings: Callable[[], Mapping[str, Mapping[str, str]]],
        version: Callable[[], int],
        kept: KeptState,
        bytes_max: int,
        cpu_s: Callable[[], float],
    ) -> None:
        self.bytes_max = bytes_max
        """The value of `telemetry.max.bytes`: the most bytes of metrics in one push."""
        self.values = NewestValues(kept)
        self._settings = settings
        self._version = version
        self._cpu_s = cpu_s
        self._seen_version: int | None = None
        self._seen: dict[str, dict[str, str]] = {}
        self._generation = 0
        self._subscriptions: list[MetricsSubscription] = []
        self._instances: OrderedDict[bytes, Instance] = OrderedDict()
        self._expiring_at = -inf
        kept.add("clients with metrics", lambda: INSTANCE_BYTES * len(self._instances), self._drop_idlest)
        self._kept = kept

    # --- requests ----------------------------------------------------------------------------------------

    def subscribe(
        self, client_instance_id: bytes, origin: Origin, now: float
    ) -> tuple[ErrorCode, bytes, Instance]:
        """Handle a request for subscriptions; return an error code, the client instance's id and its state.

        A client without an id gets a new one. THROTTLING_QUOTA_EXCEEDED (89): the client's push interval is
        not over yet.
        """
        if client_instance_id == ZERO_UUID:
            client_instance_id = random_uuid()
        instance = self._instance(client_instance_id, origin, now)
        if now - max(instance.asked_at, instance.pushed_at) >= instance.asked.interval_ms / 1000:
            instance.asked_at = now
        elif instance.error not in (
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ):
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED, client_instance_id, instance
        instance.error = ErrorCode.NONE
        return ErrorCode.NONE, client_instance_id, instance

    def admit(
        self,
        client_instance_id: bytes,
        origin: Origin,
        now: float,
        *,
        subscription_id: int,
        is_terminating: bool,
        codec: int,
        size: int,
    ) -> ErrorCode:
        """Check all fields of a push except the encoded metrics; return an error code.

        INVALID_REQUEST (42): the id is reserved, or the client has marked its previous push as the last.
        THROTTLING_QUOTA_EXCEEDED (89): the push comes too early. UNKNOWN_SUBSCRIPTION_ID (117): the
        subscription has changed. UNSUPPORTED_COMPRESSION_TYPE (76). TELEMETRY_TOO_LARGE (118): more than
        `bytes_max`.
        """
        if client_instance_id in _RESERVED:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(client_instance_id, origin, now)
        code = ErrorCode.NONE
        if instance.is_terminating:
            code = ErrorCode.INVALID_REQUEST
        elif not self._is_due(instance, now) and not is_terminating:
            code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        elif subscription_id != instance.subscription_id:
            code = ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        elif codec not in _CODECS:
            code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        elif size > self.bytes_max:
            code = ErrorCode.TELEMETRY_TOO_LARGE
        instance.error = code
        instance.is_terminating = is_terminating
        return code

    def refuse(self, client_instance_id: bytes, code: ErrorCode) -> None:
        """Record that the metrics of an admitted push could not be read."""
        instance = self._instances.get(client_instance_id)
        if instance is not None:
            instance.error = code

    def take(
        self, client_instance_id: bytes, origin: Origin, pushed: Pushed, now_ms: int, *, is_terminating: bool
    ) -> None:
        """Store the metrics of an admitted push. `now_ms` is the time of day."""
        pusher = Pusher(
            uuid_to_text(client_instance_id),
            origin.client_id,
            origin.software_name or "",
            origin.software_version or "",
            origin.address,
        )
        self.values.take(
            client_instance_id, pusher, pushed.attributes, pushed.points, now_ms, is_last=is_terminating
        )

    @staticmethod
    def _is_due(instance: Instance, now: float) -> bool:
        """Return True and record `now` as the time of the last push, if a push is allowed now.

        The first push after a subscription request may come at any time: clients send it after 0.5 to 1.5
        intervals, at random.
        """
        is_due = instance.asked_at > instance.pushed_at
        is_due = is_due or now - instance.pushed_at >= instance.asked.interval_ms / 1000
        if is_due:
            instance.pushed_at = now
        return is_due

    # --- clients -----------------------------------------------------------------------------------------

    def drop(self, client_instance_id: bytes) -> None:
        """Drop the state of a client whose connection has ended; keep the values that it has pushed."""
        self._instances.pop(client_instance_id, None)

    def expire(self, now: float) -> None:
        """Drop the state of clients that were silent for too long. The broker calls this once a second."""
        if now < self._expiring_at:
            return
        self._expiring_at = now + EXPIRY_STEP_S
        for key in [key for key, each in self._instances.items() if each.expires_at <= now]:
            del self._instances[key]

    def _instance(self, client_instance_id: bytes, origin: Origin, now: float) -> Instance:
        """Return a client's state; make a new one if the client is new or the subscriptions have changed."""
        self._renew_subscriptions()
        instance = self._instances.get(client_instance_id)
        if instance is None or instance.generation != self._generation:
            if instance is None:
                if len(self._instances) >= INSTANCES_MAX:
                    self._drop_idlest()
                self._kept.has_room_for(INSTANCE_BYTES)
            else:
                origin = instance.origin
            instance = self._new_instance(client_instance_id, origin)
            self._instances[client_instance_id] = instance
        self._instances.move_to_end(client_instance_id)
        instance.expires_at = now + max(EXPIRY_S, 3 * instance.asked.interval_ms / 1000)
        return instance

    def _new_instance(self, client_instance_id: bytes, origin: Origin) -> Instance:
        client = {
            "client_instance_id": uuid_to_text(client_instance_id),
            "client_id": origin.client_id,
            "client_software_name": origin.software_name,
            "client_software_version": origin.software_version,
            "client_source_address": origin.address,
            "client_source_port": str(origin.port),
        }
        asked = asked_of(client, self._subscriptions, self._cpu_s)
        return Instance(origin, asked, asked.subscription_id(client_instance_id), self._generation)

    def _renew_subscriptions(self) -> None:
        version = self._version()
        if version == self._seen_version:
            return
        self._seen_version = version
        settings = {name: dict(texts) for name, texts in self._settings().items()}
        if settings == self._seen:
            return
        self._seen = settings
        self._generation += 1
        self._subscriptions = []
        for name, texts in settings.items():
            try:
                self._subscriptions.append(subscription_of(texts))
            except PatternError as error:
                logger.warning(
                    "client metrics %s chooses no client: 'match' has an expression that cannot be used: %s",
                    name,
                    error,
                )

    def _drop_idlest(self) -> bool:
        if not self._instances:
            return False
        self._instances.popitem(last=False)
        return True
