"""Tests of landing from the end of a topic: the start offset is stored even if no row was landed yet.

A process that is killed before its first row therefore continues at the same offset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import Place, place, polled
from lake.s3_server import Store
from penstock import write_topic
from penstock.lake.backfill import BACKFILL_SUFFIX, backfill_source
from penstock.lake.contract import OtherWriterError, Positions
from penstock.lake.kinds import delta, iceberg, object_table
from penstock.lake.lander import Lander, LandSettings
from penstock.lake.shapes import ShapeSettings

KINDS = ("directory", "object", "delta", "iceberg")
DECLARED = ShapeSettings("json", pa.schema([("n", pa.int64())]))


def fill(servers: str, first: int, count: int) -> None:
    values = [json.dumps({"n": n}).encode() for n in range(first, first + count)]
    write_topic(pa.table({"value": values}), "orders", bootstrap_servers=servers)


def begin(there: Place, servers: str, shape: ShapeSettings, *, shares: bool = False) -> Lander:
    settings = LandSettings("orders", servers, shape, start="latest", shares=shares)
    return Lander(settings, there.table(shares=shares), there.dead)


def numbers(there: Place) -> list[int]:
    return sorted(there.rows().column("n").to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_the_place_is_kept_before_any_row(
    kind: str, store: Store, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = place(kind, store, tmp_path)
    fill(servers, 0, 10)
    with monkeypatch.context() as patched:
        # What has no files has none that may be orphans, however long the machine has run.
        for module in (delta, iceberg, object_table):
            patched.setattr(module, "WRITE_S_MAX", -1.0)
        begin(there, servers, DECLARED).close()
    fill(servers, 10, 10)
    for _ in range(2):
        with begin(there, servers, DECLARED) as lander:
            lander.run(follow=False)
    assert numbers(there) == list(range(10, 20))
    settings = LandSettings("orders", servers, DECLARED)
    source = backfill_source(settings, there.table())
    with Lander(settings, there.table(writer=f"orders{BACKFILL_SUFFIX}"), source=source) as backfill:
        backfill.run(follow=False)
    assert numbers(there) == list(range(20))


@pytest.mark.parametrize("kind", KINDS)
def test_inferred_fields_keep_it_with_the_first_records(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    there = place(kind, store, tmp_path)
    fill(servers, 0, 10)
    begin(there, servers, ShapeSettings("json")).close()
    assert there.table().positions() is None
    with begin(there, servers, ShapeSettings("json")) as killed:
        fill(servers, 10, 10)
        killed.take(polled(killed))
    fill(servers, 20, 10)
    with begin(there, servers, ShapeSettings("json")) as lander:
        lander.run(follow=False)
    assert numbers(there) == list(range(10, 30))


@pytest.mark.parametrize("kind", ["object", "delta", "iceberg"])
def test_workers_of_a_group_begin_where_the_first_one_does(
    kind: str, store: Store, servers: str, tmp_path: Path
) -> None:
    there = place(kind, store, tmp_path)
    fill(servers, 0, 10)
    begin(there, servers, DECLARED, shares=True).close()
    fill(servers, 10, 10)
    for shares in (True, False):
        late = there.table(shares=shares)
        asked: list[Mapping[int, int]] = []

        def positions(found=late.positions, asked=asked) -> Positions | None:  # type: ignore[no-untyped-def]
            """What the table had before the first worker began, at the first look."""
            asked.append({})
            return None if len(asked) == 1 else found()

        late.positions = positions  # type: ignore[method-assign]
        settings = LandSettings("orders", servers, DECLARED, start="latest", shares=shares)
        if shares:
            with Lander(settings, late) as second:
                assert second.positions.offsets == {0: 10}
        else:
            with pytest.raises(OtherWriterError):
                Lander(settings, late)
