"""Fetch ranges on an executor, over a connection that outlives the task.

Spark reuses its Python workers: the next task, or the next micro-batch, finds the connection open and
the metadata cached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from penstock.client.cluster.client import AsyncClient
from penstock.client.fetch.ranges import scan_ranges
from penstock.common.operating_system import after_fork_in_child
from penstock.errors import KafkaError
from penstock.model import OffsetRange
from penstock.protocol.error_codes import ErrorCode
from penstock.spark.source.brokers import NOT_THERE, client_config, presume_login
from penstock.spark.source.options import ReadOptions
from penstock.spark.source.outage import Patience
from penstock.spark.source.planning import DATA_LOSS_ADVICE, DataLossError
from penstock.spark.source.schema import BATCH_BYTES, EVENT_BATCH_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

FETCH_BYTES = 8 << 20
"""The default size of a fetch. A task reads one partition at a time, so that each fetch is a round trip and a
change of threads: with 8 MiB instead of 4, records of 1 KB take a worker a seventh less CPU, and smaller
ones no more than before.
"""

_clients: dict[tuple[object, ...], AsyncClient] = {}
after_fork_in_child(_clients.clear)


def fetch(
    options: ReadOptions,
    columns: Sequence[str],
    spans: Sequence[OffsetRange],
    patience: Patience | None = None,
    topic_ids: Mapping[str, bytes] = MappingProxyType({}),
) -> Iterator[pa.RecordBatch]:
    """Yield the records of `spans`, each in offset order, as batches with `columns`.

    `topic_ids` are the ids that the topics must have.

    Raises:
        DataLossError: records of a span are no longer in the log, and failOnDataLoss is on.
        PenstockError: the brokers cannot be reached, the records are damaged, or another failure.
    """
    config = client_config(options.bootstrap_servers, options.client)
    if patience and patience.is_proven:
        presume_login(config)
    batches = scan_ranges(
        _client(options),
        spans,
        columns,
        isolation=config.isolation_level,
        batch_bytes=EVENT_BATCH_BYTES if options.cloudevents or options.values else BATCH_BYTES,
        fetch_bytes=config.fetch_max_bytes if "fetch.max.bytes" in options.client else FETCH_BYTES,
        fail_on_data_loss=options.fail_on_data_loss,
        check_crcs=config.check_crcs,
        unpack=config.unpack_limits,
        patience_s=patience.outage_s if patience else None,
        start_patience_s=patience.outage_s if patience and patience.is_proven else 0.0,
        topic_ids=topic_ids,
    )
    try:
        for _, batch in batches:
            yield batch
    except KafkaError as error:
        if error.code in (ErrorCode.OFFSET_OUT_OF_RANGE, *NOT_THERE):
            raise DataLossError(f"{error}; {DATA_LOSS_ADVICE}") from None
        raise


def _client(options: ReadOptions) -> AsyncClient:
    key = (options.bootstrap_servers, *sorted(options.client.items()))
    client = _clients.get(key)
    if client is None:
        client = AsyncClient(client_config(options.bootstrap_servers, options.client))
        _clients[key] = client
    return client
