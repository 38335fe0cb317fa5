package org.apache.kafka.connect.util.clusters;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigsResult;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import kafka.server.BrokerServer;

import verdicts.Embedded;
import verdicts.Objects;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** In place of the class of this name in the tests of Connect and of MirrorMaker: the brokers are Penstock's. */
public class EmbeddedKafkaCluster extends Embedded {
    private final Map<String, String> ofClients;
    private KafkaProducer<byte[], byte[]> producer;

    public EmbeddedKafkaCluster(int brokers, Properties settings) {
        this(brokers, settings, Map.of());
    }

    public EmbeddedKafkaCluster(int brokers, Properties settings, Map<String, String> ofClients) {
        super(brokers, Map.of("group.initial.rebalance.delay.ms", "0", "auto.create.topics.enable", "false",
            "offsets.topic.replication.factor", "" + brokers), settings, Map.of());
        this.ofClients = ofClients;
    }

    @Override
    public void start() {
        super.start();
        producer = createProducer(Map.of());
    }

    @Override
    public void stop() {
        if (producer != null) producer.close(Duration.ZERO);
        super.stop();
    }

    public void stopOnlyBrokers() {
        host.ids(true).forEach(host::stopBroker);
    }

    public void restartOnlyBrokers() {
        host.ids(false).forEach(host::startBroker);
    }

    public Set<BrokerServer> runningBrokers() {
        Set<BrokerServer> found = new HashSet<>();
        host.ids(true).forEach(id -> found.add((BrokerServer) Objects.broker(id, host, this::createAdminClient)));
        return found;
    }

    @Override
    public Map<String, String> clientDefaultConfig() {
        Map<String, String> all = super.clientDefaultConfig();
        if (sslEnabled()) all.putAll(Map.of("security.protocol", "SSL", "ssl.truststore.location", host.settings().get("ssl.truststore.location"),
            "ssl.truststore.password", host.settings().get("ssl.truststore.password")));
        return all;
    }

    @Override
    public void createTopic(String topic, int partitions, int replicas, Map<String, String> settings) {
        createTopic(topic, partitions, replicas, settings, Map.of());
    }

    public void createTopic(String topic, int partitions, int replicas, Map<String, String> settings, Map<String, Object> ofAdmin) {
        Objects.ask(() -> createAdminClient(ofAdmin), admin -> admin.createTopics(List.of(topic(topic, partitions, replicas, settings))).all().get());
    }

    @Override
    public Admin createAdminClient() {
        return createAdminClient(Map.of());
    }

    public Admin createAdminClient(Map<String, Object> settings) {
        return Admin.create(with(settings));
    }

    @Override
    protected Map<String, Object> with(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(ofClients);
        all.putAll(super.with(settings));
        return all;
    }

    public Map<String, Optional<TopicDescription>> describeTopics(String... topics) {
        return describeTopics(Set.of(topics));
    }

    public Map<String, Optional<TopicDescription>> describeTopics(Set<String> topics) {
        return Objects.ask(this::createAdminClient, admin -> {
            Map<String, Optional<TopicDescription>> found = new HashMap<>();
            for (var each : admin.describeTopics(topics).topicNameValues().entrySet()) {
                try {
                    found.put(each.getKey(), Optional.of(each.getValue().get()));
                } catch (ExecutionException e) {
                    if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) throw e;
                    found.put(each.getKey(), Optional.empty());
                }
            }
            return found;
        });
    }

    public AlterConfigsResult incrementalAlterConfigs(Map<ConfigResource, Collection<AlterConfigOp>> changes) {
        return Objects.ask(this::createAdminClient, admin -> {
            AlterConfigsResult result = admin.incrementalAlterConfigs(changes);
            result.all().get();
            return result;
        });
    }

    public void produce(String topic, String value) {
        produce(topic, null, null, value);
    }

    public void produce(String topic, String key, String value) {
        produce(topic, null, key, value);
    }

    public void produce(String topic, Integer partition, String key, String value) {
        produce(producer, topic, partition, key, value);
    }

    public KafkaProducer<byte[], byte[]> createProducer(Map<String, Object> settings) {
        return new KafkaProducer<>(with(settings), new ByteArraySerializer(), new ByteArraySerializer());
    }

    public ConsumerRecords<byte[], byte[]> consume(int count, long patienceMs, String... topics) {
        return consume(count, patienceMs, Map.of(), topics);
    }

    public ConsumerRecords<byte[], byte[]> consume(int count, long patienceMs, Map<String, Object> settings, String... topics) {
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> found = new HashMap<>();
        int have = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = createConsumerAndSubscribeTo(settings, topics)) {
            for (long end = System.currentTimeMillis() + patienceMs; System.currentTimeMillis() < end; ) {
                have += take(found, consumer);
                if (have >= count) return new ConsumerRecords<>(found, Map.of());
            }
        }
        throw new RuntimeException(have + " records instead of " + count + " came from " + Arrays.toString(topics));
    }

    private static int take(Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> found, KafkaConsumer<byte[], byte[]> consumer) {
        ConsumerRecords<byte[], byte[]> some = consumer.poll(Duration.ofMillis(500));
        some.partitions().forEach(each -> found.computeIfAbsent(each, no -> new ArrayList<>()).addAll(some.records(each)));
        return some.count();
    }

    public ConsumerRecords<byte[], byte[]> consumeAll(long patienceMs, String... topics) throws TimeoutException, InterruptedException, ExecutionException {
        return consumeAll(patienceMs, Map.of(), Map.of(), topics);
    }

    /** Everything that is in the topics now. */
    public ConsumerRecords<byte[], byte[]> consumeAll(long patienceMs, Map<String, Object> ofConsumer, Map<String, Object> ofAdmin, String... topics)
            throws TimeoutException, InterruptedException, ExecutionException {
        Map<TopicPartition, Long> ends = new HashMap<>();
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> found = new HashMap<>();
        Set<TopicPartition> all = new HashSet<>();
        try (Admin admin = createAdminClient(ofAdmin); KafkaConsumer<byte[], byte[]> consumer = createConsumer(ofConsumer)) {
            for (TopicDescription topic : admin.describeTopics(List.of(topics)).allTopicNames().get(patienceMs, TimeUnit.MILLISECONDS).values())
                topic.partitions().forEach(each -> all.add(new TopicPartition(topic.name(), each.partition())));
            for (TopicPartition each : all) ends.put(each, end(admin, each));
            consumer.assign(all);
            for (long end = System.currentTimeMillis() + patienceMs; System.currentTimeMillis() < end; take(found, consumer)) {
                ends.entrySet().removeIf(each -> consumer.position(each.getKey()) >= each.getValue());
                if (ends.isEmpty()) return new ConsumerRecords<>(found, Map.of());
            }
        }
        throw new TimeoutException("not read to the end: " + ends);
    }

    public long endOffset(TopicPartition partition) throws TimeoutException, InterruptedException, ExecutionException {
        try (Admin admin = createAdminClient()) {
            return end(admin, partition);
        }
    }

    private static long end(Admin admin, TopicPartition partition) throws TimeoutException, InterruptedException, ExecutionException {
        return admin.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get(30, TimeUnit.SECONDS).offset();
    }
}
