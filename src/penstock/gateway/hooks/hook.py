"""`Hook`: functions for some APIs, and their arguments: the request, its client, a batch of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.common.extras import need_arrow
from penstock.common.suggestions import did_you_mean, nearest
from penstock.errors import ConfigError, PenstockError
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.protocol.message import Message

UNHOOKED = frozenset((ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE))
"""The APIs for which hooks are never called: those of SASL logins, which only client and broker may process.
"""

WITH_RECORDS = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH)


class Refused(PenstockError):
    """The exception that a hook raises to answer a request with an error.

    Args:
        error: the error, by name or number, such as ``"POLICY_VIOLATION"``.
        reason: the error message for the client, if the API's response has a field for it.

    Raises:
        ConfigError: there is no such error.
    """

    def __init__(self, error: str | int, reason: str = "") -> None:
        self.code = _code_of(error)
        self.reason = reason
        super().__init__(reason or ErrorCode(self.code).name)


@dataclass(frozen=True, slots=True)
class Client:
    """The client of one connection, as hook functions get it.

    `software` and `software_version` come from ApiVersions 3 and later (KIP-511); they are empty for other
    clients.
    """

    address: str
    port: int
    software: str
    software_version: str
    client_id: str
    connection: int
    """The sequence number of the connection, from 1. Only connections with a request that goes through hooks
    are counted."""


class ClientRequest:
    """A client's request for hook functions, in the version in which the gateway sends it to the cluster.

    `api` is the API's name, `key` and `version` are its numbers; `client_version` is the version that the
    client has sent. Hooks change `message` in place.
    """

    __slots__ = (
        "_message", "_read", "api", "client", "client_version", "delay_s", "end", "key", "version",
    )  # fmt: skip

    def __init__(
        self, key: int, version: int, client_version: int, client: Client, read: Callable[[], Any]
    ) -> None:
        self.key = key
        self.api = API_TABLE[key].name
        self.version = version
        self.client_version = client_version
        self.client = client
        self._read = read
        self._message: Any = None
        self.delay_s = 0.0
        self.end = ""
        """``"drop"`` or ``"close"`` if a hook has called the method of that name, else an empty string."""

    @property
    def message(self) -> Any:
        """The decoded request. If no hook reads this property, the client's bytes are forwarded.

        Raises:
            DecodeError: the request cannot be decoded.
        """
        if self._message is None:
            self._message = self._read()
        return self._message

    @property
    def is_decoded(self) -> bool:
        """True if a hook has read `message`."""
        return self._message is not None

    def delay(self, seconds: float) -> None:
        """Delay the request by a number of seconds. Later requests of the connection wait as well."""
        if not seconds >= 0:
            raise ValueError(f"a delay of {seconds} s")
        self.delay_s = seconds

    def drop(self) -> None:
        """Answer neither this request nor any later one of the connection, but keep the connection open.

        If `on_request` calls this, the cluster does not get the request.
        """
        self.end = "drop"

    def close(self) -> None:
        """Close the client's connection instead of answering the request."""
        self.end = "close"

    def __repr__(self) -> str:
        return f"<{self.api} v{self.version} of {self.client.address}>"


class Batch:
    """A batch of records for hook functions, from a Produce request or a Fetch or ShareFetch response."""

    __slots__ = ("_read", "_table", "partition", "request", "topic")

    def __init__(
        self, request: ClientRequest, topic: str, partition: int, read: Callable[[], pa.Table]
    ) -> None:
        self.request = request
        self.topic = topic
        """The name of the topic in the cluster, even if clients use another name."""
        self.partition = partition
        self._read = read
        self._table: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """The records: key, value, topic, partition, offset, timestamp, timestampType, headers.

        Raises:
            CorruptRecordError: the records cannot be decoded.
            Refused: the records are messages of format 0 or 1 (UNSUPPORTED_FOR_MESSAGE_FORMAT).
        """
        if self._table is None:
            self._table = self._read()
        return self._table


OnRequest = Callable[[ClientRequest], "Message | None"]
OnResponse = Callable[[ClientRequest, Any], "Message | None"]
OnBatches = Callable[[Batch], "pa.Table | pa.RecordBatch | None"]


@dataclass(frozen=True)
class Hook:
    """Functions of an application that the gateway calls for the requests of some APIs.

    Args:
        apis: names of APIs, such as ``("Produce",)``. Empty means all APIs but SASL, and for `on_batches`
            Produce, Fetch and ShareFetch.
        on_request: is called with a `ClientRequest` before it goes to the cluster, and may return a response.
        on_response: is called with the request and the response; changes the response in place or returns
            another.
        on_batches: is called with each `Batch`, and returns a table to replace it, or None.
        blocks: True runs the functions in a thread, because they may block.

    Raises:
        ConfigError: there is no such API, or hooks cannot be for it.
        MissingDependencyError: `on_batches` is given, and numpy or pyarrow is not installed.
    """

    apis: Sequence[str] = ()
    on_request: OnRequest | None = None
    on_response: OnResponse | None = None
    on_batches: OnBatches | None = None
    blocks: bool = False

    def __post_init__(self) -> None:
        for name in ("on_request", "on_response", "on_batches"):
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise ConfigError(f"{name} is {function!r}: a function is needed")
        if self.on_batches is not None:
            need_arrow("on_batches")
        if isinstance(self.apis, str):
            raise ConfigError(f"apis is {self.apis!r}: give a list of names")
        self.keys_of_requests, self.keys_of_batches  # noqa: B018 - raises where a name is wrong

    @property
    def keys_of_requests(self) -> frozenset[int]:
        """The keys of the APIs for which `on_request` and `on_response` are called."""
        if self.on_request is None and self.on_response is None:
            return frozenset()
        return frozenset(map(_key_of, self.apis)) or frozenset(API_TABLE) - UNHOOKED

    @property
    def keys_of_batches(self) -> frozenset[int]:
        """The keys of the APIs for which `on_batches` is called."""
        if self.on_batches is None:
            return frozenset()
        keys = frozenset(map(_key_of, self.apis)) or frozenset(WITH_RECORDS)
        if self.on_request is None and self.on_response is None and not keys <= set(WITH_RECORDS):
            raise ConfigError("on_batches is for Produce, Fetch and ShareFetch: no other API has records")
        return keys & set(WITH_RECORDS)


def _key_of(name: str) -> int:
    names = {api.name: key for key, api in API_TABLE.items()}
    key = names.get(name)
    if key is None:
        raise ConfigError(f"there is no API {name!r}{did_you_mean(str(name), names)}")
    if key in UNHOOKED:
        raise ConfigError(f"no hook can be for {name}: logins pass the gateway as they are")
    return key


def _code_of(error: str | int) -> int:
    if isinstance(error, str):
        if error in ErrorCode.__members__ and error != "NONE":
            return int(ErrorCode[error])
        near = nearest(error, ErrorCode.__members__)
        raise ConfigError(f"there is no error {error!r}{f'; did you mean {near[0]}?' if near else ''}")
    if error == 0 or error not in set(ErrorCode):
        raise ConfigError(f"there is no error with code {error}")
    return int(error)
