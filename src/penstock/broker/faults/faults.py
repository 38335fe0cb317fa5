"""`Faults`: fault injection. A fault defines the requests to which it applies, and its effect on them.

    fault = broker.faults.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="t", times=2)

A fault is active until it has happened `times` times, until `stop`, or to the end of its ``with``
block. The test's thread creates and stops faults; they happen in the broker's thread.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Literal, TypedDict, Unpack

from penstock.broker.faults.entities import Entity
from penstock.broker.faults.requests import Request
from penstock.broker.handlers import ROUTES
from penstock.common.hints import with_hints
from penstock.common.suggestions import did_you_mean, nearest
from penstock.errors import ConfigError, RequestTimeoutError
from penstock.protocol.api import API_TABLE, ApiKey
from penstock.protocol.error_codes import ErrorCode

REQUESTS_KEPT = 10_000
"""The most requests that a fault stores; older ones are dropped."""

When = Callable[[Request], bool]
Change = Callable[[bytes], bytes]
Damage = Literal["records", "body", "correlation", "size", "cut"]

_DAMAGES = ("records", "body", "correlation", "size", "cut")


class FaultOptions(TypedDict, total=False):
    """The options that all faults have: the requests that a fault applies to, and how often. See `Faults`."""

    topic: str | None
    partition: int | None
    group: str | None
    client_id: str | None
    connection: int | None
    when: When | None
    times: int | None
    skip: int


_KINDS: dict[str, tuple[type, str]] = {
    "topic": (str, "text"),
    "partition": (int, "a number"),
    "group": (str, "text"),
    "client_id": (str, "text"),
    "connection": (int, "a number"),
    "times": (int, "a number"),
}
"""A dict from option of a fault to the type of its value, and a noun for messages. With a value of
another type, the fault would never happen.
"""


def _check(where: FaultOptions) -> None:
    """Check the options of a fault.

    Raises:
        ConfigError: an option is unknown, of a wrong type, or one that no request could match.
    """
    if unknown := where.keys() - FaultOptions.__annotations__.keys():
        word = sorted(unknown)[0]
        known = ", ".join(FaultOptions.__annotations__)
        raise ConfigError(
            f"unknown: {word}{did_you_mean(word, FaultOptions.__annotations__)}; known: {known}"
        )
    for name, (kind, noun) in _KINDS.items():
        value = where.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ConfigError(f"{name}={value!r}: {name} is {noun}")
    when, times, skip = where.get("when"), where.get("times"), where.get("skip", 0)
    if when is not None and not callable(when):
        raise ConfigError(f"when={when!r}: when is a function of the request")
    if times is not None and times < 1:
        raise ConfigError(f"times={times}: a fault happens at least once; None is every time")
    if not isinstance(skip, int) or skip < 0:
        raise ConfigError(f"skip={skip!r}: skip is how many requests are let through first")


class FaultTarget:
    """The conditions of a fault, which applies to the requests that meet all of them."""

    __slots__ = ("client_id", "connection", "group", "key", "partition", "topic", "when")

    def __init__(self, api: str | int | None, where: FaultOptions) -> None:
        self.key = None if api is None else key_of(api)
        self.topic = where.get("topic")
        self.partition = where.get("partition")
        self.group = where.get("group")
        self.client_id = where.get("client_id")
        self.connection = where.get("connection")
        self.when = where.get("when")

    def covers(self, request: Request) -> bool:
        """Return True if the fault applies to a request."""
        return (
            self.key in (None, request.key)
            and self.client_id in (None, request.client_id)
            and self.connection in (None, request.connection)
            and self._names_place(request)
            and (self.when is None or self.when(request))
        )

    def _names_place(self, request: Request) -> bool:
        if self.topic is None and self.partition is None and self.group is None:
            return True
        if request.key == ApiKey.METADATA and self.group is None:
            # It names no partitions, and no topics where it asks for all.
            return not request.topics or self.topic is None or self.topic in request.topics
        return any(self.holds(entity) for entity in request.entities)

    def holds(self, entity: Entity) -> bool:
        """Return True if the fault applies to a topic, partition or group within a request."""
        return (
            self.topic in (None, entity.topic)
            and self.partition in (None, entity.partition)
            and self.group in (None, entity.group)
        )

    def __str__(self) -> str:
        said = [API_TABLE[self.key].name if self.key is not None else "any request"]
        for name in ("topic", "partition", "group", "client_id", "connection"):
            value = getattr(self, name)
            if value is not None:
                said.append(f"{name}={value!r}")
        return ", ".join(said)


class Fault:
    """One fault. `count` is the number of requests to which it has happened."""

    def __init__(
        self,
        owner: Faults,
        kind: str,
        api: str | int | None,
        where: FaultOptions,
        *,
        applied: bool = False,
        code: int = 0,
        seconds: float = 0,
        damage: Damage | Change = "body",
        reset: bool = False,
    ) -> None:
        _check(where)
        if not isinstance(seconds, (int, float)) or not seconds >= 0:
            raise ConfigError(f"seconds={seconds!r}: that is no time to wait")
        self._owner = owner
        self.kind = kind
        self.target = FaultTarget(api, where)
        self.times = where.get("times")
        self.applied = applied
        self.code = code
        self.seconds = seconds
        self.damage = damage
        self.reset = reset
        self._skip = where.get("skip", 0)
        self.count = 0
        """The number of requests to which the fault has happened."""
        self.requests: deque[Request] = deque(maxlen=REQUESTS_KEPT)
        """The latest requests to which the fault has happened, at most `REQUESTS_KEPT`, oldest first."""

    def happens_to(self, request: Request) -> bool:
        """Return True if the fault happens to this request; if so, count it and add it to `requests`."""
        if (self.times is not None and self.count >= self.times) or not self.target.covers(request):
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        with self._owner.changed:
            self.count += 1
            self.requests.append(request)
            self._owner.changed.notify_all()
        return True

    def wait(self, count: int = 1, timeout_s: float = 10) -> None:
        """Wait until the fault has happened `count` times.

        Raises:
            RequestTimeoutError: the fault has happened less often within `timeout_s`.
        """
        with self._owner.changed:
            if not self._owner.changed.wait_for(lambda: self.count >= count, timeout_s):
                raise RequestTimeoutError(f"{self!r} was to happen {count} times within {timeout_s} s")

    def stop(self) -> None:
        """End the fault. Requests that it has dropped or delayed stay so."""
        self._owner.remove(self)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        what = f"{self.kind} {ErrorCode(self.code).name}" if self.code else self.kind
        return f"<Fault {what}: {self.target}; happened {self.count} times>"


@with_hints("Faults", leave=("happening_to",))
class Faults:
    """The faults of one broker. Each method adds a fault and returns it.

    The methods have these arguments in common:

    * `api` names the request (``"Produce"``, ``"JoinGroup"``); None is any. `topic`, `partition`, `group`,
      `client_id` and `connection` are further conditions; `when` is a predicate of a `Request`.
    * `times` is the number of requests to which the fault happens (None: no limit), after the first `skip`.
    * If `applied` is True, the broker executes the request in spite of the fault: a Produce that is dropped
      with ``applied=True`` is written, and only its response is lost.
    """

    def __init__(self, renewed: Callable[[], None] | None = None) -> None:
        self.changed = threading.Condition()
        self._renewed = renewed
        """A function that is called after faults were added or ended."""
        self.active: tuple[Fault, ...] = ()
        """The active faults, oldest first. A change replaces the whole tuple, so that other threads can
        read it.
        """
        self.planned: tuple[Request, list[Fault]] | None = None
        """The request in progress and the `fail` faults for it; only the broker's thread uses this."""

    def __repr__(self) -> str:
        return f"<Faults: {len(self.active)} in force>"

    def fail(
        self,
        api: str | int | None,
        error: str | int,
        *,
        applied: bool = False,
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Answer with an error code, per topic and partition if the API can, else for the whole request.

        The broker serves the other parts of the request. The connection of a Produce with acks=0, which has
        no response, is closed.

        Raises:
            ConfigError: the API or error does not exist; the message suggests a similar one.
        """
        code = code_of(error)
        return self._add(Fault(self, "fail", api, where, applied=applied, code=code))

    def delay(
        self,
        api: str | int | None = None,
        seconds: float = 1.0,
        *,
        applied: bool = True,
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Delay the response by `seconds`. Later requests on the connection wait, too, to keep the order.

        By default, the request is executed on arrival, and its response waits. With ``applied=False``, the
        request itself waits.
        """
        return self._add(Fault(self, "delay", api, where, applied=applied, seconds=seconds))

    def drop(
        self,
        api: str | int | None = None,
        *,
        applied: bool = False,
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Never answer. The connection stays open, and later requests on it are not answered either."""
        return self._add(Fault(self, "drop", api, where, applied=applied))

    def close(
        self,
        api: str | int | None = None,
        *,
        applied: bool = False,
        reset: bool = False,
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Close the connection instead of answering; with `reset`, close it with a TCP reset."""
        return self._add(Fault(self, "close", api, where, applied=applied, reset=reset))

    def corrupt(
        self,
        api: str | int | None = None,
        damage: Damage | Change = "body",
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Damage the response.

        `damage` is ``"records"`` (one bit of the last record of a Fetch, so that its checksum fails),
        ``"body"`` (one bit in the middle), ``"correlation"`` (another request's number), ``"size"`` (a size
        field that is too large), ``"cut"`` (half of the response, then a closed connection), or a function
        from the bytes of the response, its size included, to the bytes to send.
        """
        if not callable(damage) and damage not in _DAMAGES:
            raise ConfigError(f"damage {damage!r} is none of {', '.join(_DAMAGES)}")
        return self._add(Fault(self, "corrupt", api, where, applied=True, damage=damage))

    def reorder(
        self,
        api: str | int | None = None,
        *,
        applied: bool = False,
        seconds: float = 0.1,
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Let the next request of the connection overtake this one, if it arrives within `seconds`.

        By default the broker handles the two requests in reverse order; with ``applied=True`` only the
        responses are sent in reverse order.
        """
        return self._add(Fault(self, "reorder", api, where, applied=applied, seconds=seconds))

    def watch(
        self,
        api: str | int | None = None,
        **where: Unpack[FaultOptions],
    ) -> Fault:
        """Add a fault that changes nothing, but counts the requests and stores them in `requests`."""
        return self._add(Fault(self, "watch", api, where))

    def clear(self) -> None:
        """End all faults."""
        self._put(lambda active: ())

    def remove(self, fault: Fault) -> None:
        """End one fault. Do nothing if it has ended."""
        self._put(lambda active: tuple(each for each in active if each is not fault))

    def _add(self, fault: Fault) -> Fault:
        self._put(lambda active: (*active, fault))
        return fault

    def _put(self, change: Callable[[tuple[Fault, ...]], tuple[Fault, ...]]) -> None:
        with self.changed:
            self.active = change(self.active)
        if self._renewed is not None:
            self._renewed()

    def happening_to(self, request: Request) -> list[Fault]:
        """Return every fault that happens to a request, oldest first. Only the broker's thread calls this."""
        return [fault for fault in self.active if fault.happens_to(request)]


def key_of(api: str | int) -> int:
    """Return an API's key; its name may be spelled in any way: ``list_offsets``, ``ListOffsetsRequest``.

    Raises:
        ConfigError: the API does not exist, or brokers do not serve it, so that a fault would never happen.
    """
    if not isinstance(api, (int, str)) or isinstance(api, bool):
        raise ConfigError(f"{api!r} is no API: name one, such as 'Produce'; None is any")
    if isinstance(api, int):
        if api not in API_TABLE:
            raise ConfigError(f"there is no API with key {api}")
        key = api
    else:
        names = {each.name.lower(): key for key, each in API_TABLE.items()}
        folded = "".join(filter(str.isalnum, api.lower())).removesuffix("request")
        if folded not in names:
            near = nearest(folded, names)
            hint = f"; did you mean {API_TABLE[names[near[0]]].name}?" if near else ""
            raise ConfigError(f"there is no API {api}{hint}")
        key = names[folded]
    if key not in ROUTES:
        raise ConfigError(
            f"no client is served {API_TABLE[key].name} here, so that the fault would never happen"
        )
    return key


def code_of(error: str | int) -> int:
    """Return the error code for a name, or for a number, which is only checked.

    Raises:
        ConfigError: the error does not exist.
    """
    if isinstance(error, str):
        name = error.upper()
        if name in ErrorCode.__members__ and ErrorCode[name] != ErrorCode.NONE:
            return int(ErrorCode[name])
        raise ConfigError(f"there is no error {error}{_errors_like(name)}")
    if error == 0 or error not in set(ErrorCode):
        raise ConfigError(f"there is no error with code {error}")
    return int(error)


def _errors_like(name: str) -> str:
    """Return a suggestion for an error message: error names that contain or resemble `name`."""
    names = [each for each in ErrorCode.__members__ if each != "NONE"]
    holding = [each for each in names if name and name in each]
    beginning = nearest(name, {each[: len(name)] for each in names})
    found = holding or [each for each in names if each[: len(name)] in beginning]
    return f"; did you mean {' or '.join(found[:3])}?" if found else did_you_mean(name, names)
