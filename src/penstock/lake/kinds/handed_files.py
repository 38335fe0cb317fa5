"""Parquet files described as texts, so that one process can commit files that another process has written."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence

from penstock.errors import DecodeError
from penstock.lake.contract import HandedFile, begun_ago
from penstock.landing.manifest import LandedFile


def handed(files: Iterable[LandedFile], begun: float) -> list[HandedFile]:
    """Return texts that describe Parquet files, so that another process can commit the files.

    `begun` is the `time.monotonic` reading when the first file was begun.
    """
    begun_s = time.time() - (time.monotonic() - begun)
    return [
        HandedFile(
            each.path,
            each.rows,
            each.size_bytes,
            json.dumps({"begun": begun_s, "file": each.to_object()}),
        )
        for each in files
    ]


def taken(texts: Sequence[str]) -> tuple[list[LandedFile], float]:
    """Return (the Parquet files described by `texts`, the `time.monotonic` reading when the first was begun).

    Raises:
        DecodeError: a text is no description of a file.
    """
    files, begun = [], time.monotonic()
    for text in texts:
        try:
            found = json.loads(text)
            files.append(LandedFile.from_object(found["file"]))
            begun = min(begun, begun_ago(float(found["begun"])))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DecodeError(f"a file that was handed over is damaged: {error!r}") from None
    return files, begun
