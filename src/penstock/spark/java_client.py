"""Settings of Kafka's Java clients that Spark options may contain: those ignored, and those refused."""

from __future__ import annotations

GROUP = "the source joins no group"
METRICS = "Spark's progress has the numbers"
TOKENS = "brokers check tokens, this client does not"

NO_EFFECT = {
    "auto.commit.interval.ms": "offsets are in the checkpoint",
    "auto.include.jmx.reporter": METRICS,
    "client.dns.lookup": "each address of a name is tried",
    "compression.gzip.level": "the codec's own level is used",
    "compression.lz4.level": "the codec's own level is used",
    "compression.zstd.level": "the codec's own level is used",
    "connections.max.idle.ms": "brokers end idle connections",
    "exclude.internal.topics": "a pattern matches no internal topic",
    "group.id": GROUP,
    "group.instance.id": GROUP,
    "group.protocol": GROUP,
    "group.remote.assignor": GROUP,
    "heartbeat.interval.ms": GROUP,
    "internal.leave.group.on.close": GROUP,
    "internal.throw.on.fetch.stable.offset.unsupported": "not for users",
    "max.poll.interval.ms": GROUP,
    "max.poll.records": "records come as columns, by size",
    "metadata.max.idle.ms": "topics are asked about as long as they are written",
    "metadata.recovery.rebootstrap.trigger.ms": "bootstrap servers stay known",
    "metadata.recovery.strategy": "bootstrap servers stay known",
    "metric.reporters": METRICS,
    "metrics.num.samples": METRICS,
    "metrics.recording.level": METRICS,
    "metrics.sample.window.ms": METRICS,
    "partition.assignment.strategy": GROUP,
    "partitioner.adaptive.partitioning.enable": "records without a key are spread evenly",
    "partitioner.availability.timeout.ms": "records without a key are spread evenly",
    "sasl.oauthbearer.clock.skew.seconds": TOKENS,
    "sasl.oauthbearer.expected.audience": TOKENS,
    "sasl.oauthbearer.expected.issuer": TOKENS,
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": TOKENS,
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": TOKENS,
    "sasl.oauthbearer.jwks.endpoint.url": TOKENS,
    "sasl.oauthbearer.scope.claim.name": TOKENS,
    "sasl.oauthbearer.sub.claim.name": TOKENS,
    "session.timeout.ms": GROUP,
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms counts",
}
"""A dict from settings that are accepted without effect to the reason. A query that used the JVM's connector
can therefore keep its options.
"""

REFUSED = {
    "kafka.auto.offset.reset": "the source keeps its own offsets; say startingOffsets",
    "kafka.enable.auto.commit": "the source keeps its own offsets and commits none",
    "kafka.key.deserializer": "keys come as bytes; cast the column instead",
    "kafka.value.deserializer": "values come as bytes; cast the column instead",
    "kafka.key.serializer": "keys are written as they are; cast the column instead",
    "kafka.value.serializer": "values are written as they are; cast the column instead",
    "kafka.interceptor.classes": "interceptors are Java classes",
    "kafka.partitioner.class": "it is a Java class; say kafka.partitioner, or add a column partition",
    "kafka.partitioner.ignore.keys": "keys decide; add a column partition instead",
}
"""A dict from settings that are refused, because they would change a query's result, to a text with the
reason and the alternative.
"""
