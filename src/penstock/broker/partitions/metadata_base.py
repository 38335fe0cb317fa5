"""Files beside the metadata log in a data directory: its newest snapshot, and the state of the quorum.

Files: `OFFSET-EPOCH.checkpoint` (KIP-630) and `quorum-state` (KIP-595), both as Apache Kafka writes them.
"""

from __future__ import annotations

import json
from typing import Any

from penstock.broker.partitions.internal_topics import METADATA_TOPIC
from penstock.common.logs import logger_named
from penstock.errors import StorageError
from penstock.log.directory.files import create_file, read_text, write_text
from penstock.log.directory.metadata_snapshots import SnapshotContents, newest_whole
from penstock.log.segments.segment_files import segment_path

logger = logger_named("penstock.broker")

QUORUM_STATE = "quorum-state"


class MetadataFiles:
    """Reads and writes the files beside the metadata log: snapshots and `quorum-state`."""

    def __init__(self, directory: str, node_id: int) -> None:
        self._directory = directory
        self._node_id = node_id
        self.snapshot: SnapshotContents | None = None
        """The snapshot of the metadata below its end offset; None if the log needs no snapshot, since it
        begins with offset 0."""
        self._state = self._read_state()

    def begin_log(self) -> None:
        """Create an empty log that begins at the end offset of the newest snapshot, if there is a snapshot.

        Raises:
            StorageError: the snapshots cannot be read, or the log's file cannot be created.
        """
        snapshot = newest_whole(self._directory)
        if snapshot is not None:
            create_file(segment_path(self._directory, snapshot.end_offset))

    def find_snapshot(self, start_offset: int, end_offset: int) -> None:
        """Find the newest snapshot that a log with these offsets continues.

        Raises:
            StorageError: no snapshot fits, and the log does not begin with offset 0.
        """
        self.snapshot = newest_whole(self._directory, start_offset, end_offset)
        if self.snapshot is None and start_offset > 0:
            raise StorageError(
                f"{METADATA_TOPIC}-0 begins at offset {start_offset}, and no snapshot of what came before is "
                f"whole; restore {self._directory} from a copy"
            )

    @property
    def epoch(self) -> int:
        """The newest raft epoch in the snapshot and `quorum-state`, or -1 if neither file has one."""
        found = self._state.get("leaderEpoch")
        return max(
            found if isinstance(found, int) else -1, -1 if self.snapshot is None else self.snapshot.epoch
        )

    def begin_epoch(self, epoch: int) -> None:
        """Record in `quorum-state`, if the file exists, that this node leads the quorum in an epoch.

        Raises:
            StorageError: the file cannot be written.
        """
        if self._state:
            self._state.update({"leaderId": self._node_id, "leaderEpoch": epoch, "votedId": -1})
            if "votedDirectoryId" in self._state:
                self._state["votedDirectoryId"] = "A" * 22
            text = json.dumps(self._state, separators=(",", ":"))
            write_text(f"{self._directory}/{QUORUM_STATE}", text, sync=True)

    def _read_state(self) -> dict[str, Any]:
        """Return the contents of `quorum-state`, or {} if the file does not exist or is malformed."""
        try:
            found = json.loads(read_text(f"{self._directory}/{QUORUM_STATE}") or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}
