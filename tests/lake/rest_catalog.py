"""An Iceberg REST catalog for tests, with OAuth client credentials, in front of an SQL catalog."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest

REFUSALS = {
    CommitFailedException: 409,
    NamespaceAlreadyExistsError: 409,
    TableAlreadyExistsError: 409,
    NoSuchNamespaceError: 404,
    NoSuchTableError: 404,
}


class Catalog:
    """The state of the REST server: the SQL catalog behind it, and counters of requests."""

    def __init__(self, behind: SqlCatalog) -> None:
        self.behind = behind
        self.url = ""
        self.credential = "me:hush"
        self.tokens = 0
        """The number of tokens issued; only the last one is valid, for `token_requests` requests."""
        self.token_requests = 1 << 30
        self.used = 0
        """The number of requests that have used the last token."""
        self.refused = 0
        """The number of requests without a valid token."""
        self.commits = 0
        self.fault: Callable[[int], str | None] = lambda number: None
        """A function from a commit's number to its fault: None, ``before`` or ``after``.

        ``before`` fails with 503 without committing, ``after`` commits and answers 503.
        """

    @property
    def token(self) -> str:
        """The token that is currently valid."""
        return f"token {self.tokens} of this catalog"


class Handler(BaseHTTPRequestHandler):
    """The handler of HTTP requests to the REST catalog, one for each connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a body waits 40 ms for the acknowledgement of its headers
    catalog: Catalog

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the HTTP server's log messages."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = [urllib.parse.unquote(part) for part in urllib.parse.urlsplit(self.path).path.split("/")[2:]]
        try:
            status, found = self._done(path, body)
        except Exception as error:
            status = next((code for kind, code in REFUSALS.items() if isinstance(error, kind)), 500)
            found = {"error": {"message": str(error), "type": type(error).__name__, "code": status}}
        answer = b"" if self.command == "HEAD" else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _done(self, path: list[str], body: bytes) -> tuple[int, Any]:
        if path == ["oauth", "tokens"]:
            given = dict(urllib.parse.parse_qsl(body.decode()))
            if f"{given.get('client_id')}:{given.get('client_secret')}" != self.catalog.credential:
                return 401, {"error": "invalid_client", "error_description": "who is it?"}
            self.catalog.tokens, self.catalog.used = self.catalog.tokens + 1, 0
            return 200, {"access_token": self.catalog.token, "token_type": "bearer", "expires_in": 3600}
        self.catalog.used += 1
        is_known = self.headers.get("Authorization") == f"Bearer {self.catalog.token}"
        if not is_known or self.catalog.used > self.catalog.token_requests:
            self.catalog.refused += 1
            return 401, {"error": {"message": "no token", "type": "NotAuthorizedException", "code": 401}}
        if path == ["config"]:
            return 200, {"defaults": {}, "overrides": {}}
        behind = self.catalog.behind
        if path == ["namespaces"]:
            asked = json.loads(body)
            behind.create_namespace(tuple(asked["namespace"]))
            return 200, asked
        space = tuple(path[1].split("\x1f"))
        if len(path) == 2:
            behind.load_namespace_properties(space)
            return 200, {"namespace": list(space), "properties": {}}
        if len(path) == 4 and self.command == "POST":
            return self._committed((*space, path[3]), body)
        if len(path) == 4:
            return 200, _loaded(behind.load_table((*space, path[3])))
        asked = json.loads(body)
        if asked.get("stage-create"):
            staged = _staged(behind, (*space, asked["name"]), body)
            return 200, {"metadata": json.loads(staged.metadata.model_dump_json()), "config": {}}
        return 500, {}

    def _committed(self, name: tuple[str, ...], body: bytes) -> tuple[int, Any]:
        self.catalog.commits += 1
        fault = self.catalog.fault(self.catalog.commits)
        refused = {"error": {"message": "busy", "type": "ServiceUnavailable", "code": 503}}
        if fault == "before":
            return 503, refused
        asked = json.loads(body)
        asked.setdefault("identifier", {"namespace": list(name[:-1]), "name": name[-1]})
        request = CommitTableRequest.model_validate_json(json.dumps(asked))
        try:
            table = self.catalog.behind.load_table(name)
        except NoSuchTableError:
            from pyiceberg.table import StagedTable

            table = StagedTable(
                name,
                None,
                "",
                self.catalog.behind._load_file_io(),
                self.catalog.behind,  # type: ignore[arg-type]
            )
        made = self.catalog.behind.commit_table(table, request.requirements, request.updates)
        if fault == "after":
            return 503, refused
        return 200, {
            "metadata-location": made.metadata_location,
            "metadata": json.loads(made.metadata.model_dump_json()),
        }


def _loaded(table: Any) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }


def _staged(behind: SqlCatalog, name: tuple[str, ...], body: bytes) -> Any:
    from pyiceberg.schema import Schema

    asked = json.loads(body)
    schema = Schema.model_validate_json(json.dumps(asked["schema"]))
    return behind._create_staged_table(name, schema, properties=asked.get("properties", {}))


@contextmanager
def rest_catalog(behind: SqlCatalog) -> Iterator[Catalog]:
    """Start a REST catalog on this machine, and yield its state, which includes its URL."""
    catalog = Catalog(behind)
    handler = type("Bound", (Handler,), {"catalog": catalog})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    catalog.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield catalog
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
