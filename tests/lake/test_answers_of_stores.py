"""Tests of error messages about object stores, and of waiting for slow connections and busy stores.

A message is one line that says what the user can do.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from lake.s3_server import Store
from penstock.errors import ConfigError, StorageError
from penstock.lake.kinds import objects, spool
from penstock.lake.kinds.objects import Objects
from penstock.lake.kinds.refused import TEXT_CHARS_MAX, answer_of
from penstock.landing.files import FileSettings
from penstock.landing.layout import TableLayout

BRANCH = "\n \x1b[31m↳\x1b[0m "
DOCUMENT = '<?xml version="1.0"?>\n<Error><Code>{}</Code><Message>{}</Message><Key>orders</Key></Error>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Generic S3 error: Error performing list request: Error performing GET http://s/lake?p=b in 1.2s "
            "- Server returned non-2xx status code: 403 Forbidden: "
            + DOCUMENT.format("InvalidAccessKeyId", "No such key is known."),
            "GET http://s/lake?p=b: 403 Forbidden: No such key is known (InvalidAccessKeyId). Check the "
            "credentials in --store, --store-file or the environment, and what they may do",
        ),
        (
            "Kernel error -> Generic S3 error"
            + BRANCH.join(
                ("", "Error performing list request", "404 Not Found", DOCUMENT.format("NoSuchBucket", ""))
            ),
            "404 Not Found: NoSuchBucket. Create the bucket, or check its name",
        ),
        (
            "Generic S3 error: Error performing PUT http://s/a in 30.1s, after 5 retries, max_retries: 5, "
            "retry_timeout: 180s - HTTP error: error sending request",
            "PUT http://s/a, tried 6 times: HTTP error: error sending request. Does the store or catalog run "
            "there, and is its address right?",
        ),
        (
            "Configuration key: 'nonsense' is not valid for store 'S3'.\n\nDebug source:\nUnknown {\n}",
            "Configuration key: 'nonsense' is not valid for store 'S3'",
        ),
        (
            "(sqlite3.OperationalError) database or disk is full\n(Background on this error at: https://s/e/21)",
            "(sqlite3.OperationalError) database or disk is full. Make room on the disk",
        ),
        (
            "URI missing, please provide using --uri, the config or environment variable",
            "URI missing, please provide using --uri, the config or environment variable. Give --store "
            "uri=... and its other options, or a section of ~/.pyiceberg.yaml",
        ),
        ("", "ValueError"),
        ("secret_access_key=hush", "secret_access_key=[hidden]"),
    ],
)
def test_an_answer_is_one_line(text: str, said: str) -> None:
    assert answer_of(ValueError(text)) == said


def test_an_answer_has_a_largest_size() -> None:
    assert len(answer_of(ValueError("x" * 10_000))) == TEXT_CHARS_MAX + 1


def objects_of(store: Store, **more: str) -> Objects:
    keys = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
    return Objects("s3://lake/orders/", {"endpoint": store.url, **keys, **more})


def test_a_large_file_has_more_time(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "ANSWER_S_MAX", 1)
    monkeypatch.setattr(objects, "RETRIES_MAX", 0)
    monkeypatch.setattr(objects, "SENT_BYTES_PER_S_MIN", 10)
    is_over = threading.Event()

    def slow(method: str, path: str) -> None:
        time.sleep(1.2)

    def never(method: str, path: str) -> None:
        is_over.wait(60)

    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"1")
    large.write_bytes(bytes(1000))
    store.fault = slow
    objects_of(store).send("large", large)
    assert store.names("lake/orders/large") == ["lake/orders/large"]
    store.fault = never
    with pytest.raises(StorageError, match="cannot write small in s3://lake/orders/"):
        objects_of(store).send("small", small)
    own = objects_of(store, timeout="500ms")
    with pytest.raises(StorageError, match="cannot write large in s3://lake/orders/"):
        own.send("large", large)
    is_over.set()


def test_a_busy_store_is_asked_again(store: Store) -> None:
    asked = 0

    def busy(method: str, path: str) -> str | None:
        nonlocal asked
        asked += 1
        return "before" if asked <= objects.RETRIES_MAX else None

    store.fault = busy
    assert objects_of(store).create("one", b"1")


def test_an_option_of_neither_the_store_nor_its_client_is_refused(store: Store) -> None:
    with pytest.raises(ConfigError, match="'nonsense' is not valid for store 'S3'"):
        objects_of(store, nonsense="1")


def test_spooled_files_of_killed_processes_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    new, old = tmp_path / f"{spool.PREFIX}new", tmp_path / f"{spool.PREFIX}old"
    new.mkdir()
    old.mkdir()
    long_ago = time.time() - spool.EMPTY_S_MAX - 1
    os.utime(old, (long_ago, long_ago))
    schema = pa.schema([("n", pa.int64())])
    made = spool.Spool(TableLayout((("n", "bigint"),)), 0, FileSettings(), lambda path, file: None)
    assert schema is not None
    assert new.exists()
    assert not old.exists()
    made.close()


def test_a_directory_that_another_process_looks_at_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tempfile.mkdtemp

    def looked_at(**words: str) -> str:
        found = made(**words)
        descriptor = os.open(found, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        threading.Timer(0.2, os.close, (descriptor,)).start()
        return found

    monkeypatch.setattr(spool.tempfile, "mkdtemp", looked_at)
    there = spool._Directory(str(tmp_path))
    assert there.path.is_dir()
    there.remove()
    assert list(tmp_path.iterdir()) == []
