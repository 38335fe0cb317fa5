"""What makes two records the same one: functions from a table of records to one identity per row.

A table here has the columns `key`, `value` and `headers`, as `read_topic` gives them. Identities only
have to be hashable, and equal for a record and the copy of it that is read back from its topic. None
stands for a record that cannot be distinguished from others.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from penstock.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

Identity = Callable[["pa.Table"], Sequence[Hashable | None]]


def by_event(table: pa.Table) -> Sequence[Hashable | None]:
    """`source` and `id` of each CloudEvent, in either content mode. The specification makes them unique."""
    from penstock.cloudevents.columnar import decode_events

    identities: list[Hashable | None] = []
    for batch in table.to_batches():
        events = decode_events(batch, columns=["source", "id"])
        pairs = zip(events.column("source").to_pylist(), events.column("id").to_pylist(), strict=True)
        identities += [None if event_id is None else (source, event_id) for source, event_id in pairs]
    return identities


def by_headers(*names: str) -> Identity:
    """The values of these headers together, the first of each name.

    Raises:
        ConfigError: no name is given.
    """
    if not names:
        raise ConfigError("by_headers needs the name of a header")
    nothing = (None,) * len(names)

    def identify(table: pa.Table) -> Sequence[Hashable | None]:
        columns = [header_values(table["headers"], name) for name in names]
        return [None if values == nothing else values for values in zip(*columns, strict=True)]

    identify.__name__ = f"by_headers({', '.join(names)})"
    return identify


def by_key(table: pa.Table) -> Sequence[Hashable | None]:
    """The key alone: for topics where a key occurs once."""
    keys: list[Hashable | None] = table["key"].to_pylist()
    return keys


def header_values(headers: pa.ChunkedArray, name: str) -> list[bytes | None]:
    """Per row the value of the first header called `name`; None where there is none, or it is null."""
    import pyarrow.compute as pc

    values: list[bytes | None] = [None] * len(headers)
    first_row = 0
    for chunk in headers.chunks:
        entries = pc.list_flatten(chunk)
        named = pc.equal(pc.struct_field(entries, "key"), name)
        rows = pc.filter(pc.list_parent_indices(chunk), named).to_pylist()
        found = pc.filter(pc.struct_field(entries, "value"), named).to_pylist()
        # Backwards, so that the first of several headers of one name is the one that stays.
        for row, value in zip(reversed(rows), reversed(found), strict=True):
            values[first_row + row] = value
        first_row += len(chunk)
    return values
