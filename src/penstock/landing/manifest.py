"""Manifests: each lists the files of a batch, is written once and never changes. The format is JSON,
version 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ConfigError, DecodeError
from penstock.landing.layout import FORMAT_VERSION, versioned_object
from penstock.model import OffsetRange


@dataclass(frozen=True, slots=True)
class LandedFile:
    """One Parquet file: its final path and the path where it was written, both relative to the table."""

    path: str
    staged: str
    rows: int
    size_bytes: int
    partition: Mapping[str, str | None]
    """A dict from each partition column to its value as text, or None for a null."""

    def to_object(self) -> dict[str, object]:
        """Return the file's entry in a manifest."""
        return {
            "path": self.path,
            "staged": self.staged,
            "rows": self.rows,
            "bytes": self.size_bytes,
            "partition": dict(self.partition),
        }

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> LandedFile:
        """Return the file in an entry of a manifest. Raises KeyError and TypeError for another form."""
        return cls(found["path"], found["staged"], found["rows"], found["bytes"], dict(found["partition"]))


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of batch number `batch` of `writer`: its files, and the offset ranges read for it.

    `topic_ids` maps the topics in these ranges to their ids, in the form that Kafka prints; unknown ids are
    missing.
    """

    writer: str
    batch: int
    files: tuple[LandedFile, ...]
    ranges: tuple[OffsetRange, ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_object(self) -> dict[str, object]:
        """Return the manifest as a JSON object."""
        return {
            "formatVersion": FORMAT_VERSION,
            "writer": self.writer,
            "batch": self.batch,
            "ranges": [list(each) for each in self.ranges],
            "topicIds": dict(sorted(self.topic_ids.items())),
            "files": [each.to_object() for each in self.files],
        }

    def to_json(self) -> str:
        """Return the text of the manifest."""
        return json.dumps(self.to_object(), indent=1)

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Manifest:
        """Return the manifest in a JSON object. Raises KeyError and TypeError for another form."""
        return cls(
            found["writer"],
            found["batch"],
            tuple(LandedFile.from_object(each) for each in found["files"]),
            tuple(OffsetRange(*each) for each in found["ranges"]),
            dict(found.get("topicIds", {})),
        )


def manifests_from_json(text: str | bytes, what: str) -> list[Manifest]:
    """Return the manifests in a file: one, or several if old manifests were merged into this file.

    Raises:
        DecodeError: the text has another form, or is of a newer version.
    """
    document: Mapping[str, Any] = versioned_object(text, what)
    try:
        if "manifests" in document:
            return [Manifest.from_object(each) for each in document["manifests"]]
        return [Manifest.from_object(document)]
    except (KeyError, TypeError) as error:
        raise DecodeError(f"{what} is damaged: {error!r}") from None


def manifests_to_json(manifests: Sequence[Manifest]) -> str:
    """Return several manifests as the text of one file."""
    return json.dumps(
        {"formatVersion": FORMAT_VERSION, "manifests": [each.to_object() for each in manifests]}
    )


def refuse_overlaps(ranges: Sequence[OffsetRange]) -> None:
    """Check that the offset ranges of a batch do not overlap, so that no record is contained twice.

    Raises:
        ConfigError: two ranges share an offset.
    """
    previous: OffsetRange | None = None
    for each in sorted(ranges):
        if previous is not None and each[:2] == previous[:2] and each.start < previous.end:
            raise ConfigError(
                f"{each.topic}-{each.partition} was read twice for one batch, from offset {each.start} on: "
                "write the rows of a landing source as they are, each of them once"
            )
        previous = each
