"""`SaslGate`: handles the frames of a connection with SASL, before and after its client is authenticated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.broker.context import CloseConnection
from penstock.broker.requests.dispatch import LateRefusal, Unanswered, answer
from penstock.broker.session import Principal
from penstock.security.sasl_server import PASS, SaslServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.broker.context import Context
    from penstock.broker.requests.routes import Piece
    from penstock.broker.security.listener_security import ListenerSecurity
    from penstock.broker.session import Session


class SaslGate:
    """Passes the frames of one connection to its SASL authenticator, then to the handlers.

    `opened` is called once the client is authenticated.
    """

    __slots__ = ("_counts", "_delay_s", "_opened", "_session", "authenticator")

    def __init__(
        self,
        security: ListenerSecurity,
        session: Session,
        context: Context[Any],
        opened: Callable[[], object],
    ) -> None:
        self._session = session
        self._delay_s = security.failure_delay_s
        self._counts = security.logins
        self._opened = opened

        def answer_api_versions(frame: memoryview) -> bytes:
            outcome = answer(frame, context)
            if type(outcome) is not list or not isinstance(outcome[0], bytes):
                raise CloseConnection("ApiVersions without an answer")
            return outcome[0]

        self.authenticator = SaslServer(
            security.mechanisms, security.begin_exchange, answer_api_versions, security.lifetime_max_ms
        )

    def close(self) -> None:
        """Do nothing when the connection ends: the gate has no resources to release."""

    def respond(self, frame: memoryview, context: Context[Any]) -> list[Piece] | Unanswered | None:
        """Answer a frame; return what `penstock.broker.requests.dispatch.answer` returns.

        Raises:
            CloseConnection: authentication has failed, or the session has expired.
        """
        verdict = self.authenticator.receive(frame, context.now, context.now_ms)
        if verdict is PASS:
            return answer(frame, context)
        if verdict.outcome is not None:
            self._counts.add(verdict.outcome, is_again=self._session.mechanism is not None)
        if verdict.authenticated is not None:
            session, identity = self._session, verdict.authenticated
            session.principal = Principal("User", identity.name)
            session.mechanism = self.authenticator.mechanism
            session.is_token = identity.is_token
            self._opened()
        if not verdict.closes:
            return [verdict.reply or b""]
        end = CloseConnection(verdict.reason, verdict.reply or b"")
        if verdict.delays:
            return LateRefusal(end, context.now + self._delay_s)
        raise end
