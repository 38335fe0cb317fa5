"""One partition of a topic: what may be appended to it.

Decides and calls the log; independent of connections, requests and other partitions.

The high watermark, the last stable offset, the leader's epoch and the replicas are states of the partition:
`become` takes the latter from the cluster's image (`partition_state`), `advance` moves the former once the
in-sync replicas have what was appended (`partition_log`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.partitions.partition_log import NO_TIME, PartitionLog
from penstock.broker.partitions.producers.transactional_appends import join_batch
from penstock.broker.partitions.stored_form import MAGIC_2_ONLY_SINCE, OlderForm, admit, in_older_format
from penstock.broker.partitions.validation import admit_batch, bring_in_line, no_segment_holds
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.records.format.batch_header import (
    TRANSACTIONAL_BIT,
    set_base_offset,
    set_leader_epoch,
    set_max_timestamp_log_append,
)

if TYPE_CHECKING:
    from penstock.broker.partitions.producers.transactional_appends import Joining
    from penstock.records.compression.budget import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader


KEPT_OFFSET_MAX = 2**62
"""Where a batch may begin whose offset is kept: the log can go on behind it."""


class Appended(NamedTuple):
    """Where a batch went. `log_append_time_ms` is -1 in topics that keep the producer's times."""

    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


class Partition(PartitionLog):
    """One partition of one topic, led by this broker. It is itself the key under which fetches wait."""

    __slots__ = ()

    def append(
        self,
        records: memoryview | None,
        produce_version: int,
        now_ms: int,
        budget: UnpackBudget | None = None,
        joining: Joining | None = None,
        *,
        acks: int = 1,
    ) -> Appended:
        """Append what a Produce request carries for this partition.

        `acks` is the request's; only a partition with several replicas asks for it.

        `joining` has batches of transactions take part in one; without it they are refused.

        `records` is lent: its header is patched in place, and nothing of it is kept. `budget` is for what
        has to be unpacked and looked into.

        Raises:
            KafkaError: the records are refused, for a reason of `validation` or `producer_state`.
            StorageError: they could not be written; nothing has changed.
            UnpackLimitError: the records are too much for `budget`; nothing has changed.
        """
        self.check_appends(acks)
        config = self.config
        if produce_version >= MAGIC_2_ONLY_SINCE or records is None:
            batch, header = admit_batch(records, produce_version, config, now_ms, budget)
            if config.inspects_records:
                batch = bring_in_line(batch, header, config, budget)
            return self._append_batch(batch, header, now_ms, budget, joining=joining)
        admitted = self.admit(records, produce_version, now_ms, budget)
        return self.append_admitted(admitted, now_ms, budget=budget, acks=acks)

    def check_appends(self, acks: int) -> None:
        """Raise KafkaError where the partition takes no records now. One without followers always does."""

    def admit(
        self,
        records: memoryview | None,
        produce_version: int,
        now_ms: int,
        budget: UnpackBudget | None,
    ) -> tuple[memoryview, BatchHeader] | None:
        """Judge what a Produce request carries, and bring it into the form in which it is appended.

        The part of `append` that may take long. Depends on the settings alone, so that any thread may
        call it. None where there is nothing to append.

        Raises:
            KafkaError: the records are refused, for a reason of `validation`.
            UnpackLimitError: the records are too much for `budget`.
        """
        return admit(records, produce_version, self.config, now_ms, budget)

    def append_admitted(
        self,
        admitted: tuple[memoryview, BatchHeader] | None,
        now_ms: int,
        older: OlderForm | None = None,
        budget: UnpackBudget | None = None,
        joining: Joining | None = None,
        *,
        acks: int = 1,
    ) -> Appended:
        """Append what `admit` has returned, which may be long ago. Errors: see `append`.

        `older` is what `prepare_older` has made of it, where this broker stores an older format.
        """
        self.check_appends(acks)  # what held when the records came may not hold any more
        if admitted is None:
            return Appended(-1, NO_TIME, self.log.start_offset)
        return self._append_batch(*admitted, now_ms, budget, older, joining)

    def prepare_older(
        self, admitted: tuple[memoryview, BatchHeader], first_offset: int, now_ms: int, budget: UnpackBudget
    ) -> OlderForm:
        """Make what a broker stores that behaves as an old release, for records that begin at an offset.

        Any thread may call it. Raises as `append`.
        """
        batch, _ = admitted
        self._stamp(batch, first_offset, now_ms)
        return OlderForm(first_offset, self._stored(batch, budget))

    @property
    def stores_older(self) -> bool:
        """Whether what is appended is converted to messages of magic 0 or 1."""
        return self.config.stored_magic < 2 and not self.topic.startswith("__")

    def _append_batch(
        self,
        batch: memoryview,
        header: BatchHeader,
        now_ms: int,
        budget: UnpackBudget | None,
        older: OlderForm | None = None,
        joining: Joining | None = None,
    ) -> Appended:
        config = self.config
        if len(batch) > config.segment_bytes:
            raise no_segment_holds(len(batch), config)
        log = self.log
        states = self._producers
        assert states is not None
        if header.producer_id >= 0:
            in_transaction = header.attributes & TRANSACTIONAL_BIT
            verification = join_batch(self, header, joining) if in_transaction else None
            repeated = states.producers.judge(
                header.producer_id,
                header.producer_epoch,
                header.base_sequence,
                header.record_count,
                states.uptime_ms,
            )
            if repeated is not None:
                # Kafka answers the greatest time of the stored batch, and -1 as the log's start.
                return Appended(repeated.first_offset, repeated.timestamp, log.start_offset)
            if in_transaction or states.open:
                states.check_append(header, verification)
        first_offset = self._kept_offset(header, log.end_offset) if config.keeps_offsets else log.end_offset
        last_offset = first_offset + header.last_offset_delta
        max_timestamp = now_ms if config.log_append_time else header.max_timestamp
        self._stamp(batch, first_offset, now_ms)
        stored: bytes | memoryview = batch
        if config.stored_magic != 2:
            if older is not None and older.first_offset == first_offset:
                stored = older.data
            else:
                stored = self._stored(batch, budget)
        log.append(
            stored,
            first_offset=first_offset,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
        )
        states.batches_since_snapshot += 1
        if header.producer_id >= 0:
            states.appended(header, first_offset, max_timestamp)
        self._advance(log)
        return Appended(first_offset, now_ms if config.log_append_time else NO_TIME, log.start_offset)

    def _kept_offset(self, header: BatchHeader, end_offset: int) -> int:
        """Return the offset that a copy has given to a batch.

        A copy that sends several batches at a time says in the field for the leader's epoch, which producers
        leave at -1, how many offsets lie between the batch and the one before. With that no batch can follow
        one that was refused.

        Raises:
            KafkaError: INVALID_RECORD (87), it lies below the end of the log, beyond all offsets, or not as
                far behind the end as it says.
        """
        first_offset, gap = header.base_offset, header.partition_leader_epoch
        if not end_offset <= first_offset <= KEPT_OFFSET_MAX or 0 <= gap != first_offset - end_offset:
            raise error_for(
                ErrorCode.INVALID_RECORD,
                f"{self!r} keeps the offsets of a copy (penstock.keep.offsets), and ends at offset "
                f"{end_offset}: a batch cannot begin at {first_offset}",
            )
        return first_offset

    def _stored(self, batch: memoryview, budget: UnpackBudget | None) -> bytes | memoryview:
        """Return the batch in the format that is stored. The broker's own topics always have the newest."""
        return in_older_format(batch, self.config.stored_magic, budget) if self.stores_older else batch

    def _stamp(self, batch: memoryview, first_offset: int, now_ms: int) -> None:
        """Write the offset, leader epoch and append time into a batch."""
        set_base_offset(batch, 0, first_offset)
        set_leader_epoch(batch, 0, self.leader_epoch)
        if self.config.log_append_time:
            set_max_timestamp_log_append(batch, 0, len(batch), now_ms)
