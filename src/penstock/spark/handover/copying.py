"""A copy of a checkpoint from which Spark's Kafka connector finishes the first micro-batch of a query.

Everywhere else the connector goes on from a checkpoint as it is.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from penstock.errors import ConfigError
from penstock.spark.handover.checkpoint import Checkpoint, read_checkpoint
from penstock.spark.source.planning import Offsets, offsets_to_json


def copy_for_kafka(path: str | Path, copy: str | Path) -> Checkpoint:
    """Copy a checkpoint whose first micro-batch is not through, with the file that the connector looks for.

    The query must not be running. The checkpoint stays as it is; the copy appears whole, or not at all.
    Returns the copy, read again.

    Raises:
        ConfigError: nothing needs a copy, the checkpoint does not say where a source began or is of another
            format, or there is something at `copy` already.
    """
    before = read_checkpoint(path)
    copy = Path(copy)
    if not before.is_first_unfinished:
        raise ConfigError(f"{path} needs no copy: change the format, and the connector goes on from it")
    begins = {source.name: source.begin for source in before.sources if source.begin is not None}
    unknown = [source.name for source in before.sources if source.end is not None and source.begin is None]
    if unknown or not begins:
        raise ConfigError(
            f"{path} does not say where source {', '.join(unknown) or 0} began: let the query finish its "
            "first micro-batch with the source that planned it"
        )
    if copy.exists():
        raise ConfigError(f"{copy} is there already: name a directory that is not")
    part = copy.with_name(copy.name + ".part")
    if part.exists():
        raise ConfigError(f"{part} is left from a copy that was interrupted: remove it")
    try:
        shutil.copytree(path, part)
        for name, begin in begins.items():
            _write(part / "sources" / name, begin)
        read_checkpoint(part)
        os.rename(part, copy)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return read_checkpoint(copy)


def _write(directory: Path, begin: Offsets) -> None:
    """The connector's own form: a zero byte, the version, the offsets without spaces."""
    directory.mkdir(parents=True, exist_ok=True)
    document = json.dumps(offsets_to_json(begin), separators=(",", ":"))
    # Hadoop's checksum of what was there would not fit.
    (directory / ".0.crc").unlink(missing_ok=True)
    with (directory / "0").open("wb") as file:
        file.write(b"\0v1\n" + document.encode())
        file.flush()
        os.fsync(file.fileno())
