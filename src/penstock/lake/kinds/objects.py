"""The storage of a table's files in an object store or a directory. Needs obstore."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from penstock.common.atomic_files import make_directory, storage_error, write_whole
from penstock.common.extras import missing
from penstock.errors import ConfigError, StorageError
from penstock.lake.credentials import StoreOptions, without_secrets
from penstock.lake.kinds.refused import answer_of

SCHEMES = ("s3", "s3a", "gs", "az", "abfs", "abfss")
"""URL schemes of stores in which a request can create an object only if it is missing. So, of two writers
that create the same object, one fails.
"""

REFUSED = {
    "hdfs": "HDFS has no request that creates a file whole, once. Use iceberg:// or delta:// there",
    "http": "a web server takes no tables",
    "https": "a web server takes no tables: name the store by its scheme, as in s3://bucket/prefix/",
}
"""A dict from the URL scheme of each store in which tables of files and manifests are impossible, to the
reason.
"""

RETRIES_MAX = 10
"""The number of retries if the store is too busy. The waits between them grow; together they take some
seconds.
"""

ANSWER_S_MAX = 30
"""The timeout of a request in seconds, not counting the time for sending the request's body."""

SENT_BYTES_PER_S_MIN = 1 << 20
"""The upload rate in bytes per second that timeouts assume. Slower connections need smaller files."""

_CLIENT_OPTIONS = (
    "timeout",
    "connect_timeout",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "allow_invalid_certificates",
    "user_agent",
)
"""Options of the HTTP client, which obstore expects separately from the options of the store."""


class ListedObject(NamedTuple):
    """A listed object: path below the prefix, size, and time of modification in seconds since 1970."""

    path: str
    size_bytes: int
    modified_s: float


class Files(Protocol):
    """The interface of the storage of a table, to which files are sent under their paths in the table."""

    def send(self, path: str, file: Path) -> None:
        """Write the local file `file` under the path `path`. Raises StorageError."""

    def remove(self, paths: list[str]) -> None:
        """Remove files; missing ones are not an error. Raises StorageError."""


class DirectoryFiles:
    """The files of a table below a directory, each written atomically and flushed to disk."""

    def __init__(self, root: str) -> None:
        self._root = Path(root)

    def send(self, path: str, file: Path) -> None:
        """Copy the local file `file` to `path` in the directory. Raises StorageError."""
        target = self._root / path
        make_directory(target.parent)
        write_whole(target, lambda hidden: _copy(file, hidden))

    def remove(self, paths: list[str]) -> None:
        """Remove files; missing ones are not an error. Raises StorageError."""
        for path in paths:
            try:
                (self._root / path).unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(self._root / path, error) from error


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def files_at(url: str, options: StoreOptions) -> Files:
    """Return an object that sends files to the table at a path or URL. Raises ConfigError."""
    return Objects(url, options.values()) if "://" in url else DirectoryFiles(url)


class Objects:
    """The objects of a store below a URL such as ``s3://bucket/prefix/``.

    `options` are those of the library obstore by name, such as ``endpoint`` and ``access_key_id``; options
    left out are taken from the environment, for example AWS_ENDPOINT_URL.
    """

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        scheme = urlsplit(url).scheme
        if scheme in REFUSED:
            raise ConfigError(f"{without_secrets(url)}: {REFUSED[scheme]}")
        if scheme not in SCHEMES:
            raise ConfigError(
                f"{scheme}:// is no store of tables: there are {', '.join(SCHEMES)}, "
                "and tables of iceberg://CATALOG/NAMESPACE.TABLE and delta://PATH"
            )
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise missing(error, f"a table in {scheme}://") from None
        self._obstore = obstore
        self.title = without_secrets(url)
        # The library takes what a client of the store is allowed apart from what the store is.
        config, client = {}, {"timeout": f"{ANSWER_S_MAX}s"}
        for name, value in options.items():
            if name.lower() in _CLIENT_OPTIONS:
                client[name.lower()] = value
            elif "allow_http" not in name.lower():
                config[name] = value
        self._has_own_timeout = any(name.lower() == "timeout" for name in options)
        names = {"endpoint", "aws_endpoint", "aws_endpoint_url", "endpoint_url"}
        endpoints = [value for name, value in config.items() if name.lower() in names]
        endpoints.append(os.environ.get("AWS_ENDPOINT_URL", ""))
        allows_http = {"allow_http": True} if any(each.startswith("http:") for each in endpoints) else {}

        def store(**more: str) -> Any:
            make: Any = from_url
            try:
                return make(
                    url.replace("s3a://", "s3://", 1),
                    config=config,
                    client_options={**client, **allows_http, **more},
                    retry_config={"max_retries": RETRIES_MAX},
                )
            except Exception as error:  # the library has errors of its own for each mistake
                raise ConfigError(f"{self.title}: {answer_of(error)}") from None

        self._make_store = store
        self._store: Any = store()

    def read(self, path: str) -> bytes | None:
        """Return the bytes of an object, or None if it does not exist. Raises StorageError."""
        with self._refusals("read", path):
            try:
                return bytes(self._obstore.get(self._store, path).bytes())
            except FileNotFoundError:
                return None

    def create(self, path: str, data: bytes) -> bool:
        """Create an object if it is missing; return True if the store now has exactly these bytes.

        If the outcome of a request is unknown, obstore repeats it; this function then finds the object of the
        first request.

        Raises:
            StorageError: the store refuses, or has no conditional writes.
        """
        with self._refusals("create", path):
            try:
                self._obstore.put(self._store, path, data, mode="create", use_multipart=False)
            except (FileExistsError, self._obstore.exceptions.AlreadyExistsError):
                return self.read(path) == data
            except self._obstore.exceptions.PreconditionError:
                return self.read(path) == data
        return True

    def need_conditions(self, path: str) -> None:
        """Test with an object at `path` that the store refuses to create an existing object again.

        Some stores ignore the condition in the request. Two writers would then overwrite each other's
        manifests.

        Raises:
            StorageError: the store writes the object twice.
        """
        self.create(path, b"1")
        with self._refusals("create", path):
            exceptions = self._obstore.exceptions
            try:
                self._obstore.put(self._store, path, b"2", mode="create", use_multipart=False)
            except (FileExistsError, exceptions.AlreadyExistsError, exceptions.PreconditionError):
                return
        raise StorageError(
            f"{self.title}: the store ignores conditions (If-None-Match), which decide between two writers. "
            "Use iceberg:// there, whose catalog decides, or a newer release of the store"
        )

    def send(self, path: str, file: Path) -> None:
        """Write the local file `file` as an object, by one request. Raises StorageError."""
        store = self._store
        # The library counts the time for the bytes in: a large file would never go over a slow line.
        sending_s = file.stat().st_size // SENT_BYTES_PER_S_MIN
        if sending_s and not self._has_own_timeout:
            store = self._make_store(timeout=f"{ANSWER_S_MAX + sending_s}s")
        with self._refusals("write", path):
            self._obstore.put(store, path, file, use_multipart=False)

    def found(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects below a prefix. Raises StorageError."""
        with self._refusals("list", prefix):
            for page in self._obstore.list(self._store, prefix=prefix or None):
                for each in page:
                    modified: datetime = each["last_modified"]
                    yield ListedObject(each["path"], each["size"], modified.timestamp())

    def remove(self, paths: list[str]) -> None:
        """Remove objects; missing ones are not an error. Raises StorageError."""
        for path in paths:
            with self._refusals("remove", path):
                try:
                    self._obstore.delete(self._store, path)
                except FileNotFoundError:
                    continue

    @contextmanager
    def _refusals(self, what: str, path: str) -> Iterator[None]:
        try:
            yield
        except (StorageError, ConfigError):
            raise
        except self._obstore.exceptions.NotSupportedError as error:
            raise StorageError(
                f"cannot {what} {path} in {self.title}: the store has no conditional writes, which decide "
                "between two writers. Use iceberg:// there, whose catalog decides"
            ) from error
        except Exception as error:  # the library has errors of its own
            raise StorageError(f"cannot {what} {path} in {self.title}: {answer_of(error)}") from None
