"""Conversion of produced records to what the log stores: batches of magic 2, or an older format.

The conversion uses only the records and the topic's settings, so that any thread may do it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.partitions.validation import admit_batch, bring_in_line
from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.protocol.error_codes import ErrorCode, error_for
from penstock.protocol.since import PRODUCE_MAGIC_2_SINCE

if TYPE_CHECKING:
    from penstock.broker.config.values import TopicConfig
    from penstock.records.compression.codecs import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader


class OlderForm(NamedTuple):
    """Records converted to messages of magic 0 or 1, whose offsets begin at `first_offset`."""

    first_offset: int
    data: bytes | memoryview


def admit(
    records: memoryview | None,
    produce_version: int,
    config: TopicConfig,
    now_ms: int,
    budget: UnpackBudget | None,
) -> tuple[memoryview, BatchHeader] | None:
    """Validate a partition's records in a Produce request; return them as one batch of magic 2, with header.

    Returns None if there is nothing to append.

    Raises:
        KafkaError: the records are refused, for a reason of `validation`.
        UnpackLimitError: the records are too much for `budget`.
    """
    if produce_version >= PRODUCE_MAGIC_2_SINCE or records is None:
        batch, header = admit_batch(records, produce_version, config, now_ms, budget)
    else:
        from penstock.broker.partitions.up_conversion import batches_of  # such producers are rare

        batches = batches_of(records, config, now_ms, budget)
        if not batches:
            return None
        batch, header = batches[0]
    if config.inspects_records:
        batch = bring_in_line(batch, header, config, budget)
    return batch, header


def in_older_format(batch: memoryview, magic: int, budget: UnpackBudget | None) -> bytes | memoryview:
    """Convert a batch to messages of magic 0 or 1, for a broker that behaves like an old release.

    Raises:
        KafkaError: INVALID_RECORD (87), the records cannot be read.
        UnpackLimitError: the records are too much for `budget`.
    """
    from penstock.records.convert import convert_down  # such brokers are rare

    try:
        return convert_down(batch, magic, budget=budget)
    except UnpackLimitError:
        raise
    except CorruptRecordError as error:
        raise error_for(ErrorCode.INVALID_RECORD, str(error)) from None
