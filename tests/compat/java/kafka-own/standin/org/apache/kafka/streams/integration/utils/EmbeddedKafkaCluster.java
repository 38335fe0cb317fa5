package org.apache.kafka.streams.integration.utils;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.server.util.MockTime;

import verdicts.Host;
import verdicts.Objects;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** In place of the class of this name in the tests of Kafka Streams: the brokers are Penstock's. */
public class EmbeddedKafkaCluster {
    public final MockTime time;
    private final Host host;

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
        time = new MockTime(nowMs, nowNs);
        Map<String, String> all = new TreeMap<>(Map.of("group.initial.rebalance.delay.ms", "0", "group.min.session.timeout.ms", "1",
            "offsets.topic.replication.factor", "1", "offsets.topic.num.partitions", "5", "transaction.state.log.num.partitions", "5",
            "transaction.state.log.replication.factor", "1", "transaction.state.log.min.isr", "1", "auto.create.topics.enable", "true"));
        all.putAll(Map.of("group.streams.min.session.timeout.ms", "100", "group.streams.min.heartbeat.interval.ms", "100"));
        settings.forEach((name, value) -> all.put(name.toString(), value.toString()));
        host = new Host(brokers, 1, all, own, "EXTERNAL", "PLAINTEXT");
    }

    public void start() {
        if (sslEnabled()) throw Host.lacks("TLS by the key store of the harness");
        host.start();
    }

    public void stop() {
        host.stop();
    }

    public void verifyClusterReadiness() { }

    public String bootstrapServers() {
        return host.servers();
    }

    public boolean sslEnabled() {
        return host.settings().getOrDefault("listener.security.protocol.map", "").contains("SSL");
    }

    public void createTopics(String... topics) throws InterruptedException {
        Arrays.stream(topics).forEach(this::createTopic);
    }

    public void createTopic(String topic) {
        createTopic(topic, 1);
    }

    public void createTopic(String topic, int partitions) {
        createTopic(topic, partitions, 1, Map.of());
    }

    public void createTopic(String topic, int partitions, int replicas) throws InterruptedException {
        createTopic(topic, partitions, replicas, Map.of());
    }

    public void createTopic(String topic, int partitions, int replicas, Map<String, String> settings) {
        unless(TopicExistsException.class, admin -> admin.createTopics(List.of(new NewTopic(topic, partitions, (short) replicas).configs(settings))).all().get());
    }

    public void deleteTopics(String... topics) {
        Arrays.stream(topics).forEach(this::deleteTopic);
    }

    public void deleteTopic(String topic) {
        delete(List.of(topic));
    }

    public void deleteAllTopics() {
        delete(Objects.ask(this::createAdminClient, admin -> admin.listTopics().names().get()));
    }

    private void delete(Collection<String> topics) {
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

    public void produce(Map<String, Object> settings, String topic, Integer partition, String key, String value) {
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(topic, partition, bytes(key), bytes(value))).get(2, TimeUnit.MINUTES);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(java.nio.charset.StandardCharsets.UTF_8);
    }

    public Admin createAdminClient() {
        return Admin.create(new HashMap<String, Object>(clientDefaultConfig()));
    }

    public Map<String, String> clientDefaultConfig() {
        return new HashMap<>(Map.of("bootstrap.servers", bootstrapServers()));
    }

    public KafkaConsumer<byte[], byte[]> createConsumer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(Map.of("group.id", UUID.randomUUID().toString(), "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        all.putAll(clientDefaultConfig());
        all.putAll(settings);
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public KafkaConsumer<byte[], byte[]> createConsumerAndSubscribeTo(Map<String, Object> settings, String... topics) {
        return createConsumerAndSubscribeTo(settings, null, topics);
    }

    public KafkaConsumer<byte[], byte[]> createConsumerAndSubscribeTo(Map<String, Object> settings, ConsumerRebalanceListener listener, String... topics) {
        KafkaConsumer<byte[], byte[]> consumer = createConsumer(settings);
        if (listener == null) consumer.subscribe(List.of(topics));
        else consumer.subscribe(List.of(topics), listener);
        return consumer;
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
