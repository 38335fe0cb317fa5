"""A broker interceptor that counts Fetch requests and the bytes of records in their responses."""

from __future__ import annotations

from collections import Counter
from typing import Any

from penstock.broker.interceptors import when_answered
from penstock.protocol.api import ApiKey


class Wire:
    """Counters of Fetch requests and of the record bytes in their responses."""

    def __init__(self) -> None:
        self.fetches: Counter[int] = Counter()
        self.size_bytes = 0

    def intercept(self, route: Any) -> Any:
        if route.key != ApiKey.FETCH:
            return route

        def count(response: Any) -> Any:
            for topic in response.responses:
                for partition in topic.partitions:
                    self.size_bytes += size_of(partition.records)
            return response

        def handle(request: Any, context: Any) -> Any:
            for topic in request.topics:
                self.fetches.update(partition.partition for partition in topic.partitions)
            return when_answered(route.handle(request, context), count)

        return route._replace(handle=handle)

    def reset(self) -> None:
        self.fetches.clear()
        self.size_bytes = 0


def size_of(records: Any) -> int:
    """Return the bytes of a response's records, which may be one buffer, several, or parts of files."""
    if records is None:
        return 0
    if isinstance(records, (bytes, bytearray, memoryview)):
        return memoryview(records).nbytes
    return sum(
        size_of(one) if isinstance(one, (bytes, bytearray, memoryview)) else one.size for one in records
    )
