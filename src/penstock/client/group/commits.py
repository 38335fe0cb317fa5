"""Committing and reading commits: the calls of a consumer that concern its group's offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.client.arguments import checked, function, optional, topic_partitions
from penstock.client.group.offsets import Committable, GroupMetadata, OffsetAndMetadata
from penstock.client.group.session import GroupSession
from penstock.errors import ConfigError, PenstockError
from penstock.model import TopicPartition

WhenDone = Callable[[Committable, "PenstockError | None"], object]
"""Called with the offsets of a commit in the background, and with its error if it failed."""


class CommitCalls:
    """A part of `AsyncConsumer`."""

    _group: GroupSession | None

    async def commit(self, offsets: Committable | None = None) -> None:
        """Commit `offsets`, the next to read of each partition; by default where every partition is.

        Values are numbers, or `OffsetAndMetadata`. By default that is behind the last record returned.

        Raises:
            KafkaError: the group has gone on without this member (22, 25 or 82), or refuses.
            ConfigError: no ``group.id``, or a negative offset.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        await self._group_of("commit()").commit(offsets)

    @checked(when_done=optional(function))
    def commit_async(
        self,
        offsets: Committable | None = None,
        when_done: WhenDone | None = None,
    ) -> None:
        """Commit in the background, in the order of the calls; `when_done` gets the offsets and the error.

        On the event loop. Raises ConfigError without ``group.id``.
        """
        self._group_of("commit_async()").begin_commit(offsets, when_done or (lambda offsets, error: None))

    async def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for each partition; None for nothing.

        Raises:
            KafkaError: the group may not be read.
            ConfigError: no ``group.id``.
            NetworkError, RequestTimeoutError: no coordinator answers in time.
        """
        return await self._group_of("committed()").committed(topic_partitions(partitions, "committed()"))

    def group_metadata(self) -> GroupMetadata:
        """The member's present id and generation: what `send_offsets` of a producer takes (KIP-447).

        Raises:
            KafkaError: the group has gone on without this member (25), or it has not joined yet.
            ConfigError: no ``group.id``.
        """
        return self._group_of("group_metadata()").metadata()

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to read of each assigned partition: behind the last record returned.

        A partition is left out until something was read from it. Raises ConfigError without ``group.id``.
        """
        return dict(self._group_of("positions()").positions())

    def _group_of(self, what: str) -> GroupSession:
        if self._group is None:
            raise ConfigError(f'{what} needs the option "group.id"')
        return self._group
