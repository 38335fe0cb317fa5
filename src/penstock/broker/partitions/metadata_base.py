"""What a data directory has beside the metadata log: the newest snapshot, and the state of the quorum.

Files: `OFFSET-EPOCH.checkpoint` (KIP-630) and `quorum-state` (KIP-595), both as Apache Kafka writes them.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.directory.files import create_file, read_text, write_text
from penstock.log.directory.metadata_snapshots import Snapshot, newest_whole
from penstock.log.segments.segment_files import segment_path

logger = logger_named("penstock.broker")

QUORUM_STATE = "quorum-state"


class MetadataFiles:
    """The files beside one metadata log, which belongs to this node alone."""

    def __init__(self, directory: str, node_id: int) -> None:
        self._directory = directory
        self._node_id = node_id
        self.snapshot: Snapshot | None = None
        """What stands for the log below its end offset; None where the log is whole."""
        self._state = self._read_state()

    def begin_log(self) -> None:
        """Let the log begin where the newest snapshot ends, if nothing is left of the log itself.

        Raises:
            StorageError: the snapshots cannot be read, or the file not be made.
        """
        snapshot = newest_whole(self._directory)
        if snapshot is not None:
            create_file(segment_path(self._directory, snapshot.end_offset))

    def find_snapshot(self, start_offset: int, end_offset: int) -> None:
        """Look for the newest snapshot from which a log with these offsets goes on.

        Raises:
            StorageError: there is none, and the log does not begin with offset 0.
        """
        self.snapshot = newest_whole(self._directory, start_offset, end_offset)
        if self.snapshot is None and start_offset > 0:
            raise StorageError(
                f"{METADATA_TOPIC}-0 begins at offset {start_offset}, and no snapshot of what came before is "
                f"whole; restore {self._directory} from a copy"
            )

    @property
    def epoch(self) -> int:
        """The last raft epoch that the files know of; -1 if none does."""
        found = self._state.get("leaderEpoch")
        return max(
            found if isinstance(found, int) else -1, -1 if self.snapshot is None else self.snapshot.epoch
        )

    def begin_epoch(self, epoch: int) -> None:
        """Note that this node leads the quorum in an epoch, where Apache Kafka has kept such notes.

        Raises:
            StorageError: the note cannot be written.
        """
        if self._state:
            self._state.update({"leaderId": self._node_id, "leaderEpoch": epoch, "votedId": -1})
            if "votedDirectoryId" in self._state:
                self._state["votedDirectoryId"] = "A" * 22
            text = json.dumps(self._state, separators=(",", ":"))
            write_text(f"{self._directory}/{QUORUM_STATE}", text, sync=True)

    def _read_state(self) -> dict[str, Any]:
        """Return the state of the quorum as JSON; empty where there is no such file, or one that makes no
        sense.
        """
        try:
            found = json.loads(read_text(f"{self._directory}/{QUORUM_STATE}") or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
