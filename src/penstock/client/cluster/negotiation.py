"""The version of each API to use with one broker.

Brokers from 0.10 on list their versions in ApiVersions. A broker that does not support the version of that
request answers error 35 in the layout of version 0, with its own range (KIP-511). Brokers before 0.10 close
the connection after an unknown request, and 0.9.0.0 and 0.9.0.1 leave it unanswered; with those, the client
uses version 0 of every API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from penstock.client.addresses import Address
from penstock.client.cluster.connection import Connection
from penstock.client.cluster.other_protocols import TLS, expects_tls
from penstock.errors import (
    AuthenticationError,
    DecodeError,
    NetworkError,
    PenstockError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from penstock.protocol.api import ApiKey, stable_versions
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse
from penstock.protocol.messages.metadata_request import MetadataRequest
from penstock.version import __version__

if TYPE_CHECKING:
    from penstock.protocol.message import Message

OLDEST = {int(key): (0, 0) for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA)}
"""The APIs that every broker from 0.8.0 on has. The module `old_groups` detects the APIs of groups."""

FIRST_ASKED_VERSION = 3
"""The version of the first ApiVersions request, which every broker since 2.4 has. Clients need no newer
one."""

PROMPT_S = 0.1
"""The time in seconds without an answer to ApiVersions after which another request is sent, to test whether
the broker is slow or lacks the API."""

GRACE_S = 0.3
"""The minimum time in seconds to wait for the answer to ApiVersions after another request was answered. The
wait is three times as long as that answer took, if that is more."""

ONCE_MORE_S = 1.0
"""The timeout in seconds of each repeated ApiVersions request, before a broker counts as one without the
API."""

ONCE_MORE_TIMES = 4
"""The number of repeated ApiVersions requests before a broker counts as one without the API. If a busy
machine delays client or broker for a second, a producer must not lose its idempotence, which would let it
write records twice."""

SOFTWARE_NAME = "penstock"


class NodeVersions:
    """The API versions that one broker and this client have in common."""

    def __init__(
        self,
        address: Address,
        ranges: Mapping[int, tuple[int, int]],
        *,
        is_ancient: bool = False,
        unstable: bool = False,
        features: Mapping[str, int] | None = None,
        features_epoch: int = -1,
    ) -> None:
        self.address = address
        self.ranges = dict(ranges)
        self.is_ancient = is_ancient
        """True if the broker is older than ApiVersions (before 0.10)."""
        self.unstable = unstable
        """True if this client uses versions that are not final yet."""
        self.features = {} if features is None else features
        """The finalized level of each feature of the cluster, as this broker reports it (KIP-584)."""
        self.features_epoch = features_epoch
        """The epoch of `features`, which grows with each change, so that the newest can be found; -1 if the
        broker has none."""

    def choose(self, message_class: type[Message], at_most: int | None = None) -> int:
        """Return the highest version of a request that both ends support, at most `at_most`.

        Raises:
            UnsupportedVersionError: there is no common version.
        """
        key = message_class.API_KEY
        assert key is not None
        name = message_class.NAME.removesuffix("Request")
        ours_low, ours_high = message_class.VERSIONS if self.unstable else stable_versions(message_class)
        if at_most is not None:
            ours_high = min(ours_high, at_most)
        theirs = self.ranges.get(key)
        if theirs is None:
            if self.is_of_controller:
                raise UnsupportedVersionError(
                    f"{self.address} is the port of a controller, which does not know {name}: take that of a "
                    "broker"
                )
            raise UnsupportedVersionError(
                f"broker {self.address} does not know {name}: it is too old for this"
            )
        version = min(ours_high, theirs[1])
        if version < max(ours_low, theirs[0]):
            raise UnsupportedVersionError(
                f"broker {self.address} speaks {name} {theirs[0]} to {theirs[1]}, "
                f"{ours_low} to {ours_high} would do"
            )
        return version

    @property
    def is_of_controller(self) -> bool:
        """True if this is the listener of a controller, which has BrokerRegistration and no Produce."""
        return ApiKey.BROKER_REGISTRATION in self.ranges and ApiKey.PRODUCE not in self.ranges

    def highest(self, key: int) -> int:
        """Return the highest version of an API that the broker supports, or -1 if it lacks the API."""
        return self.ranges.get(key, (-1, -1))[1]


async def ask_versions(connection: Connection, timeout_s: float, *, unstable: bool = False) -> NodeVersions:
    """Ask the broker of a new connection for its API versions, and return them.

    `unstable` allows versions that are not final yet.

    Raises:
        NetworkError: the connection ended without a response, as with brokers before 0.10.
        RequestTimeoutError: no response, as with 0.9.0.0.
        KafkaError: the broker refuses.
        DecodeError: the response makes no sense.
    """

    version = FIRST_ASKED_VERSION
    for _ in range(3):
        request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=__version__)
        answer: ApiVersionsResponse = await connection.request(request, version, timeout_s)
        if answer.error_code == ErrorCode.NONE:
            return NodeVersions(
                connection.address,
                {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys},
                unstable=unstable,
                features={each.name: each.max_version_level for each in answer.finalized_features},
                features_epoch=answer.finalized_features_epoch,
            )
        if answer.error_code != ErrorCode.UNSUPPORTED_VERSION or version == 0:
            raise error_for(answer.error_code, f"broker {connection.address}, ApiVersions")
        listed = [api.max_version for api in answer.api_keys if api.api_key == ApiKey.API_VERSIONS]
        version = min(version - 1, listed[0] if listed and listed[0] >= 0 else 0)
    raise DecodeError(f"broker {connection.address} contradicts itself about the versions of ApiVersions")


async def negotiate(
    open_connection: Callable[[], Awaitable[Connection]],
    timeout_s: float,
    *,
    is_ancient: bool | None = None,
    unstable: bool = False,
    probes: bool = True,
) -> tuple[Connection, NodeVersions]:
    """Open a connection to a broker; return the connection, and the versions that the broker supports.

    A broker counts as older than 0.10 if it closes the connection on ApiVersions twice, or does not answer,
    then answers Metadata version 0, and still does not answer ApiVersions several times. An overloaded broker
    must not count as old, because it would get message sets without producer ids and headers. `is_ancient` is
    True or False as an earlier connection has shown, or None. `unstable` allows versions that are not final
    yet. `probes` allows a Metadata request if the answer to ApiVersions is late: a listener with SASL would
    count it as a failed login.

    Raises:
        NetworkError: the broker cannot be reached, or does not answer at all.
        KafkaError, DecodeError: as `ask_versions`.
    """
    silence: PenstockError | None = None
    for _ in range(0 if is_ancient else 2):
        connection = await open_connection()
        try:
            versions = await (
                _ask_patiently(connection, open_connection, timeout_s, unstable)
                if probes
                else ask_versions(connection, timeout_s, unstable=unstable)
            )
        except RequestTimeoutError as error:
            silence = error
            break
        except NetworkError as error:
            silence = error
        except BaseException:
            connection.close()
            raise
        else:
            if versions is not None:
                return connection, versions
            connection.close()
            break
    if is_ancient is False:
        raise silence or NetworkError(f"broker {connection.address} answers, but not what versions it speaks")
    connection = await open_connection()
    try:
        await connection.request(MetadataRequest(topics=[]), 0, timeout_s)
    except BaseException as error:
        connection.close()
        if isinstance(error, PenstockError) and silence is not None:
            if await expects_tls(connection.address):
                raise AuthenticationError(f"{connection.address} {TLS}") from error
            raise NetworkError(f"{connection.address}: {silence}; is it a Kafka broker?") from error
        raise
    if not is_ancient:
        found = await _ask_once_more(open_connection, timeout_s, unstable)
        if found is not None:
            connection.close()
            return found
    return connection, NodeVersions(connection.address, OLDEST, is_ancient=True)


async def _ask_once_more(
    open_connection: Callable[[], Awaitable[Connection]], timeout_s: float, unstable: bool
) -> tuple[Connection, NodeVersions] | None:
    """Request the API versions again, several times, on new connections; return None without an answer."""
    for _ in range(ONCE_MORE_TIMES):
        connection = await open_connection()
        try:
            return connection, await ask_versions(connection, min(timeout_s, ONCE_MORE_S), unstable=unstable)
        except (NetworkError, RequestTimeoutError):
            connection.close()
        except BaseException:
            connection.close()
            raise
    return None


async def _ask_patiently(
    connection: Connection,
    open_connection: Callable[[], Awaitable[Connection]],
    timeout_s: float,
    unstable: bool,
) -> NodeVersions | None:
    """Request the API versions; return None if the broker answers another request, but not this one."""
    asking = asyncio.ensure_future(ask_versions(connection, timeout_s, unstable=unstable))
    try:
        await asyncio.wait([asking], timeout=PROMPT_S)
        if not asking.done():
            probe = await open_connection()
            try:
                clock = asyncio.get_running_loop().time
                since = clock()
                await probe.request(MetadataRequest(topics=[]), 0, timeout_s)
                await asyncio.wait([asking], timeout=max(GRACE_S, 3 * (clock() - since)))
                if not asking.done():
                    return None
            except PenstockError:
                pass  # it is slow with everything: wait for the answer
            finally:
                probe.close()
        return await asking
    finally:
        asking.cancel()
