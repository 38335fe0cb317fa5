"""A client of schema registries: finds schemas by id, GUID and subject, and caches them.

The calls block. Settings have the names of Confluent's client (``url``, ``basic.auth.user.info``,
``bearer.auth.token``, ``ssl.ca.location`` ...).
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import threading
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.errors import ConfigError, DecodeError, NetworkError, PenstockError
from penstock.registry.schemas import RegisteredSchema, Schema, schema_in

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
ANSWER_BYTES_MAX = 64 << 20
TIMEOUT_S = 30.0
CACHED_SCHEMAS_MAX = 10_000
REFERENCES_MAX = 1_000
"""The maximum number of schemas to which one schema may refer, directly or indirectly."""

SETTINGS = {
    "url",
    "basic.auth.credentials.source",
    "basic.auth.user.info",
    "bearer.auth.credentials.source",
    "bearer.auth.token",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "timeout",
    "id.bytes",
}


class RegistryError(PenstockError):
    """Raised if a registry refuses a request.

    `status` is the HTTP status, `code` the registry's error code (40401: no such subject, 42201: an
    invalid schema, 409: an incompatible schema ...).
    """

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"the schema registry answers {code}: {message}")
        self.status = status
        self.code = code


class Finder(Protocol):
    """The interface of an object that looks up schemas for decoding, such as a registry client."""

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema with an id; raise `RegistryError` if the registry has none."""

    def schema_by_guid(self, guid: str) -> Schema:
        """Return the schema with a GUID; raise `RegistryError` if the registry has none."""

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject; raise `RegistryError` if it does not exist."""

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """Return the schemas to which a schema refers, as a dict from reference name to schema."""


class RegistryClient:
    """A client of a schema registry.

    It caches schemas by id and GUID, and numbered versions, which never change.

    >>> registry = RegistryClient("http://localhost:8081")
    >>> registry.register("orders-value", Schema('"string"'))
    1

    Thread-safe. Several URLs can be given, separated by commas: if a registry cannot be reached, the next is
    asked.
    """

    def __init__(self, config: str | Mapping[str, object]) -> None:
        """Set up a client for a URL, or for a dict of settings with dotted names.

        Raises:
            ConfigError: a setting is unknown or invalid.
        """
        settings: dict[str, Any] = {"url": config} if isinstance(config, str) else dict(config)
        if unknown := settings.keys() - SETTINGS:
            raise ConfigError(f"a registry client has no setting {min(unknown)!r}; it has {sorted(SETTINGS)}")
        self._urls = _urls(settings.get("url"))
        self.id_bytes = _id_bytes(settings.get("id.bytes", 4))
        """The size in bytes of the schema ids in front of values: 4, or 8 if Apicurio's serializers write
        long ids."""
        self._timeout_s = float(settings.get("timeout", TIMEOUT_S))
        self._context = _context(settings, self._urls)
        self._authorization = _authorization(settings, self._urls[0])
        self._lock = threading.RLock()
        self._connection: http.client.HTTPConnection | None = None
        self._by_id: dict[int, Schema] = {}
        self._by_guid: dict[str, Schema] = {}
        self._versions: dict[tuple[str, int], RegisteredSchema] = {}
        self._ids: dict[tuple[str, Schema, bool], int] = {}

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema with an id.

        Raises:
            RegistryError: the registry has no such schema (40403).
            NetworkError: no registry can be reached.
            DecodeError: the answer is not that of a registry.
        """
        with self._lock:
            found = self._by_id.get(schema_id)
            if found is None:
                found = schema_in(self._get(f"/schemas/ids/{int(schema_id)}"))
                _keep(self._by_id, schema_id, found)
            return found

    def schema_by_guid(self, guid: str) -> Schema:
        """Return the schema with a GUID. Raises the errors of `schema_by_id`."""
        with self._lock:
            found = self._by_guid.get(guid)
            if found is None:
                found = schema_in(self._get(f"/schemas/guids/{_quoted(guid)}"))
                _keep(self._by_guid, guid, found)
            return found

    def version(self, subject: str, version: int | str = "latest") -> RegisteredSchema:
        """Return a version of a subject. Numbered versions are cached; ``latest`` is requested each time.

        Raises:
            RegistryError: there is no such subject (40401) or version (40402).
            NetworkError, DecodeError: as in `schema_by_id`.
        """
        with self._lock:
            key = (subject, version) if isinstance(version, int) else None
            if key is not None and key in self._versions:
                return self._versions[key]
            answer = self._get(f"/subjects/{_quoted(subject)}/versions/{version}")
            found = _registered(answer, subject)
            _keep(self._by_id, found.id, found.schema)
            if key is not None:
                _keep(self._versions, key, found)
            return found

    def referenced(self, schema: Schema) -> dict[str, Schema]:
        """Return the schemas to which a schema refers, directly or not, as a dict from name to schema.

        In the dict, a schema comes after the schemas to which it refers. Raises the errors of `version`, and
        `DecodeError` if there are too many references.
        """
        found: dict[str, Schema] = {}
        self._collect(schema, found, 0)
        return found

    def subjects(self, prefix: str | None = None, *, deleted: bool = False) -> list[str]:
        """Return the names of all subjects, or of those with a prefix.

        Raises the errors of `schema_by_id`.
        """
        query = {"deleted": "true"} if deleted else {}
        if prefix is not None:
            query["subjectPrefix"] = prefix
        return [str(name) for name in self._ask("GET", "/subjects", query=query)]

    def versions(self, subject: str) -> list[int]:
        """Return the version numbers of a subject. Raises the errors of `version`."""
        return [int(number) for number in self._ask("GET", f"/subjects/{_quoted(subject)}/versions")]

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        """Register a schema under a subject, unless it is already registered, and return its id.

        Raises:
            RegistryError: the schema is invalid (42201), or incompatible with earlier versions (409).
            NetworkError, DecodeError: as in `schema_by_id`.
        """
        return self._id_of(subject, schema, normalize, f"/subjects/{_quoted(subject)}/versions")

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """Return the version of a subject that contains the given schema.

        Raises the errors of `version`; the code is 40403 if no version has the schema.
        """
        query = {"normalize": "true"} if normalize else {}
        answer = self._ask("POST", f"/subjects/{_quoted(subject)}", schema.as_json(), query)
        return _registered(_object(answer), subject)

    def is_compatible(
        self, subject: str, schema: Schema, version: int | str = "latest"
    ) -> tuple[bool, list[str]]:
        """Check a schema against a version of a subject; return (True if compatible, incompatibilities).

        Raises the errors of `version`.
        """
        path = f"/compatibility/subjects/{_quoted(subject)}/versions/{version}"
        answer = _object(self._ask("POST", path, schema.as_json(), {"verbose": "true"}))
        return bool(answer.get("is_compatible")), [str(each) for each in answer.get("messages") or ()]

    def compatibility(self, subject: str | None = None) -> str:
        """Return the compatibility level of a subject, or the global level.

        Raises the errors of `version`.
        """
        path = "/config" if subject is None else f"/config/{_quoted(subject)}?defaultToGlobal=true"
        return str(self._get(path).get("compatibilityLevel"))

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility level of a subject, or the global level. Raises the errors of `version`."""
        path = "/config" if subject is None else f"/config/{_quoted(subject)}"
        self._ask("PUT", path, {"compatibility": level})

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete a subject, and return its version numbers.

        A subject must be deleted normally before it can be deleted permanently. Raises the errors of
        `version`.
        """
        query = {"permanent": "true"} if permanent else {}
        found = [int(each) for each in self._ask("DELETE", f"/subjects/{_quoted(subject)}", query=query)]
        with self._lock:
            self._ids = {key: value for key, value in self._ids.items() if key[0] != subject}
            self._versions = {key: value for key, value in self._versions.items() if key[0] != subject}
        return found

    def close(self) -> None:
        """Close the connection to the registry."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __del__(self) -> None:
        # A call that makes a client of a URL has no end at which to close it. What the collector frees has
        # no other users, so the lock is not needed.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    def __enter__(self) -> RegistryClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- requests ---

    def _collect(self, schema: Schema, found: dict[str, Schema], depth: int) -> None:
        for reference in schema.references:
            if reference.name in found:
                continue
            if depth > 32 or len(found) >= REFERENCES_MAX:
                raise DecodeError(f"a schema refers to more than {REFERENCES_MAX} others, or to itself")
            other = self.version(reference.subject, reference.version).schema
            self._collect(other, found, depth + 1)
            found[reference.name] = other

    def _id_of(self, subject: str, schema: Schema, normalize: bool, path: str) -> int:
        with self._lock:
            key = (subject, schema, normalize)
            found = self._ids.get(key)
            if found is None:
                query = {"normalize": "true"} if normalize else {}
                answer = _object(self._ask("POST", path, schema.as_json(), query))
                if not isinstance(answer.get("id"), int):
                    raise DecodeError(f"the registry gave no id: {answer!r:.100}")
                found = int(answer["id"])
                _keep(self._ids, key, found)
            return found

    def _get(self, path: str) -> dict[str, Any]:
        return _object(self._ask("GET", path))

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request to the first registry that can be reached, and return the parsed answer."""
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        data = None if body is None else json.dumps(body).encode()
        with self._lock:
            failure: Exception | None = None
            # A connection that the other end has closed while it was idle deserves one new one.
            for _ in range(len(self._urls) + 1):
                try:
                    status, answer = self._exchange(method, target, data)
                except (OSError, http.client.HTTPException) as error:
                    self.close()
                    failure = error
                    self._urls.append(self._urls.pop(0))
                    continue
                return _read_answer(status, answer)
        raise NetworkError(f"no schema registry answers at {', '.join(self._urls)}: {failure}") from failure

    def _exchange(self, method: str, target: str, data: bytes | None) -> tuple[int, bytes]:
        parts = urllib.parse.urlsplit(self._urls[0])
        if self._connection is None:
            self._connection = self._connected(parts)
        headers = {"Accept": CONTENT_TYPE, "Content-Type": CONTENT_TYPE}
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        self._connection.request(method, parts.path.rstrip("/") + target, data, headers)
        response = self._connection.getresponse()
        answer = response.read(ANSWER_BYTES_MAX + 1)
        if len(answer) > ANSWER_BYTES_MAX:
            self.close()
            raise DecodeError(f"the answer of the registry has more than {ANSWER_BYTES_MAX} bytes")
        return response.status, answer

    def _connected(self, parts: urllib.parse.SplitResult) -> http.client.HTTPConnection:
        if parts.scheme == "https":
            return http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=self._timeout_s, context=self._context
            )
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=self._timeout_s)


def client_of(registry: str | Mapping[str, object] | Finder) -> Finder:
    """Return a registry client for a URL or settings; return a client unchanged.

    Raises:
        ConfigError: `registry` is neither a URL, nor settings, nor a client.
    """
    if isinstance(registry, (str, Mapping)):
        return RegistryClient(registry)
    if not hasattr(registry, "schema_by_id"):
        raise ConfigError(f"registry is {registry!r}: the URL of a schema registry is needed, or a client")
    return registry


def _keep(cache: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to a cache, and remove the oldest entry if the cache is full."""
    if len(cache) >= CACHED_SCHEMAS_MAX:
        del cache[next(iter(cache))]
    cache[key] = value


def _registered(answer: Mapping[str, Any], subject: str) -> RegisteredSchema:
    try:
        return RegisteredSchema(
            str(answer.get("subject", subject)),
            int(answer["version"]),
            int(answer["id"]),
            schema_in({**answer, "references": answer.get("references")}),
            answer.get("guid"),
        )
    except (KeyError, TypeError, ValueError):
        raise DecodeError(f"the registry answered no version of a subject: {answer!r:.200}") from None


def _read_answer(status: int, answer: bytes) -> Any:
    try:
        found = json.loads(answer) if answer else None
    except (ValueError, RecursionError):
        found = answer[:200].decode("utf-8", "replace")
    if 200 <= status < 300:
        return found
    if isinstance(found, dict) and isinstance(found.get("error_code"), int):
        raise RegistryError(status, found["error_code"], str(found.get("message")))
    raise RegistryError(status, status, str(found))


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise DecodeError(f"the registry answered {found!r:.100}, where an object was due")
    return found


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def _urls(given: object) -> list[str]:
    found = [each.strip() for each in given.split(",")] if isinstance(given, str) else []
    for url in found:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"url is {url!r}: a registry's URL begins with http:// or https://")
    if not found:
        raise ConfigError("a registry client needs url, as in http://localhost:8081")
    return found


def _id_bytes(given: object) -> int:
    if str(given) not in ("4", "8"):
        raise ConfigError(f"id.bytes is {given!r}: ids have 4 bytes, or 8")
    return int(str(given))


def _authorization(settings: Mapping[str, Any], url: str) -> str | None:
    token, user_info = settings.get("bearer.auth.token"), settings.get("basic.auth.user.info")
    if token is not None:
        return f"Bearer {token}"
    if user_info is None:
        parts = urllib.parse.urlsplit(url)
        if parts.username is None:
            return None
        user_info = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
    if ":" not in str(user_info):
        raise ConfigError("basic.auth.user.info is needed as user:password")
    return "Basic " + base64.b64encode(str(user_info).encode()).decode()


def _context(settings: Mapping[str, Any], urls: Sequence[str]) -> ssl.SSLContext | None:
    """Return the TLS context, or None if neither a URL nor a setting needs one.

    Reading certificates takes 20 ms."""
    is_asked_for = any(name.startswith("ssl.") for name in settings)
    if not is_asked_for and not any(urllib.parse.urlsplit(url).scheme == "https" for url in urls):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"))
        if certificate := settings.get("ssl.certificate.location"):
            context.load_cert_chain(
                certificate, settings.get("ssl.key.location"), settings.get("ssl.key.password")
            )
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the certificates for the schema registry cannot be read: {error}") from None
    return context
