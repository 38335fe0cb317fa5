"""Elects the registry that writes, among all registries on one topic, through a consumer group.

A thread with an event loop of its own maintains the membership. Any thread can read the outcome of the last
election.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from penstock.client.cluster.client import AsyncClient
from penstock.client.config import ClientConfig
from penstock.client.group.coordinator import MEMBER_CODES, CoordinatorFinder
from penstock.common.logs import logger_named
from penstock.errors import ConfigError, KafkaError, NetworkError, PenstockError, RequestTimeoutError
from penstock.registry.server.forwarding import ALONE, ElectionOutcome
from penstock.registry.server.group_protocol import DUPLICATE_URLS, Assignment, RegistryIdentity
from penstock.registry.server.membership import MembershipSettings, RegistryMembership

INIT_TIMEOUT_S = 60.0
"""Seconds within which the first election must end: ``kafkastore.init.timeout.ms`` of Confluent's registry.
"""
TAKE_OVER_PAUSE_S = 0.5
NO_OUTCOME = ElectionOutcome(None, False)
"""The value of `Election.outcome` before an election has an outcome: no registry is elected."""
_log = logger_named("penstock.registry")


class Writing(Protocol):
    """The interface of a registry's log whose right to write is taken over and given up after elections."""

    def lead(self) -> None:
        """Take over the right to write from the registry that was elected before."""

    def resign(self) -> None:
        """Give up the right to write. Returns when no write is in progress."""


class Election:
    """Takes part in elections; the registry's log takes over or gives up the right to write."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        config: Mapping[str, object] | None,
        identity: RegistryIdentity,
        settings: MembershipSettings,
        writing: Writing,
    ) -> None:
        """Set up elections in a group of a cluster; `identity` has this registry's address.

        Raises:
            ConfigError: an option of `config` is unknown or invalid.
        """
        self.outcome = NO_OUTCOME
        """The outcome of the last election: the registry that may write now."""
        self._config = ClientConfig.of(config, {}, bootstrap_servers=bootstrap_servers)
        self._identity = identity
        self._settings = settings
        self._writing = writing
        self._is_settled = threading.Event()
        self._failure: Exception | None = None
        self._is_elected = False
        self._taking_over: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._membership: RegistryMembership | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-registry-election", daemon=True)

    def start(self) -> None:
        """Join the group, and return when the first election has an outcome.

        Raises:
            ConfigError: another registry has the same URL.
            KafkaError, NetworkError, RequestTimeoutError: the error that prevents an outcome in time.
            Exception: the error with which the election's thread ended before the first outcome.
        """
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        if not self._is_settled.wait(INIT_TIMEOUT_S):
            group = self._settings.group_id
            raise self._failure or RequestTimeoutError(
                f"group {group!r} of the registries has not elected one in {INIT_TIMEOUT_S:.0f} s"
            )
        if self._failure is not None and self.outcome == NO_OUTCOME:
            raise self._failure

    def stop(self) -> None:
        """Give up the right to write, and leave the group."""
        if self._thread.is_alive():
            self._call(self._cancel)
            self._thread.join()

    def fenced(self) -> None:
        """Start another election, because another registry has taken over the right to write."""
        self.outcome = NO_OUTCOME
        self._call(self._rejoin)

    def _call(self, function: Callable[[], None]) -> None:
        """Call a function in the election's thread, if that thread is running."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(function)

    # --- in the thread of the election ---

    def _run(self) -> None:
        assert self._loop is not None
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            self._task = loop.create_task(self._take_part())
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(self._task)
        except Exception as error:
            _log.exception("this registry takes no part in elections any more: it forwards no writes")
            self.outcome = NO_OUTCOME
            self._settle(error)
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _rejoin(self) -> None:
        if self._membership is not None:
            self._membership.rejoin()

    async def _take_part(self) -> None:
        async with AsyncClient(self._config) as client:
            coordinator = CoordinatorFinder(client, self._settings.group_id)
            self._membership = RegistryMembership(coordinator, self._identity, self._settings, self)
            await self._membership.run()

    # --- the role of this registry ---

    async def assigned(self, assignment: Assignment, *, is_own: bool) -> None:
        """Apply the outcome of an election: take over the right to write if this registry is elected."""
        if assignment.error:
            what = (
                f"another registry has the URL {self._identity.url} too, or two others have one: give each "
                "the address by which it is reached (advertised)"
                if assignment.error == DUPLICATE_URLS
                else f"the election of a registry has failed with the unknown error {assignment.error}"
            )
            _log.error("%s", what)
            self._settle(ConfigError(what))
            return
        self._failure = None
        _log.info("elected to write: %s", assignment.leader.url if assignment.leader else "no registry")
        if is_own:
            self._is_elected = True
            self._taking_over = asyncio.create_task(self._take_over())
        else:
            self.outcome = ElectionOutcome(
                None if assignment.leader is None else assignment.leader.url, False
            )
            self._settle()

    async def revoked(self) -> None:
        """Stop writing until the next election has an outcome."""
        self.outcome = NO_OUTCOME
        self._is_elected = False
        if self._taking_over is not None:
            await self._taking_over
            self._taking_over = None
        await asyncio.to_thread(self._writing.resign)

    def failed(self, error: PenstockError) -> None:
        """Store the error that prevents the first outcome, so that `start` can raise it."""
        if self._is_settled.is_set():
            return
        self._failure = error
        if not _is_passing(error):
            self._is_settled.set()

    async def _take_over(self) -> None:
        while self._is_elected:
            try:
                await asyncio.to_thread(self._writing.lead)
            except PenstockError as error:
                _log.warning("this registry is elected, and cannot write yet: %s", error)
                self.failed(error)
                await asyncio.sleep(TAKE_OVER_PAUSE_S)
                continue
            if self._is_elected:
                self.outcome = ALONE
                self._settle()
            return

    def _settle(self, failure: Exception | None = None) -> None:
        if failure is not None and not self._is_settled.is_set():
            self._failure = failure
        self._is_settled.set()


def _is_passing(error: PenstockError) -> bool:
    """Return True if an error is transient: a retry may succeed with the same settings and permissions."""
    if isinstance(error, KafkaError):
        return error.retriable or error.code in MEMBER_CODES
    return isinstance(error, NetworkError | RequestTimeoutError)
