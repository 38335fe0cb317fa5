"""`Recording`: captured traffic in one file, which can replay the cluster or the application."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from penstock.testing.replay.exchanges import RecordedExchange, read_exchanges
from penstock.testing.replay.files import read_file, write_file
from penstock.testing.replay.masked import mask_exchanges
from penstock.testing.replay.masking import MaskRule

if TYPE_CHECKING:
    from penstock.testing.replay.cluster import PlayedCluster
    from penstock.testing.replay.differences import Difference

SECRET_BYTES = 32


class Recording:
    """The exchanges of one capture, in the order of their requests.

    SASL tokens, delegation tokens, salted passwords and the values of secret settings are never stored.
    """

    def __init__(
        self, exchanges: Sequence[RecordedExchange], masked: Iterable[str] = (), unreadable_count: int = 0
    ) -> None:
        self.exchanges = [*exchanges]
        self.masked = tuple(sorted(set(masked)))
        """The parts of records that rules have masked: ``values``, or ``values:pay.*`` for topics that match
        a pattern."""
        self.unreadable_count = unreadable_count
        """The number of messages in the capture that could not be read; 0 if loaded from a file."""

    @classmethod
    def from_pcap(
        cls,
        source: str | os.PathLike[str] | bytes,
        *,
        mask: MaskRule | Iterable[MaskRule] = (),
        port: int | None = None,
        mask_secret: bytes | None = None,
    ) -> Recording:
        """Make a recording of a capture file (pcap or pcapng).

        Args:
            source: the path of the capture, or its bytes.
            mask: rules, applied in this order.
            port: the broker's port, if the capture has other connections as well.
            mask_secret: the secret of the masks; recordings with the same secret have the same masks. By
                default every recording has its own.

        Raises:
            DecodeError: the source is not a capture, has no readable request, or has records that cannot be
                masked.
            OSError: the file cannot be read.
        """
        data = source if isinstance(source, bytes) else Path(source).read_bytes()
        exchanges, unreadable_count = read_exchanges(data, port)
        rules = [mask] if isinstance(mask, MaskRule) else [*mask]
        mask_exchanges(exchanges, rules, mask_secret or secrets.token_bytes(SECRET_BYTES))
        masked = {name for rule in rules for name in rule.masked()}
        return cls(exchanges, masked, unreadable_count)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recording:
        """Read a recording that `save` has written.

        Raises:
            DecodeError: the file is not a recording, is damaged, or has a newer format.
            OSError: the file cannot be read.
        """
        return cls(*read_file(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording to one file; equal recordings give equal bytes.

        Raises:
            OSError: the file cannot be written.
        """
        write_file(path, self.exchanges, self.masked)

    @property
    def client_ids(self) -> list[str]:
        """Return the client ids of the requests, each once, in the order of their first requests."""
        return [*dict.fromkeys(each.client_id for each in self.exchanges if each.client_id is not None)]

    def cluster(
        self, *, otherwise: Literal["error", "broker"] = "error", host: str = "127.0.0.1"
    ) -> PlayedCluster:
        """Return a `PlayedCluster`, which replays the cluster for an application in a ``with`` block.

        Args:
            otherwise: the treatment of requests that were not recorded. ``error`` answers them with an error,
                and raises an error that lists them at the end of the block; ``broker`` passes them to a
                `KafkaBroker`.
            host: the address to listen at.

        Raises:
            ConfigError: `otherwise` is neither ``error`` nor ``broker``.
        """
        from penstock.testing.replay.cluster import PlayedCluster

        return PlayedCluster(self.exchanges, self.masked, otherwise=otherwise, host=host)

    def play_to(
        self,
        bootstrap_servers: str,
        *,
        client_ids: Iterable[str] | None = None,
        with_pauses: bool = False,
        timeout_s: float = 30.0,
    ) -> list[Difference]:
        """Replay the application: send the recorded requests to a broker, and compare its answers.

        Requests are sent in the recorded order, each after the answers that preceded it in the recording.

        Args:
            bootstrap_servers: a broker, ``host:port``; only the first of several is used. Requests go to the
                leaders and coordinators that its answers name.
            client_ids: the clients whose requests are sent; None for all.
            with_pauses: repeat the pauses between the recorded requests.
            timeout_s: the longest wait for an answer.

        Returns:
            The differences in the order of the answers; an empty list if there are none.

        Raises:
            ConfigError: `bootstrap_servers` is not an address, or no request is of these clients.
            NetworkError: the broker cannot be reached at all.
        """
        from penstock.testing.replay.application import Playing

        chosen = None if client_ids is None else {*client_ids}
        playing = Playing(self.exchanges, bootstrap_servers, chosen, with_pauses, timeout_s)
        return playing.run()

    def __repr__(self) -> str:
        connections = len({each.connection for each in self.exchanges})
        return f"<Recording of {len(self.exchanges)} requests on {connections} connections>"
