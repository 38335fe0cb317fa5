"""Schema registry clients in Spark's processes: one for each registry, shared by all tasks of a process.

Spark reuses its Python workers. A client caches schemas for later tasks too, so that a process requests each
schema once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from penstock.common.logs import logger_named
from penstock.common.operating_system import after_fork_in_child
from penstock.errors import ConfigError, DecodeError, NetworkError
from penstock.registry.client import Finder, RegistryClient
from penstock.registry.decoding import FORMATS, reader_version
from penstock.registry.schemas import RegisteredSchema, Schema
from penstock.security.secrets import Secret

if TYPE_CHECKING:
    from penstock.spark.value_options import FieldOptions

T = TypeVar("T")

log = logger_named("penstock.spark")

RETRY_AFTER_S = 1.0

Settings = tuple[tuple[str, str | Secret], ...]

_clients: dict[Settings, RegistryClient] = {}
after_fork_in_child(_clients.clear)


def client_for(settings: Settings) -> RegistryClient:
    """Return this process's client for a registry with these settings.

    Raises:
        ConfigError: a setting is wrong.
    """
    client = _clients.get(settings)
    if client is None:
        plain = {name: each.reveal() if isinstance(each, Secret) else each for name, each in settings}
        client = _clients[settings] = RegistryClient(plain)
    return client


def reader_schema(
    field: FieldOptions, registry: Settings | None, version: int | None = None
) -> tuple[Schema, int | None]:
    """Return (a field's reader schema, its version); the version is None for a schema given as text.

    `version` is the version from which a DataFrame's columns were made, used if the options name none.

    Raises:
        ConfigError: the registry has no such subject, or its schema is of another format.
        RegistryError, NetworkError: the request to the registry fails.
    """
    kind = FORMATS[field.format]
    if field.schema is not None:
        return Schema(field.schema, kind), None
    assert registry is not None  # the options have been checked
    assert field.subject is not None
    client, wanted = client_for(registry), field.version or version
    found = reader_version(client, field.subject) if wanted is None else client.version(field.subject, wanted)
    if found.schema.type != kind:
        raise ConfigError(
            f"version {found.version} of subject {field.subject!r} is of type {found.schema.type}; "
            f"{field.field}.format is {field.format!r}"
        )
    return found.schema, found.version


class PatientRegistry:
    """A registry client that retries requests to an unreachable registry for up to `outage_s` seconds."""

    def __init__(self, finder: Finder, outage_s: float) -> None:
        self._finder = finder
        self._outage_s = outage_s
        self.id_bytes: int = getattr(finder, "id_bytes", 4)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema with an id. Raises NetworkError after `outage_s` seconds."""
        return self._patiently(lambda: self._finder.schema_by_id(schema_id))

    def schema_by_guid(self, guid: str) -> Schema:
        """Return the schema with a GUID. Raises the errors of `schema_by_id`."""
        return self._patiently(lambda: self._finder.schema_by_guid(guid))

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject. Raises the errors of `schema_by_id`."""
        return self._patiently(lambda: self._finder.version(subject, version))

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """Return the schemas to which a schema refers. Raises the errors of `schema_by_id`."""
        return self._patiently(lambda: self._finder.referenced(schema))

    def _patiently(self, ask: Callable[[], T]) -> T:
        until = time.monotonic() + self._outage_s
        is_told = False
        while True:
            try:
                return ask()
            except NetworkError as error:
                if time.monotonic() >= until:
                    raise
                if not is_told:
                    log.warning("%s; the task waits for it up to %.0f s", error, self._outage_s)
                    is_told = True
                time.sleep(RETRY_AFTER_S)


class KnownVersions:
    """A registry client that raises an error for schemas newer than a given version of a subject."""

    def __init__(self, client: RegistryClient, subject: str, version: int) -> None:
        self._client = client
        self.id_bytes = client.id_bytes
        self._subject = subject
        self._version = version

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema with an id; raise `DecodeError` if it is newer than the known version."""
        return self._checked(self._client.schema_by_id(schema_id))

    def schema_by_guid(self, guid: str) -> Schema:
        """Return the schema with a GUID. Raises the errors of `schema_by_id`."""
        return self._checked(self._client.schema_by_guid(guid))

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject. Raises the errors of `RegistryClient`."""
        return self._client.version(subject, version)

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """Return the schemas to which a schema refers. Raises the errors of `RegistryClient`."""
        return self._client.referenced(schema)

    def _checked(self, schema: Schema) -> Schema:
        from penstock.registry.client import RegistryError

        try:
            found = self._client.lookup(self._subject, schema)
        except RegistryError as error:
            if error.code in (40401, 40403, 404):
                return schema  # another subject's
            raise
        if found.version > self._version:
            raise DecodeError(
                f"a record has version {found.version} of subject {self._subject!r}, and the columns are "
                f"those of version {self._version}: start the query again, which then has the newest columns"
            )
        return schema
