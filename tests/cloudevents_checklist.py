"""The CloudEvents rules as a table, and helpers with which tests check each rule in each mode.

`ROWS` has, for each rule that is a MUST or a SHOULD, where it applies: `read` or `write`, in `binary` or
`structured` mode. Each combination is a test; one without a check fails. All checks use the functions for one
event and those for a batch, which must agree.
"""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pytest

from cloudevents_cases import batch_of, outcomes
from penstock.cloudevents import (
    Event,
    InvalidEvent,
    InvalidEventError,
    decode_events,
    encode_events,
    from_record,
    to_record,
)
from penstock.cloudevents.columnar import EVENT_SCHEMA
from penstock.cloudevents.types import canonical_text

CELLS = {
    "read": ("read binary", "read structured"),
    "write": ("write binary", "write structured"),
    "binary": ("read binary", "write binary"),
    "structured": ("read structured", "write structured"),
    "all": ("read binary", "read structured", "write binary", "write structured"),
}
ROWS = {
    "K1": "write",
    "K4": "all",
    "K6": "binary",
    "K7": "binary",
    "K9": "write",
    "K10": "structured",
    "K14": "all",
    "K15": "read structured",
    "K17": "write",
    "K19": "write",
    "K20": "write",
    "K21": "write",
    "K22": "all",
    "K23": "binary",
    "K24": "binary",
    "K25": "binary",
    "K26": "binary",
    "K27": "binary",
    "K28": "binary",
    "K30": "write structured",
    "K32": "structured",
    "K33": "structured",
    "C1": "all",
    "C2": "all",
    "C3": "all",
    "C4": "all",
    "C5": "all",
    "C6": "all",
    "C7": "all",
    "C8": "all",
    "C9": "all",
    "C10": "all",
    "C11": "all",
    "C12": "all",
    "C13": "all",
    "C14": "read",
    "C15": "all",
    "C16": "all",
    "C18": "structured",
    "C19": "all",
    "C20": "read",
    "C22": "all",
    "C25": "write structured",
    "C26": "all",
    "T1": "all",
    "T2": "all",
    "T3": "all",
    "T4": "all",
    "T5": "all",
    "T6": "all",
    "T7": "all",
    "J1": "structured",
    "J2": "structured",
    "J3": "structured",
    "J4": "read structured",
    "J5": "write structured",
    "J6": "write structured",
    "J7": "structured",
    "J8": "read structured",
    "J9": "write structured",
    "J10": "write structured",
    "J11": "structured",
    "J12": "structured",
    "J13": "read structured",
    "J14": "read structured",
    "J15": "read structured",
    "J16": "all",
    "J18": "structured",
    "J19": "structured",
    "P1": "all",
    "A1": "structured",
    "A2": "structured",
    "A3": "structured",
    "A4": "structured",
    "R1": "structured",
    "R2": "structured",
    "R3": "structured",
}
"""A dict from rule to the directions and modes in which it applies, such as "read structured".

C21 and C24 (small events, no secrets) are left out, since they concern the sender. K2 and similar entries are
statements, not rules.
"""

TIMES = [
    "2018-04-05T03:56:24Z",
    "2018-04-05t03:56:24.5z",
    "2016-12-31T23:59:60Z",
    "2018-04-05T03:56:24.123456789012-00:00",
    "2018-04-05T03:56:24+23:59",
    "0000-02-29T00:00:00Z",
]
NO_TIMES = [
    "",
    "2018-04-05",
    "2018-04-05T03:56Z",
    "2018-04-05T03:56:24",
    "2018-04-05T03:56:24+05",
    "2018-04-05T03:56:24+24:00",
    "2018-04-05 03:56:24Z",
    "2018-02-29T00:00:00Z",
    "2018-04-05T24:00:00Z",
    "2018-04-05T03:56:24.Z",
    "lunchtime",
]
BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
MAP = pa.map_(pa.string(), pa.string())
CHECKS = {}


def check(*rules, only=("read", "write")):
    """Register a test function for rules, in every mode in which they apply.

    `only` restricts it to reading or writing. The function gets `mode`, and `do` and `rule` if it has these
    parameters.
    """

    def register(function):
        for rule in rules:
            for cell in CELLS.get(ROWS[rule], (ROWS[rule],)):
                if cell.split()[0] in only:
                    CHECKS.setdefault((rule, cell), []).append(function)
        return function

    return register


def record(mode, data=None, /, **attributes):
    """Return a record with these attributes, valid or not. `...` leaves one out, None is null."""
    members = {name: value for name, value in {**BASE, **attributes}.items() if value is not ...}
    if mode == "structured":
        texts = {
            k: v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for k, v in members.items()
        }
        if data is not None:
            texts["data_base64"] = base64.b64encode(data).decode()
        value = json.dumps(texts, ensure_ascii=False).encode("utf-8", "surrogateescape")
        return None, value, [("content-type", b"application/cloudevents+json")]
    headers = []
    for name, value in members.items():
        if isinstance(value, (bool, int)):
            value = json.dumps(value)
        raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
        headers.append(("content-type" if name == "datacontenttype" else f"ce_{name}", raw))
    return None, data, headers


def read(parts, **options):
    """Decode a record as one event and as a batch, check that both agree, and return the outcome."""
    outcome = from_record(*parts, **options)
    row = decode_events(batch_of([parts]), columns=EVENT_SCHEMA.names, **options).to_pylist()[0]
    wanted = next(outcomes([parts], **options))
    wanted.pop("written", None)
    assert {name: row[name] for name in wanted} == wanted
    return outcome


def refused(mode, do, rules, **attributes):
    """Check that attributes are refused by one of `rules`, in decoding or in encoding."""
    if do == "read":
        outcome = read(record(mode, **attributes))
        assert isinstance(outcome, InvalidEvent)
        assert outcome.rule in rules
        return
    given = {name: value for name, value in {**BASE, **attributes}.items() if value is not ...}
    extensions = {name: given.pop(name) for name in list(given) if name not in EVENT_SCHEMA.names}
    with pytest.raises((InvalidEventError, TypeError)) as caught:
        Event(**given, extensions=extensions)
    assert isinstance(caught.value, TypeError) or caught.value.rule in rules
    if all(isinstance(value, str) for value in [*given.values(), *extensions.values()]):
        columns = {name: pa.array([value], pa.string()) for name, value in given.items()}
        batch = pa.RecordBatch.from_pydict(
            columns | {"extensions": pa.array([list(extensions.items())], MAP)}
        )
        if {"id", "source", "type"} <= given.keys():
            error = encode_events(batch, mode=mode, errors="column").column("error")[0].as_py()
            assert error.partition(":")[0] in rules


def accepted(mode, do, data=None, /, **attributes):
    """Check that attributes form a valid event, and that an encoded event is decoded unchanged."""
    if do == "read":
        event = read(record(mode, data, **attributes))
        assert isinstance(event, Event), event
    else:
        given = {**BASE, **attributes}
        extensions = {name: given.pop(name) for name in list(given) if name not in EVENT_SCHEMA.names}
        event = Event(**given, extensions=extensions, data=data)
        assert plain(read(written(event, mode))) == plain(event)
    for name, value in attributes.items():
        got = event.attributes()[name]
        assert canonical_text(got) == (json.dumps(value) if isinstance(value, (bool, int)) else value)
    assert event.data == data
    return event


def plain(event):
    """Return the event with its extensions as text, the only type that headers have."""
    return event.replace(
        extensions={name: canonical_text(value) for name, value in event.extensions.items()},
        extension_types={},
    )


def written(event, mode, **options):
    """Encode an event alone and in a batch, check that both agree, and return the record."""
    parts = to_record(event, mode=mode, **options)
    arrays = {
        name: pa.array([getattr(event, name)], pa.string())
        for name in (
            "id",
            "source",
            "specversion",
            "type",
            "subject",
            "time_text",
            "datacontenttype",
            "dataschema",
        )
    }
    arrays["content_type"] = pa.array([event.content_type], pa.string())
    arrays["extensions"] = pa.array([[]], MAP)
    types = {bool: pa.bool_(), int: pa.int32(), bytes: pa.binary()}
    for name, value in event.extensions.items():
        arrays[f"ce_{name}"] = pa.array([value], types.get(type(value), pa.string()))
    arrays["data"] = pa.array([event.data], pa.binary())
    if "key" in options:
        arrays["key"] = pa.array([options.pop("key")], pa.binary())
    row = encode_events(pa.RecordBatch.from_pydict(arrays), mode=mode, **options).to_pylist()[0]
    assert (row["key"], row["value"]) == parts[:2]
    assert [(header["key"], header["value"]) for header in row["headers"]] == parts[2]
    return parts


EVENT = Event(
    **BASE, datacontenttype="application/json", data=b'{"a": 1.10}', extensions={"partitionkey": "p"}
)


def cells(letters):
    """Yield the test parameters of all rules that begin with one of these letters."""
    for rule, where in ROWS.items():
        for cell in CELLS.get(where, (where,)) if rule[0] in letters else ():
            yield pytest.param(rule, cell, id=f"{rule}-{cell.replace(' ', '-')}")


def run_checks(rule, cell, **known):
    """Run all checks of a rule in one mode.

    `known` has further arguments that the checks may take.
    """
    do, mode = cell.split()
    known |= {"rule": rule, "do": do, "mode": mode}
    checks = CHECKS.get((rule, cell), [])
    assert checks, f"nothing tests {rule} when events are to be {cell}"
    for function in checks:
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        function(**{name: known[name] for name in names})
