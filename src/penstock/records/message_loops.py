"""Converts between message formats with compiled kernels: faster than record by record, without numpy.

`raised` converts up and `lowered` converts down. Both return None for input that the kernels do not convert:
damaged records, wrappers in wrappers, or any input if the kernels were not compiled. Then `convert` converts
record by record, and raises the errors. Both conversions give exactly the same bytes.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from penstock.errors import CorruptRecordError, UnpackLimitError
from penstock.records import native
from penstock.records.batch import records_bytes
from penstock.records.compression.codecs import CompressionCodec, compress, quick_level
from penstock.records.format.batch_header import (
    HEADER_BYTES,
    LOG_APPEND_BIT,
    pack_header,
    refresh_crc,
    split_batches,
)
from penstock.records.legacy import encode_message, read_message, verify_message_crc

if TYPE_CHECKING:
    from penstock.records.compression.codecs import UnpackBudget
    from penstock.records.format.batch_header import BatchHeader

_HOME = "records_kernels_message_kernels__"
_raise_messages: Any = getattr(native.LIBRARY, f"{_HOME}raise_messages", None)
_lower_records: Any = getattr(native.LIBRARY, f"{_HOME}lower_records", None)

# The states of the loops, as `kernels.message_kernels` has them.
_COUNT, _BASE_TIME, _MAX_TIME, _APPENDED, _READ_TO, _WRITTEN_TO = range(6)
_FIRST_OFFSET, _LAST_OFFSET, _LATEST, _KEPT, _SIZE, _MESSAGES_TO = range(6)
_STATE = array("q", [0] * 6)
_RECORD_GROWTH, _MESSAGE_GROWTH = 7, 34
_MESSAGE_BYTES_MIN = 26

_ANY_MAGIC = -1
_NO_WRAPPER_TIME = -2


def raised(
    view: memoryview,
    codec: int | None,
    base_offset: int,
    leader_epoch: int,
    budget: UnpackBudget,
    mixed: bool,
    may_be_cut: bool,
    quick_bytes: int,
) -> bytes | None:
    """Convert the messages in `view` to one batch of magic 2; return None if the kernels cannot do this.

    Checksums are verified. Offsets count from `base_offset`. For the other arguments see
    `convert.convert_up`.
    """
    if _raise_messages is None:
        return None
    trial = budget.trial()
    growing = _Raising(view, trial)
    try:
        if not growing.take_all(mixed, may_be_cut):
            return None
        if codec is None:
            codec = growing.codec
        trial.take_bytes(growing.size - HEADER_BYTES)
        level = quick_level(codec, len(view), quick_bytes)
        batch = growing.finish(codec, base_offset, leader_epoch, level)
    except (CorruptRecordError, UnpackLimitError):
        return None
    budget.settle(trial)
    return batch


class _Raising:
    """A batch of magic 2 under construction, made from messages: space for its header, then the records."""

    __slots__ = ("_budget", "_state", "_target", "_view", "codec")

    def __init__(self, view: memoryview, budget: UnpackBudget) -> None:
        self._view = view
        self._budget = budget
        self._state = array("q", _STATE)
        self._state[_WRITTEN_TO] = HEADER_BYTES
        self._target = bytearray(HEADER_BYTES)
        self.codec: int = CompressionCodec.NONE
        """The codec of the first message."""

    @property
    def size(self) -> int:
        return self._state[_WRITTEN_TO]

    def take_all(self, mixed: bool, may_be_cut: bool) -> bool:
        """Convert all messages; return False if there is a message that the kernel cannot convert.

        If `may_be_cut`, a partial message at the end is ignored.

        Raises:
            CorruptRecordError: a wrapper is damaged.
            UnpackLimitError: the messages contain more than the budget allows.
        """
        view, position, is_first = self._view, 0, True
        while position < len(view):
            reached = self._take(view, position, _ANY_MAGIC, _NO_WRAPPER_TIME)
            if reached == position:
                if may_be_cut and next(split_batches(view[position:]), None) is None:
                    break
                reached = self._take_wrapper(position, is_first, mixed)
                if not reached:
                    return False
            position, is_first = reached, False
        return bool(self._state[_COUNT])

    def _take(self, data: memoryview, position: int, magic: int, wrapper_time: int) -> int:
        """Convert uncompressed messages as far as possible; return the position after the converted ones."""
        left = len(data) - position
        room = left + _RECORD_GROWTH * (left // _MESSAGE_BYTES_MIN + 1)
        self._target += bytes(max(self.size + room - len(self._target), 0))
        count_max = self._state[_COUNT] + self._budget.records_left
        taken = _raise_messages(
            data, position, len(data), magic, wrapper_time, count_max, self._target, self._state
        )
        self._budget.take_records(taken)
        return self._state[_READ_TO]

    def _take_wrapper(self, position: int, is_first: bool, mixed: bool) -> int:
        """Convert the messages in the wrapper at `position`; return the position after it (0: failed)."""
        for start, end, magic in split_batches(self._view[position:]):
            start, end = start + position, end + position
            if magic > 1:
                return 0
            verify_message_crc(self._view, start, end)
            wrapper = read_message(self._view, start, end)
            if wrapper.codec in (CompressionCodec.NONE, CompressionCodec.ZSTD) or wrapper.value is None:
                return 0
            if is_first:
                self.codec = wrapper.codec
            time = _NO_WRAPPER_TIME
            if wrapper.magic and wrapper.attributes & LOG_APPEND_BIT:
                time = wrapper.timestamp
                if time < -1:
                    return 0
            inner = self._budget.unpack(wrapper.codec, wrapper.value)
            only = _ANY_MAGIC if mixed else wrapper.magic
            is_whole = bool(inner) and self._take(inner, 0, only, time) == len(inner)
            return end if is_whole else 0
        return 0

    def finish(self, codec: int, base_offset: int, leader_epoch: int, level: int | None) -> bytes:
        """Return the whole batch, compressed in `codec`."""
        state = self._state
        batch = self._target
        del batch[self.size :]
        if codec:
            body = compress(codec, memoryview(batch)[HEADER_BYTES:], level)
            batch = bytearray(HEADER_BYTES + len(body))
            batch[HEADER_BYTES:] = body
        pack_header(
            batch,
            base_offset=base_offset,
            partition_leader_epoch=leader_epoch,
            attributes=codec | LOG_APPEND_BIT * state[_APPENDED],
            record_count=state[_COUNT],
            base_timestamp=state[_BASE_TIME],
            max_timestamp=state[_MAX_TIME],
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
        )
        refresh_crc(batch, 0, len(batch))
        return bytes(batch)


def lowered(
    view: memoryview,
    start: int,
    end: int,
    header: BatchHeader,
    magic: int,
    codec: int,
    first_offset: int,
    budget: UnpackBudget,
    quick_bytes: int,
) -> bytes | bytearray | None:
    """Convert the batch in `view[start:end]` to messages of `magic`; return None if the kernel cannot.

    The batch must have magic 2 and a correct checksum. The result is one wrapper compressed with `codec`;
    without a codec, it is single messages from `first_offset` on.
    """
    count = header.record_count
    if _lower_records is None or not count:
        return None
    trial = budget.trial()
    try:
        records = records_bytes(view, start, end, header, trial)
        room = len(records) + _MESSAGE_GROWTH * count
        trial.take_records(count)
        if room > trial.written_left:
            return None
        target = bytearray(room)
        state = array("q", _STATE)
        appended = (header.attributes >> 3) & 1
        failed = _lower_records(
            records,
            0,
            len(records),
            count,
            header.base_offset,
            header.max_timestamp if appended else header.base_timestamp,
            appended,
            first_offset if not codec else -1 << 63,
            magic,
            int(bool(codec) and magic == 1),
            target,
            state,
        )
        if failed:
            return None
        trial.take_bytes(state[_SIZE])
    except (CorruptRecordError, UnpackLimitError):
        return None
    budget.settle(trial)
    del target[state[_MESSAGES_TO] :]
    if not codec:
        return target
    level = quick_level(codec, end - start, quick_bytes)
    value = compress(codec, target, level, broken_lz4_checksum=magic == 0)
    attributes = codec | (LOG_APPEND_BIT if appended and magic == 1 else 0)
    return encode_message(magic, state[_LAST_OFFSET], None, value, state[_LATEST], attributes)
