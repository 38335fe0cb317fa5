"""Tests of the command ``penstock land``, and that it prints no secrets from its arguments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from lake.places import place
from lake.s3_server import Store
from penstock import write_topic
from penstock.cli import main
from penstock.cli.listing import NOUNS
from penstock.errors import ConfigError
from penstock.lake.credentials import StoreOptions, without_secrets
from penstock.lake.lander import Lander, LandSettings


def fill(servers: str, count: int) -> None:
    values = [b"wrong" if n == 3 else json.dumps({"n": n}).encode() for n in range(count)]
    write_topic(pa.table({"value": values}), "orders", bootstrap_servers=servers)


def check(noun: str, line: str) -> dict[str, object]:
    row: dict[str, object] = json.loads(line)
    assert list(row) == [field.name for field in NOUNS[noun]]
    return row


def test_a_topic_is_landed_looked_at_and_tidied(
    store: Store, servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(servers, 10)
    there = place("iceberg", store, tmp_path)
    file = tmp_path / "catalog.toml"
    file.write_text("".join(f"{name} = '{value}'\n" for name, value in there.options.items()))
    words = ["land", "orders", "--to", there.where, "--store-file", str(file), "-b", servers]
    figures = tmp_path / "land.prom"
    assert main([*words, "--format", "json", "--json", "--metrics-file", str(figures)]) == 0
    labels = 'topic="orders",table="iceberg://c/sales.orders"'
    lines = figures.read_text().splitlines()
    assert f"penstock_land_rows_total{{{labels}}} 9" in lines
    assert f"penstock_land_lag_offsets{{{labels}}} 0" in lines
    assert f'penstock_land_next_offset{{{labels},partition="0"}} 10' in lines
    row = check("land", capsys.readouterr().out)
    assert (row["rows"], row["dead"], row["files"], row["commits"], row["lag"]) == (9, 1, 1, 1, 0)
    fill(servers, 5)
    assert main([*words, "--status", "--json"]) == 0
    row = check("land status", capsys.readouterr().out)
    assert (row["position"], row["end"], row["lag"], row["table_rows"], row["snapshots"]) == (10, 15, 5, 9, 1)
    assert main([*words, "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("landed 4 rows of orders in 1 files (")
    assert "1 records do not fit; they are in the table of dead letters" in out
    assert main([*words, "--status"]) == 0
    assert "iceberg://c/sales.orders: 13 rows in 2 files (" in capsys.readouterr().out
    assert main([*words, "--tidy", "--keep", "0s", "--json"]) == 0
    for line in capsys.readouterr().out.splitlines():  # the table, and that of dead letters
        row = check("land tidy", line)
        assert (row["compacted_files"], row["compacted_into"]) == (2, 1)
    assert main([*words, "--tidy"]) == 0
    assert "put 0 files into 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "s3://lake/x/", "--upsert"], "files of Parquet alone take no updates"),
        (["--to", "iceberg://prod"], "named as iceberg://CATALOG/NAMESPACE.TABLE"),
        (["--to", "delta://"], "named as delta://"),
        (["--to", "x", "--status", "--tidy"], "give one of them"),
        (["--to", "x", "--dead-letters", "y", "--refuse-misfits"], "give one of them"),
        (["--to", "x", "--fields", "a b c", "--format", "json"], "is no list of columns"),
        (["--to", "x", "--debezium"], "give --upsert and --format json as well"),
        (["--to", "hdfs://x/y"], "HDFS has no request that creates a file whole"),
        (["--to", "x", "--store-file", "/nowhere.toml"], "cannot read /nowhere.toml"),
    ],
)
def test_wrong_words(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["land", "orders", "-b", "127.0.0.1:1", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_topic_that_is_followed_is_committed_at_the_end(store: Store, servers: str, tmp_path: Path) -> None:
    fill(servers, 3)
    there = place("directory", store, tmp_path)
    ending = threading.Event()
    settings = LandSettings("orders", servers, commit_every_s=0.01)
    with Lander(settings, there.table()) as lander:
        seen = []

        def committed(lander: Lander) -> None:
            seen.append(lander.written.rows)
            if len(seen) == 1:
                fill(servers, 3)
            if lander.written.rows == 6:
                ending.set()

        lander.run(follow=True, stopped=ending.is_set, committed=committed)
    assert seen[-1] == 6
    assert there.rows().num_rows == 6


def test_sigterm_has_what_was_read_committed(store: Store, servers: str, tmp_path: Path) -> None:
    fill(servers, 5)
    there = place("directory", store, tmp_path)
    words = ["land", "orders", "--to", there.where, "-b", servers, "-f", "--metrics-file"]
    figures = tmp_path / "land.prom"
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", *words, str(figures), "--every", "1ms"], stdout=subprocess.PIPE
    ) as process:
        while not figures.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith(b"landed 5 rows of orders in 1 files (")
    assert there.rows().num_rows == 5


def test_secrets_are_hidden(
    store: Store, servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = StoreOptions(
        {"secret_access_key": "hush", "region": "x", "token": "hush", "credential": "hush"}
    )
    assert "hush" not in repr(options)
    for text in (
        "s3.secret-access-key=hush",
        "{'client_secret': 'hush'}",
        "postgresql://me:hush@host/db",
        "token: hush",
        "https://x/y?X-Amz-Signature=hush&b=1",
    ):
        assert "hush" not in without_secrets(text)
    fill(servers, 1)
    store.fault = lambda method, path: "before" if path.endswith(".json") else None
    words = ["land", "orders", "--to", "iceberg://c/sales.orders", "-b", servers]
    url = "postgresql+nothing://me:hush@127.0.0.1:1/db"
    for option in ("type=sql", f"uri={url}", "s3.secret-access-key=hush"):
        words += ["--store", option]
    assert main(words) != 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "hush" not in err


def test_a_file_of_options_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "store.toml"
    file.write_text("access_key_id = 'old'\nallow_http = true\n")
    options = StoreOptions({"region": "x"}, file)
    assert options.values() == {"access_key_id": "old", "allow_http": "true", "region": "x"}
    assert not options.renew()
    file.write_text("access_key_id = 'new'\n")
    os.utime(file, ns=(time.time_ns(), time.time_ns() + 10**9))
    assert options.renew()
    assert options.values() == {"access_key_id": "new", "region": "x"}
    for wrong in ("a = [1]", "nothing"):
        file.write_text(wrong)
        with pytest.raises(ConfigError):
            options.renew()


def test_several_topics_go_each_into_a_table_of_its_own(
    store: Store, servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic, count in (("shop.orders", 3), ("shop.users", 2), ("other", 1)):
        write_topic(pa.table({"value": [b"x"] * count}), topic, bootstrap_servers=servers)
    words = ["land", "shop.*", "--to", f"{tmp_path}/{{topic}}", "-b", servers]
    figures = tmp_path / "land.prom"
    assert main([*words, "--metrics-file", str(figures)]) == 0
    assert "landed 5 rows of 2 topics in 2 files" in capsys.readouterr().out
    assert sorted(each.name for each in tmp_path.glob("*/")) == ["shop.orders", "shop.users"]
    lines = figures.read_text().splitlines()
    assert len([each for each in lines if each.startswith("penstock_land_rows_total{")]) == 2
    assert len([each for each in lines if each.startswith("# TYPE penstock_land_rows_total")]) == 1
    assert main([*words, "--status", "--json"]) == 0
    found = [check("land status", line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["topic"], row["lag"]) for row in found] == [("shop.orders", 0), ("shop.users", 0)]
    for wrong, why in (
        (["land", "shop.*", "--to", str(tmp_path / "one"), "-b", servers], "each has a table of its own"),
        (["land", "nix.*", "--to", "x/{topic}", "-b", servers], "no topic has a name like 'nix.*'"),
        (["land", "a", "--to", "s3://x/", "--group", "g", "-b", servers], "give -f as well"),
        (
            ["land", "a.b", "a-b", "--to", "iceberg://c/n.{topic}", "-b", servers],
            "'a.b' and 'a-b' would both go into iceberg://c/n.a_b",
        ),
    ):
        assert main(wrong) != 0
        assert why in " ".join(capsys.readouterr().err.split())


def test_dead_letters_are_tidied_and_a_table_that_is_missing_is_said(
    store: Store, servers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = place("iceberg", store, tmp_path)
    stored = [f"--store={name}={value}" for name, value in there.options.items()]
    words = ["land", "orders", "--to", there.where, *stored, "-b", servers]
    write_topic(pa.table({"value": [b"wrong"]}), "orders", bootstrap_servers=servers)
    for word in ("--status", "--tidy"):
        assert main([*words, word]) == 0
        assert "iceberg://c/sales.orders: there is no table yet" in capsys.readouterr().out
    for _ in range(2):
        fill(servers, 5)
        assert main([*words, "--format", "json"]) == 0
    capsys.readouterr()
    assert main([*words, "--tidy", "--keep", "0s", "--json"]) == 0
    rows = [check("land tidy", line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["table"], row["compacted_files"]) for row in rows] == [
        ("iceberg://c/sales.orders", 2),
        ("iceberg://c/sales.orders_dead_letters", 2),
    ]
