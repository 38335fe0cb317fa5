"""Landing into SeaweedFS, a real store that speaks S3: writer and store are killed, requests fail both ways.

The store is built from its sources by Go's module proxy, as tests/compat/seaweedfs/go.sum says.
"""

from __future__ import annotations

import json
import random
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from compat.faulty_proxy import faulty_proxy
from compat.lake_kills import land_the_rest, land_through_kills
from compat.peers import go_program
from penstock import Broker
from penstock.lake.contract import LakeTable, TableSettings
from penstock.lake.credentials import StoreOptions
from penstock.lake.targets import open_table

pytestmark = [pytest.mark.compat, pytest.mark.soak]


class SeaweedFS:
    """The store in a directory, which may be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._program = go_program("seaweedfs", "github.com/seaweedfs/seaweedfs/weed")
        self._directory = directory
        self._ports = [_port_pair() for _ in range(4)]
        self.port = self._ports[0]
        identity = {
            "name": "penstock",
            "credentials": [{"accessKey": "penstock", "secretKey": "hush"}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        s3, master, volume, filer = self._ports
        words = [f"-s3.port={s3}", f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}"]
        words += [
            "-volume.max=30",
            "-master.volumeSizeLimitMB=64",
            "-ip=127.0.0.1",
            f"-dir={self._directory}",
        ]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "server", "-s3", f"-s3.config={self._directory}/s3.json", *words],
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        until = time.monotonic() + 120
        while time.monotonic() < until:
            try:
                self.files().create_dir("lake")
                # A write needs a volume, which a master hands out a while after its start.
                with self.files().open_output_stream("lake/ready") as sink:
                    sink.write(b"1")
                return
            except OSError:
                time.sleep(0.5)
        pytest.fail(f"SeaweedFS does not answer: {(self._directory / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """End it at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def files(self) -> pa.fs.S3FileSystem:
        """What another library reads there."""
        return pa.fs.S3FileSystem(
            access_key="penstock",
            secret_key="hush",
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
            connect_timeout=5,
            request_timeout=20,
        )


def _port_pair() -> int:
    """A port that is free, and so is the one 10,000 above it, which the store takes for itself."""
    drawn = random.SystemRandom()
    while True:
        port = drawn.randrange(15_000, 25_000)
        try:
            for each in (port, port + 10_000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
            return port
        except OSError:
            continue


@pytest.fixture
def seaweed(tmp_path: Path) -> Iterator[SeaweedFS]:
    """A store with the bucket ``lake``."""
    directory = tmp_path / "seaweed"
    directory.mkdir()
    store = SeaweedFS(directory)
    try:
        store.start()
        yield store
    finally:
        store.kill()


def options_of(kind: str, url: str, directory: Path) -> tuple[str, dict[str, str]]:
    """The name of a table, and the options of its store."""
    if kind == "object":
        own = {"endpoint": url, "access_key_id": "penstock", "secret_access_key": "hush"}
        return "s3://lake/orders/", {**own, "region": "us-east-1"}
    if kind == "delta":
        own = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "penstock", "AWS_SECRET_ACCESS_KEY": "hush"}
        return "delta://s3://lake/delta", {**own, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
    return "iceberg://c/sales.orders", {
        "type": "sql",
        "uri": f"sqlite:///{directory}/catalog.db",
        "warehouse": "s3://lake/wh",
        "s3.endpoint": url,
        "s3.access-key-id": "penstock",
        "s3.secret-access-key": "hush",
        "s3.region": "us-east-1",
    }


def rows_of(kind: str, where: str, options: dict[str, str], store: SeaweedFS) -> list[int]:
    """The values that another library reads."""
    found: pa.Table
    if kind == "object":
        files = store.files()
        there = files.get_file_info(pa.fs.FileSelector("lake/orders/_penstock/manifests", recursive=True))
        manifests = [json.loads(files.open_input_file(each.path).read()) for each in there if each.is_file]
        paths = [f"lake/orders/{file['path']}" for each in manifests for file in each["files"]]
        found = pa.concat_tables([pq.read_table(path, filesystem=files) for path in paths])
    elif kind == "delta":
        from deltalake import DeltaTable

        url = where.removeprefix("delta://")
        found = pa.table(DeltaTable(url, storage_options=options).to_pyarrow_table())
    else:
        from pyiceberg.catalog import load_catalog

        found = load_catalog("c", **options).load_table("sales.orders").scan().to_arrow()
    return sorted(found.column("n").to_pylist())


@pytest.mark.parametrize("kind", ["object", "delta", "iceberg"])
def test_writer_and_store_are_killed_and_requests_fail(kind: str, seaweed: SeaweedFS, tmp_path: Path) -> None:
    drawn = random.Random(f"seaweed {kind}")
    with Broker() as broker, faulty_proxy(seaweed.port) as proxy:
        servers = broker.bootstrap_servers

        where, options = options_of(kind, proxy.url, tmp_path)
        count = land_through_kills(
            where,
            options,
            servers,
            seaweed,
            proxy,
            drawn,
            methods=("PUT", "POST"),
            odds=0.15,
            directory=tmp_path,
        )
        straight, own = options_of(kind, f"http://127.0.0.1:{seaweed.port}", tmp_path)

        def table() -> LakeTable:
            return open_table(straight, "orders", TableSettings("orders"), StoreOptions(own))

        land_the_rest(servers, table())
        assert rows_of(kind, where, own, seaweed) == list(range(count))
        for _ in range(2):
            table().tidy(small_bytes=1, keep_snapshots_s=0, orphan_s=0)
        assert rows_of(kind, where, own, seaweed) == list(range(count))
        listed = seaweed.files().get_file_info(pa.fs.FileSelector("lake", recursive=True))
        left = [each.path for each in listed if each.path.endswith(".parquet")]
        assert len(left) == table().state().files
