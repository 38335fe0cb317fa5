"""A thin layer over kazoo: nodes with their parents, ephemeral nodes that a dead session may still hold.

`kazoo` is an optional dependency (``pip install 'penstock[zookeeper]'``) and is imported when a connection
is made.
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
"""ZooKeeper decides about sessions on ticks, of 2 s by default: an expiry may be two of them late."""


def connect(
    hosts: str,
    *,
    session_timeout_ms: int,
    connection_timeout_ms: int = 0,
    digest: str | None = None,
    listener: Callable[[str], object] | None = None,
) -> KazooClient:
    """Open a session. `hosts` is ``host:port,host:port/chroot``; the chroot must exist.

    It has `connection_timeout_ms` to begin; 0 is `session_timeout_ms`, which a server that accepts and sends
    nothing has at least. `digest` is ``user:password``: the session authenticates with it, and what it
    creates is its alone. `listener` is called with ``CONNECTED``, ``SUSPENDED`` and ``LOST`` on kazoo's own
    thread.

    Raises:
        MissingDependencyError: kazoo is not installed.
        ConfigError: `hosts` makes no sense.
        NetworkError: no server answers in time, or there is no such chroot.
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
    """End the session, and with it every ephemeral node of it. That is no loss: no listener is called."""
    for listener in list(client.state_listeners):
        client.remove_listener(listener)
    client.stop()
    client.close()


def create(client: KazooClient, path: str, data: bytes, *, creator: str, ephemeral: bool = False) -> None:
    """Create a node, and its parents where they are missing. Parents hold the id of who created them.

    Raises:
        kazoo.exceptions.NodeExistsError: the node is there already.
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
    """Set a persistent node, creating it where it is missing."""
    from kazoo.exceptions import NodeExistsError, NoNodeError

    try:
        client.set(path, data)
    except NoNodeError:
        try:
            create(client, path, data, creator=creator)
        except NodeExistsError:
            client.set(path, data)


def read(client: KazooClient, path: str) -> bytes | None:
    """Return what a node holds; None where there is no such node."""
    from kazoo.exceptions import NoNodeError

    try:
        return bytes(client.get(path)[0] or b"")
    except NoNodeError:
        return None


def children(client: KazooClient, path: str) -> list[str]:
    """Return the names below a node; none where there is no such node."""
    from kazoo.exceptions import NoNodeError

    try:
        return sorted(client.get_children(path))
    except NoNodeError:
        return []


def hold(client: KazooClient, path: str, data: bytes, *, creator: str) -> bool:
    """Create an ephemeral node; True if it is ours afterwards, False if another session holds it.

    Whether it is ours is decided by the session that holds the node, not by its data: those of a session that
    is dead but not yet expired are often the same, and such a node goes away later.
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
    """Create an ephemeral node as soon as a session that may be dead lets go of it.

    Raises:
        NetworkError: it is held for longer than a dead session could; `what` names what is held.
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
