"""Commit the offsets of a stream to a consumer group, for tools that show lag.

Only the checkpoint of the query decides where the query continues; nothing is read back from the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.client.background_loop import background_loop, run
from penstock.client.group.coordinator import CoordinatorFinder
from penstock.client.group.offsets import GroupOffsets, MemberIdentity
from penstock.common.logs import logger_named
from penstock.errors import KafkaError, PenstockError
from penstock.model import TopicPartition
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.source.outage import is_outage

if TYPE_CHECKING:
    import asyncio

    from penstock.client.cluster.client import AsyncClient

log = logger_named("penstock.spark")


class GroupCommits:
    """Commits the offsets of one query like a consumer that is not a member of the group.

    Commits never hold up a micro-batch: while one is under way, the newest offsets wait for it, and older
    waiting offsets are not sent. If brokers cannot be reached, the failure is logged and the commit tried
    again with the next micro-batch; an error that a retry cannot mend ends the query.
    """

    def __init__(self, client: AsyncClient, group_id: str) -> None:
        self._client = client
        self._group_id = group_id
        self._offsets = GroupOffsets(client, CoordinatorFinder(client, group_id))
        self._wanted: dict[TopicPartition, int] | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: PenstockError | None = None

    def submit(self, offsets: Mapping[TopicPartition, int], *, wait: bool) -> None:
        """Commit `offsets` in the background; with `wait`, before this returns.

        Raises:
            KafkaError: an earlier commit was refused: no right to the group, or it has members.
        """
        if self._error is not None:
            raise self._error
        self._wanted = dict(offsets)
        if wait:
            run(self._drain())
            if self._error is not None:
                raise self._error
        else:
            background_loop().call_soon_threadsafe(self._start)

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = background_loop().create_task(self._drain())

    async def _drain(self) -> None:
        while self._wanted:
            wanted, self._wanted = self._wanted, None
            try:
                await self._client.bootstrap()
                await self._offsets.commit(wanted, lambda before: MemberIdentity())
            except PenstockError as error:
                if not is_outage(error):
                    self._error = self._explained(error)
                    return
                log.warning("the offsets of group %s are not committed now: %s", self._group_id, error)

    def _explained(self, error: PenstockError) -> PenstockError:
        if isinstance(error, KafkaError) and error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            return KafkaError(
                error.code,
                error.name,
                f"group {self._group_id!r} has members, whose offsets are their own: "
                "name another with kafka.group.id, or leave commitOffsets out",
            )
        return error
