"""`History`: records what an application does, with any Kafka client, and checks its guarantees.

    history = History()
    history.flow("orders", "bills", group="billing", of=lambda record: record.key)
    history.attach(broker)
    with history.watching():  # Penstock's own clients
        run_the_application(broker.bootstrap_servers)
    history.check(exactly_once=True)

An application with a client other than Penstock's needs no changes: an attached broker records when offsets
are committed, and the check reads the broker's logs. `History.record` adds events by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from penstock.common.suggestions import did_you_mean
from penstock.errors import ConfigError
from penstock.model import TopicPartition
from penstock.testing.chaos.events import (
    Event,
    Flow,
    flow_of,
)
from penstock.testing.chaos.evidence import Evidence, FinalLog
from penstock.testing.chaos.findings import Finding, HistoryError, by_gravity
from penstock.testing.chaos.poll_rules import poll_findings
from penstock.testing.chaos.recorder import Recorder
from penstock.testing.chaos.work_rules import work_findings
from penstock.testing.chaos.write_rules import write_findings

if TYPE_CHECKING:
    from penstock.broker.broker import KafkaBroker
    from penstock.broker.cluster import KafkaCluster


class History:
    """Records the events of one application, numbered in the order in which they happen, and checks them."""

    def __init__(self) -> None:
        self.record = Recorder()
        """The `Recorder`, whose methods (`sent`, `polled` ...) add events that are not recorded
        automatically."""
        self.logs: dict[TopicPartition, FinalLog] = {}
        """A dict from partition to its final log: read from the attached broker, or set by the test."""
        self.flows: list[Flow] = []
        self._served: list[tuple[KafkaBroker | KafkaCluster, Callable[[], None]]] = []

    def __repr__(self) -> str:
        return f"<History: {self.record.size} events, {len(self.flows)} flows>"

    # --- what the application is for -----------------------------------------------------------------------

    def flow(
        self,
        source: str,
        sink: str | Iterable[str] | None = None,
        *,
        group: str | None = None,
        of: Callable[[Any], object] | None = None,
        sink_of: Callable[[Any], object] | None = None,
    ) -> None:
        """Declare that the application works on all records of topic `source`, and writes to `sink`.

        `sink` is one topic or several; without `sink`, calls of `work` are the work. `group` is the group
        that commits the offsets of the source; None stands for every group. `of` returns the identity of a
        record, both in the source and in the sink; `sink_of` replaces `of` for the sink. By default the
        identity is the record's key, or its value if it has no key. A record whose identity is None does not
        belong to the flow.

        Raises:
            ConfigError: the name of a topic is not a text, or `of` or `sink_of` is not a function.
        """
        self.flows.append(flow_of(source, sink, group, of, sink_of))

    # --- what it did -------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """Return the events recorded so far, in order."""
        return self.record.events

    def work(self, record: Any) -> None:
        """Record that the application has finished its work on `record`.

        `record` has the attributes topic, partition and offset.
        """
        self.record.work(record)

    # --- where it comes from -----------------------------------------------------------------------------

    def attach(self, broker: KafkaBroker | KafkaCluster) -> None:
        """Record when a broker or cluster stores committed offsets, and use its logs for the check.

        Raises:
            ConfigError: `broker` is neither a `KafkaBroker` nor a `KafkaCluster`.
        """
        from penstock.testing.chaos.effects import observe
        from penstock.testing.chaos.reading import end_of

        self._served.append((broker, observe(broker, self.record)))
        self.record.end_of = lambda tp: end_of([served for served, _ in self._served], tp)

    def detach(self) -> None:
        """Stop recording at the attached brokers; keep their logs as they were last read."""
        served, self._served = self._served, []
        for _, remove in served:
            remove()

    def watching(self) -> AbstractContextManager[None]:
        """Record what every client of Penstock in this process does, for the duration of a ``with`` block.

        Calls of `send_arrow`, `poll_arrow` and `poll_part` are not recorded.
        """
        from penstock.testing.chaos.watching import watching

        return watching(self.record)

    def read(self) -> None:
        """Read the logs of the attached brokers that run; they replace the logs read before."""
        from penstock.testing.chaos.reading import read_logs

        for served, _ in self._served:
            self.logs.update(read_logs(served))

    # --- what it is worth ----------------------------------------------------------------------------------

    def findings(
        self,
        *,
        at_least_once: bool = True,
        exactly_once: bool = False,
        ordered: bool = False,
        writes_once: bool | None = None,
    ) -> list[Finding]:
        """Return the application's mistakes, the gravest first; the list is empty if there are none.

        `at_least_once`: work is done on every record, and before its offset is committed. `exactly_once`: in
        addition, no work is done twice, and the offsets of transactional work are committed in its
        transaction. `ordered`: work is done in the order of a partition's records. `writes_once`: no send is
        stored twice; the default is the value of `exactly_once`. Lost, aborted and inconsistent records are
        always mistakes. The logs of attached brokers are read first.

        Raises:
            ConfigError: the source of a flow is a topic that does not exist, so that nothing could be found.
        """
        self.read()
        topics = {tp.topic for tp in self.logs}
        for flow in self.flows:
            if flow.source not in topics:
                raise ConfigError(
                    f"there is no log of topic {flow.source!r}: create it, and attach the broker"
                    f"{did_you_mean(flow.source, topics)}"
                )
        evidence = Evidence(list(self.events), self.logs, self.flows)
        once = exactly_once if writes_once is None else writes_once
        return by_gravity([*self._apply(evidence, at_least_once, exactly_once, ordered, once)])

    def _apply(
        self, evidence: Evidence, at_least_once: bool, exactly_once: bool, ordered: bool, once: bool
    ) -> Iterator[Finding]:
        yield from write_findings(evidence, writes_once=once)
        yield from poll_findings(evidence)
        yield from work_findings(
            evidence, at_least_once=at_least_once, exactly_once=exactly_once, ordered=ordered
        )

    def check(
        self,
        *,
        at_least_once: bool = True,
        exactly_once: bool = False,
        ordered: bool = False,
        writes_once: bool | None = None,
    ) -> None:
        """Raise an error if `findings`, with the same arguments, returns any mistakes.

        Raises:
            HistoryError: an AssertionError with the findings, and the records and offsets that show them.
            ConfigError: the source of a flow is a topic that does not exist.
        """
        __tracebackhide__ = True  # of pytest: the findings are what matters
        found = self.findings(
            at_least_once=at_least_once, exactly_once=exactly_once, ordered=ordered, writes_once=writes_once
        )
        if found:
            raise HistoryError(found)
