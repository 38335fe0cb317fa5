"""An S3 server for tests: it stores objects in memory, and fails requests before or after their effect.

The server does not check signatures. It supports what table writers use: objects, conditional creation,
ranges, lists, and multipart uploads.
"""

from __future__ import annotations

import hashlib
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

Fault = Callable[[str, str], str | None]
"""A function from a request's method and path to its fault: None, ``before``, ``after`` or ``lost``.

``before`` answers 503 without an effect; ``after`` answers 503 although the request took effect; ``lost``
takes effect, and the connection ends without an answer.
"""


class Store:
    """The state of the S3 server: its objects by path, with one lock for all of them."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, float]] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.lock = threading.Lock()
        self.fault: Fault = lambda method, path: None
        self.requests = 0
        self.now: Callable[[], float] = __import__("time").time
        self.has_conditions = True
        """True if the server honours the header ``If-None-Match``."""
        self.url = ""

    def names(self, prefix: str = "") -> list[str]:
        """Return the paths of objects, ``bucket/key``, that begin with `prefix`."""
        with self.lock:
            return sorted(name for name in self.objects if name.startswith(prefix))


class Handler(BaseHTTPRequestHandler):
    """The handler of HTTP requests to the S3 server, one for each connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or a body waits 40 ms for the acknowledgement of its headers
    store: Store

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the HTTP server's log messages."""

    def handle(self) -> None:
        with suppress(ConnectionError, TimeoutError):
            super().handle()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path).lstrip("/")
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        body = self._body()
        store = self.store
        with store.lock:
            store.requests += 1
            fault = store.fault(self.command, path)
            if fault == "before":
                status, headers, answer = 503, {}, _error("SlowDown")
            else:
                status, headers, answer = self._done(path, query, body)
        if fault == "lost":
            self.close_connection = True
            return
        if fault == "after":
            status, headers, answer = 503, {}, _error("InternalError")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            data = _unchunked(data)
        return data

    def _done(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        bucket, _, key = path.partition("/")
        objects = self.store.objects
        method = self.command
        if not key:
            if method == "POST" and "delete" in query:
                keys = [e.text or "" for e in ElementTree.fromstring(body).iter() if e.tag.endswith("Key")]
                for each in keys:
                    objects.pop(f"{bucket}/{each}", None)
                gone = "".join(f"<Deleted><Key>{escape(each)}</Key></Deleted>" for each in keys)
                return 200, {}, f"<DeleteResult>{gone}</DeleteResult>".encode()
            return (200, {}, self._list(bucket, query)) if method == "GET" else (200, {}, b"")
        if method == "POST" and "uploads" in query:
            number = uuid.uuid4().hex
            self.store.uploads[number] = (path, {})
            begun = "InitiateMultipartUploadResult"
            text = f"<{begun}><UploadId>{number}</UploadId></{begun}>"
            return 200, {}, text.encode()
        if "uploadId" in query:
            return self._part(path, query, body)
        there = objects.get(path)
        if method == "PUT":
            if self.headers.get("If-None-Match") == "*" and there is not None and self.store.has_conditions:
                return 412, {}, _error("PreconditionFailed")
            objects[path] = (body, self.store.now())
            return 200, {"ETag": _tag(body)}, b""
        if method == "DELETE":
            objects.pop(path, None)
            return 204, {}, b""
        if there is None:
            return 404, {}, _error("NoSuchKey")
        data, at = there
        headers = {"ETag": _tag(data), "Last-Modified": formatdate(at, usegmt=True), "Accept-Ranges": "bytes"}
        if method == "HEAD":
            return 200, {**headers, "Content-Length": str(len(data))}, b""
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin = int(first) if first else len(data) - int(last)
            end = min(int(last), len(data) - 1) if first and last else len(data) - 1
            headers["Content-Range"] = f"bytes {begin}-{end}/{len(data)}"
            return 206, headers, data[begin : end + 1]
        return 200, headers, data

    def _part(self, path: str, query: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        number = query["uploadId"]
        upload = self.store.uploads.get(number)
        if upload is None:
            return 404, {}, _error("NoSuchUpload")
        if self.command == "PUT":
            upload[1][int(query["partNumber"])] = body
            return 200, {"ETag": _tag(body)}, b""
        del self.store.uploads[number]
        if self.command == "DELETE":
            return 204, {}, b""
        data = b"".join(part for _, part in sorted(upload[1].items()))
        self.store.objects[path] = (data, self.store.now())
        result = "CompleteMultipartUploadResult"
        return 200, {}, f"<{result}><ETag>{escape(_tag(data))}</ETag></{result}>".encode()

    def _list(self, bucket: str, query: dict[str, str]) -> bytes:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", query.get("start-after", ""))
        limit = int(query.get("max-keys", 1000))
        entries: dict[str, str] = {}
        is_truncated = False
        for name, (data, at) in sorted(self.store.objects.items()):
            where, _, key = name.partition("/")
            if where != bucket or not key.startswith(prefix) or (after and key <= after):
                continue
            rest = key[len(prefix) :]
            common = prefix + rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else ""
            if common and common in entries:
                continue
            if len(entries) == limit:
                is_truncated = True
                break
            moment = parsedate_to_datetime(formatdate(at, usegmt=True)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
            entries[common or key] = (
                f"<CommonPrefixes><Prefix>{escape(common)}</Prefix></CommonPrefixes>"
                if common
                else f"<Contents><Key>{escape(key)}</Key><LastModified>{moment}</LastModified>"
                f"<ETag>{escape(_tag(data))}</ETag><Size>{len(data)}</Size></Contents>"
            )
        token = (
            f"<NextContinuationToken>{escape(max(entries))}</NextContinuationToken>" if is_truncated else ""
        )
        return (
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(entries)}</KeyCount><IsTruncated>{str(is_truncated).lower()}</IsTruncated>"
            f"{token}{''.join(entries.values())}</ListBucketResult>"
        ).encode()


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()


def _unchunked(data: bytes) -> bytes:
    found, position = b"", 0
    while True:
        end = data.index(b"\r\n", position)
        size = int(data[position:end].split(b";")[0], 16)
        if not size:
            return found
        found += data[end + 2 : end + 2 + size]
        position = end + 2 + size + 2


@contextmanager
def s3_server() -> Iterator[Store]:
    """Start an S3 server on this machine, and yield its state, which includes its URL."""
    store = Store()
    handler = type("Bound", (Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
