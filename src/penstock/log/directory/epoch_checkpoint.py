"""The file `leader-epoch-checkpoint` of a partition: its leader epochs, each with its first offset."""

from __future__ import annotations

from penstock.errors import StorageError
from penstock.log.directory.checkpoint import read_checkpoint, write_checkpoint
from penstock.log.epochs import Entries, LeaderEpochs


def new_epochs(path: str) -> LeaderEpochs:
    """Return leader epochs, none yet, of which every change is written to `path`."""
    return _saved_in(path, ())


def load_epochs(path: str) -> LeaderEpochs:
    """Return the leader epochs in the file, none where there is no file; changes are written to it.

    Raises:
        StorageError: unreadable or malformed.
    """
    try:
        entries = [(int(epoch), int(offset)) for epoch, offset in read_checkpoint(path, 2)]
    except ValueError:
        raise StorageError(f"{path} holds something that is no number") from None
    if entries != sorted(set(entries)):
        raise StorageError(f"the epochs in {path} are not ascending")
    return _saved_in(path, entries)


def _saved_in(path: str, entries: Entries) -> LeaderEpochs:
    return LeaderEpochs(entries, lambda changed: write_checkpoint(path, changed, sync=False))
