"""The HTTP interface of a schema registry, compatible with Confluent's, on Starlette."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.common.logs import logger_named
from penstock.errors import PenstockError
from penstock.registry.schemas import PROTOBUF, TYPES, Schema
from penstock.registry.server.forwarding import (
    ELECTION_PATIENCE_S,
    UNREACHABLE_PAUSE_S,
    Forwarder,
    UnreachableError,
)
from penstock.registry.server.state import (
    DEFAULT_CONTEXT,
    LogRecord,
    RefusedError,
    RegistryState,
    guid_of,
    no_schema,
    no_version,
    schema_json,
    stopped,
)

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
BODY_BYTES_MAX = 8 << 20
_log = logger_named("penstock.registry")


class RegistryLog(Protocol):
    """The interface of the log that stores the records of a registry, and of the state made from them.

    The state is read and changed only by threads that hold `lock`. A term is a period in which no other
    registry writes.
    """

    state: RegistryState
    lock: threading.RLock

    def ready(self) -> int:
        """Wait until all records of the log are in the state; return the number of the current term."""

    def write(self, records: list[LogRecord], term: int) -> None:
        """Write records that a request of term `term` produced; return when they are applied to the state."""

    def catch_up(self) -> None:
        """Wait until the state has all records that were written before this call."""


Handler = Callable[["HttpRequest"], Any]


class HttpRequest:
    """One request: its path, its query and its body, whose size is limited."""

    def __init__(self, log: RegistryLog, request: Request, body: Any) -> None:
        self.state = log.state
        self.records: list[LogRecord] = []
        """The records that the request's handler adds, to be written to the log."""
        self._request = request
        self.body: Mapping[str, Any] = body

    def write(self, records: list[LogRecord]) -> None:
        """Add records, which are written to the log before the answer is sent."""
        self.records += records

    def path(self, name: str) -> str:
        """Return a parameter of the URL's path, with percent-encoding decoded."""
        return urllib.parse.unquote(str(self._request.path_params[name]))

    def flag(self, name: str) -> bool:
        """Return True if a query parameter is ``true``."""
        return self._request.query_params.get(name, "").lower() == "true"

    def query(self, name: str, default: str = "") -> str:
        """Return a query parameter, or `default` if it is missing."""
        return self._request.query_params.get(name, default)

    def queries(self, name: str) -> list[str]:
        """Return all values of a query parameter."""
        return self._request.query_params.getlist(name)

    def page(self, found: list[Any]) -> list[Any]:
        """Return the part of a list that the query parameters ``offset`` and ``limit`` select."""
        offset, limit = self._number("offset", 0), self._number("limit", -1)
        return found[offset : offset + limit if limit >= 0 else None]

    def _number(self, name: str, default: int) -> int:
        try:
            return int(self.query(name, str(default)))
        except ValueError:
            raise RefusedError(400, 400, f"{name} is no number") from None


def application(
    log: RegistryLog, users: Mapping[str, str] | None = None, forwarder: Forwarder | None = None
) -> ASGIApp:
    """Return the ASGI application of a registry.

    Args:
        log: stores the records.
        users: names and passwords of the users that are allowed (basic authentication); None allows all
            requests.
        forwarder: sends writes to the elected registry; None if there is no other registry.
    """
    desk = _Desk(log, users, forwarder)

    def route(path: str, **handlers: Handler) -> Route:
        async def endpoint(request: Request) -> Response:
            return await desk.answer(request, handlers[request.method.lower()])

        return Route(path, endpoint, methods=[each.upper() for each in handlers])

    routed = Starlette(
        routes=[
            route("/", get=lambda call: {}),
            route("/schemas", get=_schemas),
            route("/schemas/types", get=lambda call: list(TYPES)),
            route("/schemas/ids/{id}", get=_schema_by_id),
            route("/schemas/ids/{id}/schema", get=_text_by_id),
            route("/schemas/ids/{id}/subjects", get=_subjects_by_id),
            route("/schemas/ids/{id}/versions", get=_versions_by_id),
            route("/schemas/guids/{guid}", get=_schema_by_guid),
            route("/schemas/guids/{guid}/ids", get=_ids_by_guid),
            route("/subjects", get=_subjects),
            route("/subjects/{subject}", post=_lookup, delete=_delete_subject),
            route("/subjects/{subject}/versions", get=_versions, post=_register),
            route("/subjects/{subject}/metadata", get=_with_metadata),
            route("/subjects/{subject}/versions/{version}", get=_version, delete=_delete_version),
            route("/subjects/{subject}/versions/{version}/schema", get=_version_text),
            route("/subjects/{subject}/versions/{version}/referencedby", get=_referenced_by),
            route("/compatibility/subjects/{subject}/versions", post=_compatible_with_all),
            route("/compatibility/subjects/{subject}/versions/{version}", post=_compatible),
            route("/config", get=_config, put=_set_config, delete=_delete_config),
            route("/config/{subject}", get=_config, put=_set_config, delete=_delete_config),
            route("/mode", get=_mode, put=_set_mode),
            route("/mode/{subject}", get=_mode, put=_set_mode, delete=_delete_mode),
            route("/contexts", get=_contexts),
        ],
        exception_handlers={404: _not_found, 405: _not_allowed},
    )

    async def as_sent(scope: Scope, receive: Receive, send: Send) -> None:
        """Use the raw path for routing, since the name of a subject may contain a slash as ``%2F``."""
        raw = scope.get("raw_path")
        await routed(scope if raw is None else {**scope, "path": raw.decode("latin-1")}, receive, send)

    return as_sent


async def _not_found(request: Request, error: Exception) -> Response:
    return _json({"error_code": 404, "message": "HTTP 404 Not Found"}, 404)


async def _not_allowed(request: Request, error: Exception) -> Response:
    return _json({"error_code": 405, "message": "HTTP 405 Method Not Allowed"}, 405)


def _json(found: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json.dumps(found), status, headers, media_type=MEDIA_TYPE)


class _Desk:
    """Answers HTTP requests: reads from the state; carries out writes one by one, or forwards them.

    Writes are forwarded if another registry is elected."""

    def __init__(
        self, log: RegistryLog, users: Mapping[str, str] | None, forwarder: Forwarder | None
    ) -> None:
        self._log = log
        self._users = users
        self._forwarder = forwarder
        self._lock = asyncio.Lock()
        self._catching_up = asyncio.Lock()
        self._caught_up_at = float("-inf")

    async def answer(self, request: Request, handler: Handler) -> Response:
        """Return the response to an HTTP request."""
        users = self._users
        if users is not None and not _is_known(users, request.headers.get("authorization", "")):
            return _json(
                {"error_code": 401, "message": "HTTP 401 Unauthorized"}, 401, {"WWW-Authenticate": "Basic"}
            )
        try:
            data = await _data(request)
            body = _document(data) if request.method in ("POST", "PUT") else {}
            if handler not in WRITERS:
                return _json(await self._read(request, body, handler))
            if self._forwarder is None:
                return _json(await self._write(request, body, handler))
            return await self._write_or_forward(self._forwarder, request, data, body, handler)
        except asyncio.CancelledError:
            # The server cancels what it cannot wait for when it is stopped, and would say no more than 500.
            refusal = stopped()
            return _json({"error_code": refusal.code, "message": str(refusal)}, refusal.status)
        except RefusedError as error:
            return _json({"error_code": error.code, "message": str(error)}, error.status)
        except PenstockError as error:
            _log.warning("%s %s failed: %s", request.method, request.url.path, error)
            return _json({"error_code": 50001, "message": f"Error in the backend data store: {error}"}, 500)

    async def _read(self, request: Request, body: Any, handler: Handler) -> Any:
        try:
            with self._log.lock:
                return handler(HttpRequest(self._log, request, body))
        except RefusedError as error:
            if self._forwarder is None or error.status != 404:
                raise
        # Another registry may have written it a moment ago.
        await self._catch_up()
        with self._log.lock:
            return handler(HttpRequest(self._log, request, body))

    async def _write(self, request: Request, body: Any, handler: Handler) -> Any:
        # A change is decided against the state that it changes: one after another.
        loop = asyncio.get_running_loop()
        async with self._lock:
            term = await loop.run_in_executor(None, self._log.ready)
            call = HttpRequest(self._log, request, body)
            with self._log.lock:
                found = handler(call)
            await loop.run_in_executor(None, self._log.write, call.records, term)
            return found

    async def _write_or_forward(
        self, forwarder: Forwarder, request: Request, data: bytes, body: Any, handler: Handler
    ) -> Response:
        if handler is _register:
            known = self._known(request, body)
            if known is not None:
                return _json(known)
        scope = request.scope
        query = scope["query_string"].decode("latin-1")
        target = f"{scope['path']}?{query}" if query else scope["path"]
        deadline = time.monotonic() + ELECTION_PATIENCE_S
        while True:
            leader = await forwarder.leader()
            if leader.url is None:
                return _json(await self._write(request, body, handler))
            try:
                answer = await forwarder.forward(leader.url, request.method, target, request.headers, data)
                break
            except UnreachableError as error:
                if time.monotonic() >= deadline:
                    _log.warning("%s", error)
                    raise
            # It has stopped, and another one is about to be elected.
            await asyncio.sleep(UNREACHABLE_PAUSE_S)
        if answer.status < 400:
            # A client that has written here, reads here what was written, unless this registry is stopped.
            with contextlib.suppress(asyncio.CancelledError):
                await self._catch_up()
        return Response(answer.data, answer.status, media_type=MEDIA_TYPE)

    def _known(self, request: Request, body: Any) -> Any:
        """Return the answer to a registration if the schema is already registered, or None if it is new."""
        call = HttpRequest(self._log, request, body)
        with self._log.lock:
            try:
                found = _register(call)
            except RefusedError:
                return None  # by what this registry has read; the elected one says what holds
        return None if call.records else found

    async def _catch_up(self) -> None:
        """Read the topic to its end; if that takes too long, continue with the present state."""
        asked_at = time.monotonic()
        async with self._catching_up:
            if self._caught_up_at >= asked_at:
                return
            began_at = time.monotonic()
            try:
                await asyncio.get_running_loop().run_in_executor(None, self._log.catch_up)
            except PenstockError as error:
                _log.warning("the registry answers by what it has read so far: %s", error)
            self._caught_up_at = began_at


async def _data(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise RefusedError(413, 413, f"The request has more than {BODY_BYTES_MAX} bytes")
    return bytes(data)


def _document(data: bytes) -> Any:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise RefusedError(400, 400, "Unable to process JSON") from None
    if not isinstance(found, dict):
        raise RefusedError(422, 422, "an object is needed as the body")
    return found


def _is_known(users: Mapping[str, str], authorization: str) -> bool:
    kind, _, text = authorization.partition(" ")
    try:
        name, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except ValueError:
        return False
    known = users.get(name)
    if kind.lower() != "basic" or known is None:
        return False
    return hmac.compare_digest(known.encode(), password.encode())


# --- schemas ---


def _as_format(call: HttpRequest, schema: Schema) -> Schema:
    """Return a schema in the format that the query requests.

    With ``format=serialized``, a Protobuf schema becomes its descriptor in base64.
    """
    if schema.type == PROTOBUF and call.query("format") == "serialized":
        from penstock.registry.protobuf.schema import as_text, parse_protobuf

        known = {name: each.text for name, each in call.state.referenced(schema).items()}
        return Schema(as_text(parse_protobuf(schema.text, known)), PROTOBUF, schema.references)
    return schema


def _id(call: HttpRequest) -> int:
    text = call.path("id")
    if not (text.isascii() and text.isdigit() and len(text) < 11):
        raise no_schema(text)
    return int(text)


def _schemas(call: HttpRequest) -> Any:
    found = call.state.all_versions(deleted=call.flag("deleted"))
    prefix = call.query("subjectPrefix")
    found = [each for each in found if each.subject.startswith(prefix) or prefix == ":*:"]
    if call.flag("latestOnly"):
        found = list({each.subject: each for each in found}.values())
    return call.page([each.as_json() for each in found])


def _schema_by_id(call: HttpRequest) -> Any:
    return schema_json(_as_format(call, call.state.by_id(_id(call), call.query("subject"))))


def _text_by_id(call: HttpRequest) -> Any:
    return json.loads(call.state.by_id(_id(call), call.query("subject")).text)


def _versions_with(call: HttpRequest) -> list[Any]:
    wanted = _id(call)
    call.state.by_id(wanted, call.query("subject"))
    return [each for each in call.state.all_versions(deleted=call.flag("deleted")) if each.id == wanted]


def _subjects_by_id(call: HttpRequest) -> Any:
    return call.page(sorted({each.subject for each in _versions_with(call)}))


def _versions_by_id(call: HttpRequest) -> Any:
    return call.page([{"subject": each.subject, "version": each.number} for each in _versions_with(call)])


def _schema_by_guid(call: HttpRequest) -> Any:
    return schema_json(_as_format(call, call.state.by_guid(call.path("guid"))))


def _ids_by_guid(call: HttpRequest) -> Any:
    schema = call.state.by_guid(call.path("guid"))
    return [
        {"context": context, "id": number}
        for context, schemas in call.state.ids.items()
        for number, each in schemas.items()
        if each == schema
    ]


# --- subjects ---


def _subjects(call: HttpRequest) -> Any:
    prefix = call.query("subjectPrefix")
    shows_all, only = call.flag("deleted"), call.flag("deletedOnly")
    found = []
    for name in sorted(call.state.subjects):
        is_gone = all(each.is_deleted for each in call.state.subjects[name].values())
        if (is_gone if only else shows_all or not is_gone) and (prefix == ":*:" or name.startswith(prefix)):
            found.append(name)
    return call.page(found)


def _versions(call: HttpRequest) -> Any:
    found = call.state.versions(call.path("subject"), deleted=call.flag("deleted"))
    return call.page([each.number for each in found])


def _version(call: HttpRequest) -> Any:
    found = call.state.version(call.path("subject"), call.path("version"), deleted=call.flag("deleted"))
    return {**found.as_json(), "schema": _as_format(call, found.schema).text}


def _version_text(call: HttpRequest) -> Any:
    return json.loads(call.state.version(call.path("subject"), call.path("version")).schema.text)


def _referenced_by(call: HttpRequest) -> Any:
    found = call.state.version(call.path("subject"), call.path("version"))
    return call.page(call.state.referring_to(found.subject, found.number))


def _with_metadata(call: HttpRequest) -> Any:
    wanted = dict(zip(call.queries("key"), call.queries("value"), strict=False))
    for each in reversed(call.state.versions(call.path("subject"), deleted=call.flag("deleted"))):
        properties = ((each.more or {}).get("metadata") or {}).get("properties") or {}
        if wanted.items() <= properties.items():
            return each.as_json()
    raise no_version("latest")


def _lookup(call: HttpRequest) -> Any:
    subject, deleted = call.path("subject"), call.flag("deleted")
    schema = call.state.checked(call.body, normalize=call.flag("normalize"))
    call.state.versions(subject, deleted=deleted)
    found = call.state.same(subject, schema, deleted=deleted)
    if found is None:
        raise no_schema()
    return {**found.as_json(), "schema": _as_format(call, found.schema).text}


def _register(call: HttpRequest) -> Any:
    subject = call.path("subject")
    version, records = call.state.register(subject, call.body, normalize=call.flag("normalize"))
    call.write(records)
    # Clients keep a schema that stands in this answer in the place of the one that they have sent.
    return {"id": version.id, "version": version.number, "guid": guid_of(version.schema)}


def _delete_subject(call: HttpRequest) -> Any:
    numbers, records = call.state.delete_subject(call.path("subject"), permanent=call.flag("permanent"))
    call.write(records)
    return numbers


def _delete_version(call: HttpRequest) -> Any:
    number, records = call.state.delete_version(
        call.path("subject"), call.path("version"), permanent=call.flag("permanent")
    )
    call.write(records)
    return number


# --- compatibility ---


def _verdict(call: HttpRequest, problems: list[str]) -> Any:
    found: dict[str, Any] = {"is_compatible": not problems}
    if call.flag("verbose"):
        found["messages"] = problems
    return found


def _compatible(call: HttpRequest) -> Any:
    subject = call.path("subject")
    version = call.state.version(subject, call.path("version"))
    schema = call.state.checked(call.body, normalize=call.flag("normalize"))
    return _verdict(call, call.state.incompatibilities(subject, schema, [version]))


def _compatible_with_all(call: HttpRequest) -> Any:
    schema = call.state.checked(call.body, normalize=call.flag("normalize"))
    return _verdict(call, call.state.incompatibilities(call.path("subject"), schema))


# --- settings ---


def _subject_or_none(call: HttpRequest) -> str | None:
    return call.path("subject") if "subject" in call._request.path_params else None


def _config(call: HttpRequest) -> Any:
    subject = _subject_or_none(call)
    found = call.state.configs.get(subject)
    if subject is None:
        return {"compatibilityLevel": "BACKWARD", **(found or {})}
    if found is None and call.flag("defaultToGlobal"):
        return {"compatibilityLevel": call.state.level(subject)}
    if found is None:
        raise RefusedError(
            404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured"
        )
    return found


def _set_config(call: HttpRequest) -> Any:
    answer, records = call.state.set_config(_subject_or_none(call), call.body)
    call.write(records)
    return answer


def _delete_config(call: HttpRequest) -> Any:
    subject = _subject_or_none(call)
    before = _config(call)
    call.write([({"keytype": "CONFIG", "subject": subject, "magic": 0}, None)])
    return before


def _mode(call: HttpRequest) -> Any:
    subject = _subject_or_none(call)
    if subject is not None and subject not in call.state.modes and not call.flag("defaultToGlobal"):
        raise RefusedError(404, 40409, f"Subject '{subject}' does not have subject-level mode configured")
    return {"mode": call.state.mode(subject)}


def _set_mode(call: HttpRequest) -> Any:
    mode = call.body.get("mode")
    call.write(call.state.set_mode(_subject_or_none(call), mode, force=call.flag("force")))
    return {"mode": mode}


def _delete_mode(call: HttpRequest) -> Any:
    before = _mode(call)
    call.write([({"keytype": "MODE", "subject": _subject_or_none(call), "magic": 0}, None)])
    return before


def _contexts(call: HttpRequest) -> Any:
    return call.page(sorted({DEFAULT_CONTEXT, *call.state.ids}))


WRITERS = frozenset(
    (_register, _delete_subject, _delete_version, _set_config, _delete_config, _set_mode, _delete_mode)
)
"""The handlers of write requests. The elected registry runs them one after another."""
