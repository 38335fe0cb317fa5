"""Read and write a partition's `leader-epoch-checkpoint`: each leader epoch with its first offset."""

from __future__ import annotations

from penstock.errors import StorageError
from penstock.log.directory.checkpoint import read_checkpoint, write_checkpoint
from penstock.log.epochs import Entries, LeaderEpochs


def new_epochs(path: str) -> LeaderEpochs:
    """Return an empty `LeaderEpochs` that writes every change to the file `path`."""
    return _saved_in(path, ())


def load_epochs(path: str) -> LeaderEpochs:
    """Return the `LeaderEpochs` in the file `path`, empty if it is missing; changes update the file.

    Raises:
        StorageError: the file is unreadable or malformed.
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
