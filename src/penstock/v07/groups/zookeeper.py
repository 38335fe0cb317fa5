"""A thin layer over kazoo: creates nodes with their parents, and ephemeral nodes held by dead sessions.

`kazoo` is an optional dependency (``pip install 'penstock[zookeeper]'``) and is imported when a connection is
made.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, MissingDependencyError, NetworkError

if TYPE_CHECKING:
    from kazoo.client import KazooClient

TICKS_S = 4.0
"""The time in seconds by which the expiry of a session may be late: ZooKeeper checks sessions every 2 s by
default."""


def connect(
    hosts: str,
    *,
    session_timeout_ms: int,
    connection_timeout_ms: int = 0,
    digest: str | None = None,
    listener: Callable[[str], object] | None = None,
) -> KazooClient:
    """Return a client of ZooKeeper with a new session. `hosts` is ``host:port,host:port/chroot``.

    The chroot must exist. The session must begin within `connection_timeout_ms`; 0 means
    `session_timeout_ms`. An attempt with a server that accepts a connection and sends nothing takes at least
    `session_timeout_ms`. `digest` is ``user:password``: the session authenticates with it, and only it has
    access to the nodes that it creates. `listener` is called with ``CONNECTED``, ``SUSPENDED`` and ``LOST``
    on kazoo's own thread.

    Raises:
        MissingDependencyError: kazoo is not installed.
        ConfigError: `hosts` is malformed.
        NetworkError: no server answers in time, or the chroot does not exist.
    """
    try:
        from kazoo.client import KazooClient
        from kazoo.handlers.threading import KazooTimeoutError
        from kazoo.security import make_digest_acl
    except ImportError as error:
        raise MissingDependencyError(
            "Kafka 0.7 with ZooKeeper needs kazoo: pip install 'penstock[zookeeper]'"
        ) from error
    options: dict[str, Any] = {}
    if digest is not None:
        user, _, password = digest.partition(":")
        options["auth_data"] = [("digest", digest)]
        options["default_acl"] = [make_digest_acl(user, password, all=True)]
    servers, slash, chroot = hosts.partition("/")
    try:
        client = KazooClient(hosts=servers, timeout=session_timeout_ms / 1000, **options)
    except ValueError as error:
        raise ConfigError(
            f"{servers!r} does not say where a ZooKeeper is, as host:port,host:port ({error})"
        ) from None
    if listener is not None:
        client.add_listener(lambda state: listener(str(state)))
    try:
        client.start(timeout=(connection_timeout_ms or session_timeout_ms) / 1000)
        has_root = not chroot or client.exists("/" + chroot) is not None
    except KazooTimeoutError as error:
        disconnect(client)
        raise NetworkError(f"no ZooKeeper answers at {hosts}: is it running there?") from error
    if not has_root:
        disconnect(client)
        raise NetworkError(f"ZooKeeper at {servers} has no node /{chroot}; create it first")
    # Given with the hosts, it would be checked by a warning instead of an error.
    client.chroot = slash + chroot
    return client


def disconnect(client: KazooClient) -> None:
    """End the session, which removes its ephemeral nodes. Listeners are not called."""
    for listener in list(client.state_listeners):
        client.remove_listener(listener)
    client.stop()
    client.close()


def create(client: KazooClient, path: str, data: bytes, *, creator: str, ephemeral: bool = False) -> None:
    """Create a node, and its parents if they are missing. Parents get the text `creator` as data.

    Raises:
        kazoo.exceptions.NodeExistsError: the node exists already.
    """
    from kazoo.exceptions import NodeExistsError, NoNodeError

    try:
        client.create(path, data, ephemeral=ephemeral)
    except NoNodeError:
        parts = path.strip("/").split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            with contextlib.suppress(NodeExistsError):
                client.create("/" + "/".join(parts[:depth]), creator.encode())
        client.create(path, data, ephemeral=ephemeral)


def put(client: KazooClient, path: str, data: bytes, *, creator: str) -> None:
    """Set a persistent node, and create it if it is missing."""
    from kazoo.exceptions import NodeExistsError, NoNodeError

    try:
        client.set(path, data)
    except NoNodeError:
        try:
            create(client, path, data, creator=creator)
        except NodeExistsError:
            client.set(path, data)


def read(client: KazooClient, path: str) -> bytes | None:
    """Return the data of a node, or None if the node does not exist."""
    from kazoo.exceptions import NoNodeError

    try:
        return bytes(client.get(path)[0] or b"")
    except NoNodeError:
        return None


def children(client: KazooClient, path: str) -> list[str]:
    """Return the names below a node, or an empty list if the node does not exist."""
    from kazoo.exceptions import NoNodeError

    try:
        return sorted(client.get_children(path))
    except NoNodeError:
        return []


def hold(client: KazooClient, path: str, data: bytes, *, creator: str) -> bool:
    """Create an ephemeral node; return True if this session owns it then, False if another session does.

    The owner is the session that created the node. The node's data do not show it: a dead session that has
    not expired may have written the same data, and ZooKeeper will remove its node.
    """
    from kazoo.exceptions import NodeExistsError, NoNodeError

    while True:
        try:
            create(client, path, data, creator=creator, ephemeral=True)
            return True
        except NodeExistsError:
            try:
                held, stat = client.get(path)
            except NoNodeError:
                continue
            session = client.client_id
            if session is None or stat.owner_session_id != session[0]:
                return False
            if held != data:
                client.set(path, data)
            return True


def hold_when_free(
    client: KazooClient, path: str, data: bytes, *, creator: str, session_timeout_ms: int, what: str
) -> None:
    """Create an ephemeral node; if another session owns it, wait until that session can have expired.

    Raises:
        NetworkError: the other session is alive, because it still owns the node. `what` is the name of the
            node in the message.
    """
    while not hold(client, path, data, creator=creator):
        gone = threading.Event()

        def changed(event: object, gone: threading.Event = gone) -> None:
            gone.set()

        if client.exists(path, watch=changed) is None:
            continue
        if not gone.wait(session_timeout_ms / 1000 + TICKS_S):
            holder = read(client, path)
            raise NetworkError(
                f"{what} is held in ZooKeeper by {holder!r} and was not released: does another process with "
                "the same number run?"
            )
