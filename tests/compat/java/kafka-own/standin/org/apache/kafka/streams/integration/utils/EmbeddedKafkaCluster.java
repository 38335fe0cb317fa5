package org.apache.kafka.streams.integration.utils;

import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.server.util.MockTime;

import verdicts.Embedded;
import verdicts.Host;
import verdicts.Objects;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/** In place of the class of this name in the tests of Kafka Streams: the brokers are Penstock's. */
public class EmbeddedKafkaCluster extends Embedded {
    private static final Map<String, String> USUAL = new HashMap<>(Map.of("group.initial.rebalance.delay.ms", "0", "group.min.session.timeout.ms", "1",
        "offsets.topic.replication.factor", "1", "offsets.topic.num.partitions", "5", "transaction.state.log.num.partitions", "5",
        "transaction.state.log.replication.factor", "1", "transaction.state.log.min.isr", "1", "auto.create.topics.enable", "true"));

    static {
        USUAL.putAll(Map.of("group.streams.min.session.timeout.ms", "100", "group.streams.min.heartbeat.interval.ms", "100"));
    }

    public final MockTime time;

    public EmbeddedKafkaCluster(int brokers) {
        this(brokers, new Properties());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings) {
        this(brokers, settings, Map.of());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings, long nowMs) {
        this(brokers, settings, Map.of(), nowMs, System.nanoTime());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings, Map<Integer, Map<String, String>> own) {
        this(brokers, settings, own, System.currentTimeMillis(), System.nanoTime());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings, Map<Integer, Map<String, String>> own, long nowMs, long nowNs) {
        super(brokers, USUAL, settings, own);
        time = new MockTime(nowMs, nowNs);
    }

    @Override
    public void start() {
        if (sslEnabled()) throw Host.lacks("TLS by the key store of the harness");
        super.start();
    }

    public void createTopics(String... topics) throws InterruptedException {
        Arrays.stream(topics).forEach(this::createTopic);
    }

    public void createTopic(String topic, int partitions, int replicas) throws InterruptedException {
        createTopic(topic, partitions, replicas, Map.of());
    }

    @Override
    public void createTopic(String topic, int partitions, int replicas, Map<String, String> settings) {
        unless(TopicExistsException.class, admin -> admin.createTopics(List.of(topic(topic, partitions, replicas, settings))).all().get());
    }

    public void deleteTopics(String... topics) {
        Arrays.stream(topics).forEach(this::deleteTopic);
    }

    public void deleteAllTopics() {
        delete(Objects.ask(this::createAdminClient, admin -> admin.listTopics().names().get()));
    }

    @Override
    protected void delete(Collection<String> topics) {
        unless(UnknownTopicOrPartitionException.class, admin -> admin.deleteTopics(topics).all().get());
    }

    private void unless(Class<? extends Exception> harmless, Objects.Question<Void> question) {
        Objects.ask(this::createAdminClient, admin -> {
            try {
                return question.ask(admin);
            } catch (java.util.concurrent.ExecutionException e) {
                if (harmless.isInstance(e.getCause())) return null;
                throw e;
            }
        });
    }

    public void waitForRemainingTopics(long patienceMs, String... topics) throws InterruptedException {
        Set<String> wanted = Set.of(topics);
        for (long end = System.currentTimeMillis() + patienceMs; !getAllTopicsInCluster().equals(wanted); Thread.sleep(50))
            if (System.currentTimeMillis() > end) throw new AssertionError("topics: " + getAllTopicsInCluster() + " instead of " + wanted);
    }

    public Set<String> getAllTopicsInCluster() {
        return Objects.ask(this::createAdminClient, admin -> admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get());
    }

    public Properties getLogConfig(String topic) {
        ConfigResource itself = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Properties found = new Properties();
        Objects.ask(this::createAdminClient, admin -> admin.describeConfigs(List.of(itself)).all().get()).get(itself).entries().stream()
            .filter(each -> each.source() == ConfigSource.DYNAMIC_TOPIC_CONFIG).forEach(each -> found.put(each.name(), each.value()));
        return found;
    }

    public void setGroupSessionTimeout(String group, int ms) {
        set(group, "streams.session.timeout.ms", ms);
    }

    public void setGroupHeartbeatTimeout(String group, int ms) {
        set(group, "streams.heartbeat.interval.ms", ms);
    }

    public void setGroupStandbyReplicas(String group, int count) {
        set(group, "streams.num.standby.replicas", count);
    }

    public void setGroupStreamsInitialRebalanceDelay(String group, int ms) {
        set(group, "streams.initial.rebalance.delay.ms", ms);
    }

    private void set(String group, String name, int value) {
        ConfigResource itself = new ConfigResource(ConfigResource.Type.GROUP, group);
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(name, "" + value), AlterConfigOp.OpType.SET);
        Objects.ask(this::createAdminClient, admin -> admin.incrementalAlterConfigs(Map.of(itself, List.of(change))).all().get());
    }
}
