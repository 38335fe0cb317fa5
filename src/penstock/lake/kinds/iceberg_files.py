"""Iceberg's data files described as texts, so that one process can commit files that another has written.

Needs pyiceberg. A text has the fields of the file's entry in an Iceberg manifest. Values of partitions and
bounds of columns are in Iceberg's single-value serialization.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from penstock.errors import DecodeError, StorageError

_COUNTS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS = ("lower_bounds", "upper_bounds")


def file_text(file: Any, metadata: Any, begun_s: float) -> str:
    """Return the description of a data file as text.

    `begun_s` is the time, in seconds since 1970, at which the writer began its first uncommitted file.
    """
    from pyiceberg.conversions import to_bytes

    kinds = [each.field_type for each in metadata.spec().partition_type(metadata.schema()).fields]
    values = [file.partition[place] for place in range(len(kinds))]
    return json.dumps(
        {
            "begun": begun_s,
            "path": file.file_path,
            "spec": metadata.default_spec_id,
            "partition": [
                None if value is None else _text(to_bytes(kind, value))
                for kind, value in zip(kinds, values, strict=True)
            ],
            "rows": file.record_count,
            "bytes": file.file_size_in_bytes,
            "split_offsets": file.split_offsets,
            "sort_order": file.sort_order_id,
            **{
                name: {str(key): each for key, each in (getattr(file, name) or {}).items()}
                for name in _COUNTS
            },
            **{
                name: {str(key): _text(each) for key, each in (getattr(file, name) or {}).items()}
                for name in _BOUNDS
            },
        }
    )


def file_of(text: str, metadata: Any) -> tuple[Any, float]:
    """Return (the data file that a text describes, the time when its writer began its first file).

    The time is in seconds since 1970.

    Raises:
        DecodeError: the text is no data file of this table.
        StorageError: the partitions of the table have changed since.
    """
    from pyiceberg.conversions import from_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    try:
        found = json.loads(text)
        if found["spec"] != metadata.default_spec_id:
            raise StorageError("the table has other partitions than when its files were written: write anew")
        kinds = [each.field_type for each in metadata.spec().partition_type(metadata.schema()).fields]
        values = [
            None if each is None else from_bytes(kind, base64.b64decode(each))
            for kind, each in zip(kinds, found["partition"], strict=True)
        ]
        maps: dict[str, Any] = {
            **{name: {int(key): each for key, each in found[name].items()} for name in _COUNTS},
            **{
                name: {int(key): base64.b64decode(each) for key, each in found[name].items()}
                for name in _BOUNDS
            },
        }
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=str(found["path"]),
            file_format=FileFormat.PARQUET,
            partition=Record(*values),
            record_count=int(found["rows"]),
            file_size_in_bytes=int(found["bytes"]),
            sort_order_id=found["sort_order"],
            equality_ids=None,
            key_metadata=None,
            split_offsets=found["split_offsets"],
            **maps,
        )
        return file, float(found["begun"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DecodeError(f"a file that was handed over is damaged: {error!r}") from None


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
