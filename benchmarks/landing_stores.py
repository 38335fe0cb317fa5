"""Stores for the tables of `landing.py`: a local disk, or SeaweedFS, an S3 store."""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

JDBC = "org.apache.iceberg.jdbc.JdbcCatalog"
S3_FILES = "org.apache.iceberg.aws.s3.S3FileIO"


@dataclass(frozen=True, slots=True)
class Catalog:
    """The options of a new SQLite catalog, in the names of PyIceberg and of Iceberg's Java library."""

    python: Mapping[str, str]
    java: Mapping[str, str]


@dataclass(slots=True)
class Store:
    """A store for tables: its title, a local directory for catalogs, and the URL prefix of tables."""

    title: str
    directory: Path
    prefix: str
    python: Mapping[str, str] = field(default_factory=dict)
    java: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, str] = field(default_factory=dict)
    """Options for tables that consist of files and manifests only, without a catalog."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_catalog(self) -> Catalog:
        """Create an empty catalog; its warehouse is a new directory of the store."""
        number = next(self._numbers)
        place = self.directory / f"catalog-{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        warehouse = f"{self.prefix}/warehouse-{number}"
        python = {
            "type": "sql",
            "uri": f"sqlite:///{place}/catalog.db",
            "warehouse": warehouse,
            **self.python,
        }
        java = {
            "catalog-impl": JDBC,
            "uri": f"jdbc:sqlite:{place}/catalog.db",
            "jdbc.schema-version": "V0",
            "warehouse": warehouse,
            **self.java,
        }
        return Catalog(python, java)

    def new_place(self) -> str:
        """Return a new location for a table without a catalog."""
        return f"{self.prefix.removeprefix('file://')}/files-{next(self._numbers)}"


@contextmanager
def local_disk(directory: Path) -> Iterator[Store]:
    """Yield a store on a local disk."""
    yield Store("local disk", directory, f"file://{directory}")


@contextmanager
def seaweedfs(directory: Path) -> Iterator[Store]:
    """Yield a store in SeaweedFS, with data in memory if the machine has /dev/shm.

    Go builds the store once from its module proxy, as the tests do.
    """
    from compat.seaweed_store import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, SeaweedFS

    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(
        prefix="penstock-bench-", dir=memory if memory.is_dir() else None
    ) as data:
        store = SeaweedFS(Path(data))
        try:
            store.start()
            url = f"http://127.0.0.1:{store.port}"
            keys = {"s3.endpoint": url, "s3.access-key-id": ACCESS_KEY, "s3.secret-access-key": SECRET_KEY}
            java = {"io-impl": S3_FILES, "s3.path-style-access": "true", "client.region": REGION, **keys}
            objects = {"endpoint": url, "access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}
            yield Store(
                "SeaweedFS by S3",
                directory,
                f"s3://{BUCKET}",
                {"s3.region": REGION, **keys},
                java,
                {"region": REGION, **objects},
            )
        finally:
            store.kill()


STORES = {"disk": local_disk, "seaweedfs": seaweedfs}
