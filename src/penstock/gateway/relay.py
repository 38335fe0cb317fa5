"""The traffic between one client and the cluster: forwards requests and responses, each in order.

A `Relay` gets the bytes of client and broker, and passes bytes to their sockets; it does no I/O itself. A
forwarded frame is never buffered: its bytes are sent as they arrive, and only the first twelve are read. A
frame that must be decoded is collected first. While a request is translated, or no broker is connected, later
requests are not read.

Every forwarded request has an entry in a queue. Since brokers answer in order, the next response belongs to
the first entry. Responses that the gateway makes itself wait in the same queue.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from penstock.errors import AuthenticationError, DecodeError, PenstockError
from penstock.gateway.absent import OF_ONE_BROKER, answered_absent
from penstock.gateway.accounts.login import login_refusal
from penstock.gateway.accounts.turns import LoginTurns
from penstock.gateway.addresses import has_addresses, moved, rewrite
from penstock.gateway.calls import Damaged, HangUp, NodeCall, Overtaken, PassedOn, Rest, Silence
from penstock.gateway.contracts import Due, Ended, Pause, RelayJob, advanced
from penstock.gateway.counters import CountedClient
from penstock.gateway.endpoints import EndpointsHider
from penstock.gateway.heads import (
    KERBEROS_TOKEN,
    REQUEST_BYTES_MIN,
    REQUEST_HEAD,
    RESPONSE_HEAD,
    UNSUPPORTED_VERSION,
    Incomplete,
    check_short,
    client_id_of,
    decoded_request,
    is_kafka_request,
    no_request,
)
from penstock.gateway.hooks.asked import HookedRequest
from penstock.gateway.hooks.chain import refusal
from penstock.gateway.hooks.hook import UNHOOKED
from penstock.gateway.limits import (
    DECODED_FETCH_BYTES,
    DUE_MAX,
    INLINE_BYTES_MAX,
    TOKEN_BYTES_MAX,
    VERSIONS_BYTES_MAX,
)
from penstock.gateway.routes import PASSED_ON, BrokerRoutes, GatewayRoute, ResponseKind, versions_response
from penstock.protocol.api import API_TABLE
from penstock.protocol.api_keys import ApiKey
from penstock.protocol.error_codes import ErrorCode
from penstock.protocol.framing import decode_response, encode_request, encode_response
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse

if TYPE_CHECKING:
    from penstock.gateway.contracts import RelayHost, Side, Upstream
    from penstock.protocol.message import Message


class Relay:
    """The link between one client and the broker to which the gateway has connected it.

    Args:
        host: the gateway.
        client: the socket of the client.
        home: the id of the broker to whose port the client has connected; None for the bootstrap port.
        peer: the address of the client, for the log.
        advertised_host: the host in the addresses of responses.
    """

    def __init__(
        self, host: RelayHost, client: Side, home: int | None, peer: str, advertised_host: str
    ) -> None:
        self.home = home
        self.peer = peer
        self.upstream: Upstream | None = None
        self.is_closed = False
        self.is_logged_in = False
        """True if the client has logged in at its broker; the relay then cannot connect to another broker."""
        self._host = host
        self._client = client
        self._advertised_host = advertised_host
        self._counted = CountedClient(host.counters, peer)
        self._logins = LoginTurns(self, self._counted, host.new_login, host.later, lambda: host.last_routes)
        self.login = self._logins.login
        """The client's login at the gateway; None if the gateway has no users of its own."""
        # --- requests
        self._waiting = b""
        """Bytes from the client that are not processed yet, such as an incomplete request."""
        self._is_paused = False
        """True if reading from the client is paused, because its earlier bytes are not processed yet."""
        self._request_left = 0
        """Number of bytes of the current request that have not arrived."""
        self._collected: bytearray | None = None
        """The bytes so far of a request to be decoded, with its size field; None if there is none."""
        self._absent = False
        """True while the gateway answers requests with errors, because no broker can be reached."""
        self._job: RelayJob | None = None
        self._job_bytes = 0
        """Total size of the frames that `_job` processes, which is reserved with `RelayHost.hold`."""
        self._worker: RelayJob | None = None
        """The `RelayJob` whose current step runs in a separate thread; None if no step does."""
        self._is_attaching = False
        self._takes_tokens = False
        self._is_first = True
        self._is_silent = False
        """True after an outcome `Silence`: nothing is answered any more, and bytes from the client are
        dropped."""
        self._parked: RelayJob | None = None  # the next request overtakes it
        self._number = 0  # of the connection, for hooks; 0 before the first request that one is for
        # --- responses
        self._due: deque[Due] = deque()
        self._head = b""
        """The first bytes of a response, collected until its correlation id has arrived."""
        self._response_left = 0
        self._response: bytearray | None = None
        self._responding: Due | None = None
        self._hider: EndpointsHider | None = None
        self._client_is_clogged = False

    @property
    def is_stuck(self) -> bool:
        """True if nothing is to be done for the client, or it does not read: such connections can be idle."""
        owes = self._due or self._job or self._response_left or self._is_attaching
        return self._client_is_clogged or self._is_silent or not owes

    # --- requests ---------------------------------------------------------------------------------------

    def client_bytes(self, data: memoryview) -> None:
        """Process bytes from the client, in a buffer that the caller overwrites after the call."""
        if self._is_silent:
            return
        if self._is_held:
            self._waiting += bytes(data)
            self._pause_client()
            return
        if self._waiting:
            whole = bytearray(self._waiting)
            self._waiting = b""
            whole += data
            data = memoryview(whole)
        try:
            self._take_requests(data)
        except PenstockError as error:
            self.close(str(error))
        except Exception:
            self._host.caught(f"a request from {self.peer}")
            self.close("an error of the gateway", logging.ERROR)

    @property
    def _is_held(self) -> bool:
        return self._job is not None or self._is_attaching or len(self._due) >= DUE_MAX

    def _pause_client(self) -> None:
        self._is_paused = True
        self._client.pause(Pause.HELD)

    def _take_requests(self, data: memoryview) -> None:
        position = run = 0
        end = len(data)
        while position < end and not (self.is_closed or self._is_silent):
            left = self._request_left
            if left:
                stop = min(end, position + left)
                self._request_left = left - (stop - position)
                collected = self._collected
                if collected is not None:
                    self._keep(collected, data[position:stop])
                    position = run = stop
                    if not self._request_left:
                        self._collected = None
                        self._take_whole(collected)
                else:
                    position = stop
                continue
            begun = -1 if self._is_held else self._begin(data, position, end, run)
            if begun < 0:
                self._pass_on(data, run, position)
                self._waiting = bytes(data[position:])
                if self._is_held:
                    self._pause_client()
                return
            if self._collected is not None:
                run = position
        self._pass_on(data, run, position)

    def _pass_on(self, data: memoryview, start: int, stop: int) -> None:
        if start < stop and self.upstream is not None and not self.is_closed:
            self.upstream.send(data[start:stop])

    def _begin(self, data: memoryview, position: int, end: int, run: int) -> int:
        """Begin to process the request at `position`; return 0, or -1 if the request has to wait.

        `data[run:position]` are bytes not yet forwarded. They are forwarded first if this request is
        collected.
        """
        request_bytes_max = self._host.limits.request_bytes_max
        begun = self._logins.begin(data, position, end, needs_routes=not self._absent)
        if begun is not None:
            return begun
        if end - position < 12 and not self._takes_tokens:
            check_short(data[position:end], 0 if self._is_first else REQUEST_BYTES_MIN, request_bytes_max)
            return -1
        if self._takes_tokens or self._is_first:
            token = self._begin_token(data, position, end)
            if token is not None:
                return token
        size, key, version, correlation_id = REQUEST_HEAD.unpack_from(data, position)
        if not REQUEST_BYTES_MIN <= size <= request_bytes_max:
            raise no_request(size, request_bytes_max)
        if key not in API_TABLE:
            raise DecodeError(f"a request with key {key}: there is no such API")
        upstream = self.upstream
        if self._logins.takes(key):
            self._pass_on(data, run, position)
            self.collect(size, TOKEN_BYTES_MAX)
            return 0
        if self._absent:
            self.collect(size, 0)
            return 0
        if upstream is None or self._moves_home(upstream):
            self.attach()
            return -1
        if key in OF_ONE_BROKER and self._is_other(upstream):
            self._pass_on(data, run, position)
            self.collect(size, 0)
            return 0
        code = key << 16 | version & 0xFFFF
        route = upstream.routes.of(code)
        if self._is_hooked(key, route):
            route = GatewayRoute.HOOKED
        if route is GatewayRoute.PASS:
            self._due.append(Due(ResponseKind.PASS, correlation_id, code))
        elif route in PASSED_ON:
            try:
                kind = upstream.routes.kind_of(code, data, position)
            except Incomplete:
                if end - position >= size + 4:
                    raise DecodeError("a Produce that is too short") from None
                return -1
            if kind is not None:
                self._due.append(Due(kind, correlation_id, code))
        elif route is GatewayRoute.REFUSE:
            raise DecodeError(f"request with key {key}, version {version}: there is no such API or version")
        else:
            self._pass_on(data, run, position)
            is_versions = key == ApiKey.API_VERSIONS
            self.collect(size, VERSIONS_BYTES_MAX if is_versions else 0)
            if not is_versions:  # it says which software is counted
                self._counted.asked(code, data, position)
            return 0
        self._request_left = size + 4
        self._counted.asked(code, data, position)
        return 0

    def _begin_token(self, data: memoryview, position: int, end: int) -> int | None:
        """Begin to forward a raw SASL token; return None for a Kafka request, -1 if bytes are missing."""
        if end - position < 4:
            return -1
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if end - position < 4 + min(max(size, 0), 8):
            return -1
        start = data[position + 4 : position + 12]
        if self._is_first:
            self._is_first = False
            if not (size > 0 and start[0] == KERBEROS_TOKEN and not is_kafka_request(start)):
                return None
            if self._host.has_account:
                return None
        elif is_kafka_request(start) and size >= REQUEST_BYTES_MIN:
            # The last token of Kerberos has no answer.
            self._takes_tokens = False
            self._due = deque(due for due in self._due if due.kind is not ResponseKind.TOKEN)
            return None
        if not 0 <= size <= TOKEN_BYTES_MAX:
            raise DecodeError(f"a token of {size} bytes")
        if self.upstream is None:
            self._is_first = not self._takes_tokens
            self.attach()
            return -1
        self._takes_tokens = self.is_logged_in = True
        self._due.append(Due(ResponseKind.TOKEN, 0, 0))
        self._request_left = size + 4
        return 0

    def _is_other(self, upstream: Upstream) -> bool:
        """Return True if the connected broker is a substitute for the broker of this port."""
        return self.home is not None and upstream.node_id not in (self.home, None)

    def _moves_home(self, upstream: Upstream) -> bool:
        """Disconnect a substitute broker if the broker of this port is reachable again; return True if so."""
        if self.home is None or not self._is_other(upstream) or not self._host.is_back(self.home):
            return False
        if self._due or self._response_left or self.is_logged_in:
            return False
        self.upstream = None
        upstream.close()
        return True

    def attach(self) -> None:
        """Connect to a broker; read no more requests until `attached` or `unreachable` is called."""
        self._is_attaching = True
        self._host.attach(self)

    def hold_back(self) -> None:
        """Read no more requests, because a login has failed and its response is delayed."""
        self._is_attaching = True

    def collect(self, size: int, most: int) -> None:
        """Begin to collect a frame. Raise DecodeError if `size` exceeds `most` (0: `frame_bytes_max`)."""
        limit = most or self._host.limits.frame_bytes_max
        if size > limit:
            raise DecodeError(f"a request of {size} bytes has to be decoded, and {limit} are allowed")
        self._request_left = size + 4
        self._collected = bytearray()

    def _keep(self, collected: bytearray, data: memoryview) -> None:
        collected += data
        if not self._host.hold(len(data)):
            raise DecodeError("frames that are being decoded take too much memory (held_bytes_max)")

    # --- requests that are not passed on ----------------------------------------------------------------

    def _take_whole(self, frame: bytearray) -> None:
        """Process a request that has been collected completely, including its size field."""
        self._host.let_go(len(frame))
        body = memoryview(frame)[4:]
        if self._logins.takes(int.from_bytes(body[:2], "big")):
            self._logins.take(frame)
            return
        _, key, version, correlation_id = REQUEST_HEAD.unpack_from(frame)
        upstream = self.upstream
        if upstream is None:
            routes = self._host.last_routes
            if key == ApiKey.API_VERSIONS and routes is not None:
                self._counted.introduce(body, version)
                self.respond(versions_response(routes, version, correlation_id))
            else:
                self._answer_absent(body, key, version, correlation_id)
            return
        if key in OF_ONE_BROKER and self._is_other(upstream):
            self._answer_absent(body, key, version, correlation_id)
            return
        code = key << 16 | version & 0xFFFF
        route = upstream.routes.of(code)
        if key == ApiKey.API_VERSIONS:
            self._counted.introduce(body, version)
            self._counted.asked(code, memoryview(frame), 0)
        if self._is_hooked(key, route):
            self._begin_hooked(upstream.routes, frame, code, correlation_id)
        elif key == ApiKey.API_VERSIONS:
            if route is GatewayRoute.VERSIONS:
                self._due.append(Due(ResponseKind.REWRITE, correlation_id, code))
                upstream.send(frame)
            else:
                self.respond(versions_response(upstream.routes, version, correlation_id))
        elif route is GatewayRoute.LOGIN:
            self._take_login(upstream, frame, code, correlation_id)
        else:
            self._translate(upstream.routes, body, code, correlation_id)

    def _take_login(self, upstream: Upstream, frame: bytearray, code: int, correlation_id: int) -> None:
        if self._host.has_account:
            self.respond(login_refusal(code, correlation_id))
            return
        self.is_logged_in = True
        is_raw = code == ApiKey.SASL_HANDSHAKE << 16  # version 0: tokens without headers follow
        self._due.append(Due(ResponseKind.HANDSHAKE if is_raw else ResponseKind.PASS, correlation_id, code))
        upstream.send(frame)

    def _translate(self, routes: BrokerRoutes, body: memoryview, code: int, correlation_id: int) -> None:
        key, version = code >> 16, code & 0xFFFF
        header, message = decoded_request(body)
        try:
            steps = self._host.translation.translate(key, version, message, routes.upstream)
        except self._host.translation.Refused as error:
            self._respond_refusal(message, version, correlation_id, str(error))
            return
        self._job = RelayJob(steps, code, correlation_id, message, client_id=header.client_id)
        self._keep_for_job(len(body))
        self._step(None, len(body))

    # --- requests that hooks are for ---------------------------------------------------------------------

    def _is_hooked(self, key: int, route: GatewayRoute) -> bool:
        if route is GatewayRoute.REFUSE or route is GatewayRoute.VERSIONS_HERE:
            return False
        return key in self._host.hooks.keys or (self._parked is not None and key not in UNHOOKED)

    def _begin_hooked(self, routes: BrokerRoutes, frame: bytearray, code: int, correlation_id: int) -> None:
        host, body, key = self._host, memoryview(frame)[4:], code >> 16
        name = client_id_of(memoryview(frame))
        client = host.hooks.client_of(self.peer, self._counted.software, name, self._number)
        self._number = client.connection
        asked = HookedRequest(
            key, code & 0xFFFF, client, lambda: decoded_request(body)[1], correlation_id,
            routes.of(code) is GatewayRoute.TRANSLATE, host.translation, routes.upstream, host.caught,
        )  # fmt: skip
        request = asked.read() if asked.is_translated else None
        steps, blocks = host.hooks.steps(asked), host.hooks.may_block(key)
        self._job = RelayJob(steps, code, correlation_id, request, frame, name, blocks)
        self._keep_for_job(len(frame))
        self._step(None, len(frame))

    def _resume(self, job: RelayJob) -> None:
        """Continue the current job after a pause (`Rest`)."""
        if self._job is job and not self.is_closed:
            self._guarded(lambda: self._step(None))
            self.go_on()

    def _unpark(self, job: RelayJob) -> None:
        """Continue a request that was held back (`Overtaken`), so that the next request is handled first."""
        if self._parked is job and self._job is None and not self.is_closed:
            self._parked, self._job = None, job
            self._resume(job)

    def _pass_whole(self, job: RelayJob) -> None:
        """Forward a request unchanged that was collected for hooks, since no hook has changed it."""
        assert job.frame is not None
        upstream = self.upstream
        if upstream is None:
            self.close("the broker has gone while a hook had a request")
            return
        kind = upstream.routes.kind_of(job.code, memoryview(job.frame), 0)
        if kind is not None:
            self._due.append(Due(kind, job.correlation_id, job.code))
        upstream.send(job.frame)

    def _respond_refusal(self, message: Any, version: int, correlation_id: int, reason: str) -> None:
        """Answer with UNSUPPORTED_VERSION (35); close the connection if the response has no error field."""
        name = message.NAME.removesuffix("Request")
        self._host.note_end(
            logging.WARNING, self._counted.described, f"{name} {version} is refused: {reason}"
        )
        response = refusal(message.API_KEY, version, message, ErrorCode.UNSUPPORTED_VERSION, reason)
        if isinstance(response, HangUp):
            self.close(response.reason, logging.WARNING)
        else:
            self.respond(encode_response(response, version, correlation_id))

    def _step(self, answer: Any, size: int = 0) -> None:
        """Pass a response to the generator of the current job, and execute its next step or outcome.

        `size` is the size of the frame to process: a large one is processed in a thread.
        """
        job = self._job
        assert job is not None
        if size > INLINE_BYTES_MAX or job.blocks:
            self._worker = job
            self._host.in_thread(self, lambda: advanced(job.steps, answer))
            return
        while not self.is_closed and self._settle(job, advanced(job.steps, answer)):
            answer = None

    def worked(self, outcome: NodeCall | Ended | Exception) -> None:
        """Execute the step or outcome that the job's generator has returned in a separate thread."""
        job, self._worker = self._worker, None
        assert job is not None
        if self.is_closed:
            job.steps.close()
            return

        def settle() -> None:
            if not self.is_closed and self._settle(job, outcome):
                self._step(None)

        self._guarded(settle)
        self.go_on()

    def _settle(self, job: RelayJob, outcome: Any) -> bool:
        """Execute a step or outcome of a job; return True if the job can continue without waiting."""
        if isinstance(outcome, NodeCall):
            return self._call(outcome, job)
        if isinstance(outcome, Ended):
            self._end_job(job, outcome.answer)
        elif isinstance(outcome, Rest):
            self._host.later(outcome.seconds, lambda: self._resume(job))
        elif isinstance(outcome, Overtaken):
            self._parked, self._job = job, None
            self._host.later(outcome.seconds, lambda: self._unpark(job))
        elif isinstance(outcome, AuthenticationError):
            self.close(str(outcome), logging.WARNING)
        elif isinstance(outcome, self._host.translation.Refused):
            self._drop_job()
            self._respond_refusal(job.request, job.code & 0xFFFF, job.correlation_id, str(outcome))
        else:
            raise outcome
        return False

    def _drop_job(self) -> None:
        self._job = None
        self._host.let_go(self._job_bytes)
        self._job_bytes = 0

    def _call(self, call: NodeCall, job: RelayJob) -> bool:
        """Send the request of a `NodeCall` to its broker; return True if it has no response (acks=0)."""
        upstream = self.upstream
        if upstream is None:
            self.close("the broker has gone while a request was translated")
            return False
        if call.node_id is not None and call.node_id != upstream.node_id:
            self._host.call_node(self, call)
            return False
        chunks = encode_request(call.message, call.version, job.correlation_id, job.client_id or "penstock")
        is_silent = call.api_key == ApiKey.PRODUCE and call.message.acks == 0  # type: ignore[attr-defined]
        if not is_silent:
            self._due.append(Due(ResponseKind.CALL, job.correlation_id, call.api_key << 16 | call.version))
        for chunk in chunks:
            upstream.send(chunk)
        return is_silent

    def answer_call(self, answer: Message) -> None:
        """Continue the job with the response to a request that was sent with `RelayHost.call_node`."""
        if self._job is not None and not self.is_closed:
            self._guarded(lambda: self._step(answer))
            self.go_on()

    def _keep_for_job(self, size: int) -> None:
        """Reserve memory for a frame of the current job. Raises DecodeError if the limit is exceeded."""
        self._job_bytes += size
        if not self._host.hold(size):
            raise DecodeError("frames that are being translated take too much memory (held_bytes_max)")

    def _end_job(self, job: RelayJob, answer: Any) -> None:
        self._drop_job()
        if isinstance(answer, Silence):
            self._is_silent = True
            self._waiting = b""
        elif isinstance(answer, HangUp):
            self.close(answer.reason)
            if answer.is_reset:
                self._client.reset()
        elif isinstance(answer, PassedOn):
            self._pass_whole(job)
        elif answer is not None and job.code >= 0:
            self._respond_job(job, answer)
        if self._parked is not None and self._parked is not job:
            self._unpark(self._parked)

    def _respond_job(self, job: RelayJob, answer: Any) -> None:
        damage = answer if isinstance(answer, Damaged) else None
        answer = answer if damage is None else damage.answer
        key, version = job.code >> 16, job.code & 0xFFFF
        if has_addresses(key, version):
            rewrite(answer, self._host.nodes, self._advertised_host)
        elif key == ApiKey.API_VERSIONS and self.upstream is not None:
            version = 0 if answer.error_code == ErrorCode.UNSUPPORTED_VERSION else version  # KIP-511
            self.upstream.routes.put_versions(answer)
        chunks = encode_response(answer, version, job.correlation_id)
        if damage is not None:
            chunks = [damage.change(b"".join(chunks))]
        self._counted.answered(job.code, sum(map(len, chunks)))
        self.respond(chunks)
        if damage is not None and damage.is_cut:
            self.close("a fault cuts the answer")

    def _answer_absent(self, body: memoryview, key: int, version: int, correlation_id: int) -> None:
        """Answer a request with an error while no broker can be reached."""
        try:
            response = answered_absent(body, key, version, self._host.nodes, self._advertised_host)
            self.respond(encode_response(response, version, correlation_id))
        except PenstockError as error:
            self.close(str(error))

    def respond(self, chunks: list[Any]) -> None:
        """Send a response that the gateway has made, after the responses to earlier requests."""
        if self._due or self._response_left or self._head:
            self._due.append(Due(ResponseKind.HERE, 0, 0, [bytes(chunk) for chunk in chunks]))
        else:
            for chunk in chunks:
                self._client.send(chunk)

    # --- the broker -------------------------------------------------------------------------------------

    def attached(self, upstream: Upstream) -> None:
        """Use `upstream` as the connection to a broker, and process the bytes that have waited for it."""
        self._is_attaching = False
        if self.is_closed:
            upstream.close()
            return
        self.upstream = upstream
        if self._client_is_clogged:
            upstream.pause(Pause.CLOGGED)
        self.go_on()

    def greeted(self, routes: BrokerRoutes) -> None:
        """Set the APIs and versions of a broker, which are offered to a client that has not logged in."""
        self._is_attaching = False
        self._logins.greeted(routes)
        self.go_on()

    def unreachable(self, error: PenstockError) -> None:
        """Answer the waiting requests with errors, because the gateway cannot connect to any broker."""
        self._is_attaching = False
        if self.is_closed:
            return
        self._host.note_end(logging.WARNING, self._counted.described, f"no broker answers: {error}")
        self._absent = True
        self.go_on()
        self._absent = False

    def upstream_lost(self, reason: str) -> None:
        """Handle the end of the broker's connection: close the client's, unless nothing is pending.

        Pending requests are not sent again, since the broker may have executed them without answering.
        """
        self.upstream = None
        if self.is_closed:
            return
        self._client.go_on(Pause.CLOGGED)
        is_passing = self._request_left and self._collected is None
        if self._due or self._job or self._response_left or self.is_logged_in or is_passing:
            self.close(reason)

    def reauthenticate(self, steps: Generator[NodeCall, Any, Any]) -> bool:
        """Begin to re-authenticate at the broker (KIP-368); return False while a request is in flight."""
        if self._job is not None or self._request_left or self._waiting or self._is_attaching:
            return False
        self._job = RelayJob(steps, -1, 0)
        self._guarded(lambda: self._step(None))
        return True

    def go_on(self) -> None:
        """Process the bytes that have waited, and read from the client again."""
        if self.is_closed or self._is_held:
            return
        waiting, self._waiting = self._waiting, b""
        if waiting:
            self.client_bytes(memoryview(waiting))
        if self._is_paused and not (self.is_closed or self._is_held):
            self._is_paused = False
            self._client.go_on(Pause.HELD)

    # --- responses --------------------------------------------------------------------------------------

    def upstream_bytes(self, data: memoryview) -> None:
        """Process bytes from the broker, in a writable buffer that the caller overwrites after the call."""
        self._guarded(lambda: self._take_responses(data))
        if self._waiting or self._is_paused:
            self.go_on()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except PenstockError as error:
            self.close(f"the broker has sent what cannot be passed on: {error}", logging.WARNING)
        except Exception:
            self._host.caught(f"a response for {self.peer}")
            self.close("an error of the gateway", logging.ERROR)

    def _take_responses(self, data: memoryview) -> None:
        if self._head:
            data = memoryview(bytearray(self._head) + data)
            self._head = b""
        position = run = 0
        end = len(data)
        while position < end and not self.is_closed:
            left = self._response_left
            if not left:
                self._begin_response(data, position, end)
                if self._head:
                    break
                if self._response is not None:
                    self._send_on(data, run, position)
                    run = position
                continue
            stop = min(end, position + left)
            self._response_left = left = left - (stop - position)
            response = self._response
            if response is not None:
                self._keep(response, data[position:stop])
                position = run = stop
                if not left:
                    self._response = None
                    self._host.let_go(len(response))
                    self._take_response(response)
            else:
                if self._hider is not None:
                    self._hider.pass_bytes(data[position:stop])
                position = stop
            if not left:
                self._hider = None
                if self._due and self._due[0].kind is ResponseKind.HERE:
                    self._send_on(data, run, position)
                    run = position
                    self._send_own()
        self._send_on(data, run, position)

    def _send_on(self, data: memoryview, start: int, stop: int) -> None:
        if start < stop and not self.is_closed:
            self._client.send(data[start:stop])

    def _send_own(self) -> None:
        """Send the gateway's own responses at the head of the queue."""
        while self._due and self._due[0].kind is ResponseKind.HERE:
            for chunk in self._due.popleft().chunks or ():
                self._client.send(chunk)

    def _begin_response(self, data: memoryview, position: int, end: int) -> None:
        """Begin to process the response at `position`: check its correlation id, decide how to handle it."""
        if not self._due:
            raise DecodeError(f"{end - position} bytes have come while no request was in flight")
        due = self._due[0]
        kind = due.kind
        if end - position < (4 if kind is ResponseKind.TOKEN else 8):
            self._head = bytes(data[position:end])
            return
        limits = self._host.limits
        if kind is ResponseKind.TOKEN:
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            if not 0 <= size <= TOKEN_BYTES_MAX:
                raise DecodeError(f"a token of {size} bytes")
        else:
            size, correlation_id = RESPONSE_HEAD.unpack_from(data, position)
            if size < 4:
                raise DecodeError(f"a response of {size} bytes")
            if correlation_id != due.correlation_id:
                raise DecodeError(f"request {correlation_id} was answered where {due.correlation_id} was due")
        self._due.popleft()
        self._response_left = size + 4
        self._counted.answered(due.code, size + 4 if kind is not ResponseKind.CALL else 0)
        if kind is ResponseKind.PASS or kind is ResponseKind.TOKEN:
            return
        if kind is ResponseKind.FETCH and size > DECODED_FETCH_BYTES:
            self._hider = EndpointsHider(due.code & 0xFFFF, size + 4)
            return
        if size > limits.frame_bytes_max:
            raise DecodeError(f"a response of {size} bytes, and {limits.frame_bytes_max} can be decoded")
        self._response = bytearray()
        self._responding = due

    def _take_response(self, frame: bytearray) -> None:
        """Process a collected response, including its size field."""
        due = self._responding
        assert due is not None
        key, version = due.code >> 16, due.code & 0xFFFF
        if due.kind in (ResponseKind.FETCH, ResponseKind.REWRITE) and key != ApiKey.API_VERSIONS:
            self._client.send(moved(frame, due.code, self._host.nodes, self._advertised_host))
            return
        body = memoryview(frame)[4:]
        if key == ApiKey.API_VERSIONS and body[4:6] == UNSUPPORTED_VERSION:
            version = 0  # KIP-511
        _, message = decode_response(body, API_TABLE[key].response, version)
        if due.kind is ResponseKind.CALL:
            self._keep_for_job(len(frame))
            self._step(message, len(frame))
            return
        if due.kind is ResponseKind.HANDSHAKE:
            self._takes_tokens = not message.error_code  # type: ignore[attr-defined]
        elif isinstance(message, ApiVersionsResponse) and self.upstream is not None:
            if not message.error_code:
                has = {each.api_key: (each.min_version, each.max_version) for each in message.api_keys}
                self.upstream.routes = self._host.routes_of(has)
            self.upstream.routes.put_versions(message)
            for chunk in encode_response(message, version, due.correlation_id):
                self._client.send(chunk)
            return
        self._client.send(frame)

    # --- clogged sockets, and the end -------------------------------------------------------------------

    def client_clogged(self, is_clogged: bool) -> None:
        """Stop reading from the broker while the client reads too slowly; resume reading afterwards."""
        self._client_is_clogged = is_clogged
        if self.upstream is not None:
            (self.upstream.pause if is_clogged else self.upstream.go_on)(Pause.CLOGGED)

    def upstream_clogged(self, is_clogged: bool) -> None:
        """Stop reading from the client while the broker reads too slowly; resume reading afterwards."""
        (self._client.pause if is_clogged else self._client.go_on)(Pause.CLOGGED)

    def close(self, reason: str, level: int = logging.INFO) -> None:
        """Log the reason, and close the connections to the client and to the broker."""
        if self.is_closed:
            return
        self._host.note_end(level, self._counted.described, reason)
        self.client_lost()
        self._client.close()

    def client_lost(self) -> None:
        """Close the connection to the broker, because the client has disconnected."""
        if self.is_closed:
            return
        self.is_closed = True
        for collected in (self._collected, self._response):
            if collected is not None:
                self._host.let_go(len(collected))
        self._collected = self._response = None
        self._waiting = b""
        self._due.clear()
        if self._job is not None:
            if self._worker is None:
                self._job.steps.close()
            self._drop_job()
        if self.upstream is not None:
            self.upstream.close()
            self.upstream = None
