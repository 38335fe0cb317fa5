"""Ready-made hooks: mask a field, admit only CloudEvents, add a header with the client's address."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

from penstock.errors import ConfigError
from penstock.gateway.hooks.hook import Hook, Refused

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.gateway.hooks.hook import Batch, Client

MASK = "***"

ADDRESS_HEADER = "client-address"


def masked(
    topics: str | Collection[str],
    field: str,
    *,
    mask: object = MASK,
    at: Literal["fetch", "produce"] = "fetch",
    for_client: Callable[[Client], bool] | None = None,
) -> Hook:
    """Return a hook that replaces a field of JSON values by a mask.

    Values that are not JSON, and objects without the field, stay unchanged. If an object has a member twice,
    the last one counts, and the others are removed. A value that cannot be parsed, because of thousands of
    digits in a number or thousands of nested levels, is replaced by null.

    Args:
        topics: the topics, by their names in the cluster.
        field: the path of the field: a dot separates nested fields, as in ``card.number``. Every item of a
            list is searched.
        mask: the value of the masked field: any JSON value.
        at: ``"fetch"`` masks records that clients read, ``"produce"`` records that they write.
        for_client: returns True for a `Client` whose records are masked; None means all clients.

    Raises:
        ConfigError: `field` is empty, or `at` has another value.
    """
    if not field or at not in ("fetch", "produce"):
        raise ConfigError(
            f"masked: field={field!r}, at={at!r}: a field, and 'fetch' or 'produce', are needed"
        )
    named = _names(topics)
    path = field.split(".")

    def on_batches(batch: Batch) -> pa.Table | None:
        if batch.topic not in named or (for_client is not None and not for_client(batch.request.client)):
            return None
        return _with_values(batch.table, lambda value: _masked(value, path, mask))

    return Hook(
        apis=("Fetch", "ShareFetch") if at == "fetch" else ("Produce",),
        on_batches=on_batches,
    )


def _names(topics: str | Collection[str]) -> frozenset[str]:
    return frozenset((topics,) if isinstance(topics, str) else topics)


def _masked(value: bytes | None, path: list[str], mask: object) -> bytes | None:
    if not value:
        return value
    try:
        content = json.loads(value)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return value
    except (ValueError, RecursionError):  # thousands of digits, or of levels: it may hide the field
        return None
    if not _mask(content, path, mask) and not _has_twins(value):
        return value
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _has_twins(value: bytes) -> bool:
    """Return True if a JSON text has an object with a repeated member; the parser keeps only the last one."""
    found = False

    def look(members: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({name for name, _ in members}) != len(members)

    json.loads(value, object_pairs_hook=look)
    return found


def _mask(content: Any, path: Sequence[str], mask: object) -> bool:
    """Replace the field in decoded JSON by the mask; return True if the field was found."""
    if isinstance(content, list):
        found = [_mask(each, path, mask) for each in content]
        return any(found)
    if not isinstance(content, dict) or path[0] not in content:
        return False
    if len(path) > 1:
        return _mask(content[path[0]], path[1:], mask)
    content[path[0]] = mask
    return True


def _with_values(table: pa.Table, change: Callable[[bytes | None], bytes | None]) -> pa.Table | None:
    """Return a table in which `change` has been applied to each value, or None if no value has changed."""
    import pyarrow as pa

    before = table.column("value").to_pylist()
    after = [change(value) for value in before]
    if before == after:
        return None
    at = table.schema.get_field_index("value")
    return table.set_column(at, "value", pa.array(after, pa.binary()))


def checked_events(topics: str | Collection[str], *, types: Collection[str] | None = None) -> Hook:
    """Return a hook that admits only CloudEvents to topics.

    A partition with a record that is no valid event is refused with INVALID_RECORD (87); the other partitions
    of the request are not. The error message names the record and the rule.

    Args:
        topics: the topics, by their names in the cluster.
        types: the types of events that are admitted; None means all.
    """
    named = _names(topics)

    def on_batches(batch: Batch) -> None:
        if batch.topic not in named:
            return
        from penstock.cloudevents.event import Event
        from penstock.cloudevents.read_record import from_record

        table = batch.table
        columns = [table.column(name).to_pylist() for name in ("key", "value", "headers")]
        for number, (key, value, headers) in enumerate(zip(*columns, strict=True)):
            pairs = [(each["key"], each["value"]) for each in headers or ()]
            found = from_record(key, value, pairs)
            if not isinstance(found, Event):
                raise Refused("INVALID_RECORD", f"record {number} of the batch is no CloudEvent: {found}")
            if types is not None and found.type not in types:
                raise Refused("INVALID_RECORD", f"record {number} of the batch has type {found.type}")

    return Hook(apis=("Produce",), on_batches=on_batches)


def address_header(name: str = ADDRESS_HEADER, *, topics: str | Collection[str] | None = None) -> Hook:
    """Return a hook that adds a header with the address of the producer's machine to each record.

    Args:
        name: the name of the header. A header of this name that the client has sent is removed.
        topics: the topics, by their names in the cluster; None means all.
    """
    named = None if topics is None else _names(topics)

    def on_batches(batch: Batch) -> pa.Table | None:
        if named is not None and batch.topic not in named:
            return None
        import pyarrow as pa

        table = batch.table
        own = {"key": name, "value": batch.request.client.address.encode()}
        rows = [
            [each for each in headers or () if each["key"] != name] + [own]
            for headers in table.column("headers").to_pylist()
        ]
        at = table.schema.get_field_index("headers")
        return table.set_column(at, "headers", pa.array(rows, table.schema.field(at).type))

    return Hook(apis=("Produce",), on_batches=on_batches)
