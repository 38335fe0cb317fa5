"""The file format of a recording: JSON lines and bytes, compressed with gzip.

The first line has the version of the format. Each exchange is a line with the sizes of request and answer,
then their bytes and a line feed. Equal recordings give equal bytes.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Sequence
from typing import Any

from penstock.errors import DecodeError
from penstock.protocol.api import API_TABLE
from penstock.testing.replay.exchanges import RecordedExchange

FORMAT_VERSION = 1
UNPACKED_BYTES_MAX = 1 << 30
"""The greatest unpacked size of a recording, in bytes: all of it is held in memory."""

GZIP_LEVEL = 6

_LINE_BYTES_MAX = 1 << 20


def write_file(
    path: str | os.PathLike[str], exchanges: Sequence[RecordedExchange], masked: Sequence[str]
) -> None:
    """Write a recording to a file.

    Raises:
        OSError: the file cannot be written.
    """
    out = io.BytesIO()
    out.write(_line({"penstock_recording": FORMAT_VERSION, "exchanges": len(exchanges), "masked": [*masked]}))
    for each in exchanges:
        line: dict[str, Any] = {
            "api": each.api,
            "key": each.api_key,
            "version": each.version,
            "at_ms": each.at_ms,
            "connection": each.connection,
            "broker": each.broker,
            "client_id": each.client_id,
            "request": len(each.request),
        }
        if each.response is not None:
            line |= {"answered_ms": each.answered_ms, "response": len(each.response)}
            if each.response_version != each.version:
                line["response_version"] = each.response_version
        out.write(_line(line) + each.request + (each.response or b"") + b"\n")
    with open(path, "wb") as file:
        file.write(gzip.compress(out.getvalue(), GZIP_LEVEL, mtime=0))


def read_file(path: str | os.PathLike[str]) -> tuple[list[RecordedExchange], list[str]]:
    """Read a recording from a file; return its exchanges, and the parts of records that were masked.

    Raises:
        DecodeError: the file is not a recording, has a newer format, is damaged, or unpacks to more than 1
            GiB.
        OSError: the file cannot be read.
    """
    try:
        with open(path, "rb") as packed, gzip.open(packed) as file:
            data = file.read(UNPACKED_BYTES_MAX + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DecodeError(f"{os.fspath(path)} is no recording of Penstock, or is damaged: {error}") from None
    if len(data) > UNPACKED_BYTES_MAX:
        raise DecodeError(f"{os.fspath(path)} unpacks to more than {UNPACKED_BYTES_MAX} bytes")
    stream = io.BytesIO(data)
    try:
        first = _read_line(stream)
        version = first["penstock_recording"]
        if version != FORMAT_VERSION:
            raise DecodeError(f"the recording has format {version}, this Penstock reads {FORMAT_VERSION}")
        exchanges = [_read_exchange(stream) for _ in range(int(first["exchanges"]))]
        masked = [str(each) for each in first["masked"]]
        for each in masked:
            re.compile(each.partition(":")[2])
        return exchanges, masked
    except DecodeError as error:
        raise DecodeError(f"{os.fspath(path)}: {error}") from None
    except (KeyError, TypeError, ValueError, re.error) as error:
        raise DecodeError(f"{os.fspath(path)} is no recording of Penstock, or is damaged: {error}") from None


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _read_line(stream: io.BytesIO) -> dict[str, Any]:
    found = json.loads(stream.readline(_LINE_BYTES_MAX))
    if not isinstance(found, dict):
        raise ValueError("a line is no object")
    return found


def _read_exchange(stream: io.BytesIO) -> RecordedExchange:
    line = _read_line(stream)
    request = _take(stream, line["request"])
    response = _take(stream, line["response"]) if "response" in line else None
    if stream.read(1) != b"\n":
        raise ValueError("an exchange does not end where it should")
    key, version = int(line["key"]), int(line["version"])
    api = API_TABLE.get(key)
    if api is None or not api.versions[0] <= version <= api.versions[1]:
        raise DecodeError(f"{line['api']} v{version} is not known to this Penstock")
    answered_ms = line.get("answered_ms")
    return RecordedExchange(
        int(line["connection"]),
        str(line["broker"]),
        float(line["at_ms"]),
        key,
        version,
        None if line["client_id"] is None else str(line["client_id"]),
        request,
        response,
        -1 if response is None else int(line.get("response_version", version)),
        None if answered_ms is None else float(answered_ms),
    )


def _take(stream: io.BytesIO, size: int) -> bytes:
    if type(size) is not int or size < 0:
        raise ValueError(f"{size!r} is no size")
    data = stream.read(size)
    if len(data) < size:
        raise ValueError("the file is cut short")
    return data
