package verdicts;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** What the clusters of tests of Kafka Streams and of Connect have in common. */
public abstract class Embedded {
    protected final Host host;

    protected Embedded(int brokers, Map<String, String> usual, Properties settings, Map<Integer, Map<String, String>> own) {
        Map<String, String> all = new TreeMap<>(usual);
        settings.forEach((name, value) -> all.put(name.toString(), Host.text(value)));
        host = new Host(brokers, 1, all, own, "EXTERNAL", "PLAINTEXT");
    }

    public void start() {
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

    /** Settings that all clients begin with. */
    public Map<String, String> clientDefaultConfig() {
        return new HashMap<>(Map.of("bootstrap.servers", bootstrapServers()));
    }

    public void createTopic(String topic) {
        createTopic(topic, 1);
    }

    public void createTopic(String topic, int partitions) {
        createTopic(topic, partitions, 1, Map.of());
    }

    public abstract void createTopic(String topic, int partitions, int replicas, Map<String, String> settings);

    public void deleteTopic(String topic) {
        delete(List.of(topic));
    }

    protected void delete(Collection<String> topics) {
        Objects.ask(this::createAdminClient, admin -> admin.deleteTopics(topics).all().get());
    }

    protected static NewTopic topic(String topic, int partitions, int replicas, Map<String, String> settings) {
        return new NewTopic(topic, partitions, (short) replicas).configs(settings);
    }

    public Admin createAdminClient() {
        return Admin.create(with(Map.of()));
    }

    public void produce(Map<String, Object> settings, String topic, Integer partition, String key, String value) {
        try (var producer = new KafkaProducer<>(with(settings), new ByteArraySerializer(), new ByteArraySerializer())) {
            produce(producer, topic, partition, key, value);
        }
    }

    protected static void produce(KafkaProducer<byte[], byte[]> producer, String topic, Integer partition, String key, String value) {
        try {
            producer.send(new ProducerRecord<>(topic, partition, bytes(key), bytes(value))).get(2, TimeUnit.MINUTES);
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    public KafkaConsumer<byte[], byte[]> createConsumer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(Map.of("group.id", UUID.randomUUID().toString(), "auto.offset.reset", "earliest", "enable.auto.commit", "false"));
        all.putAll(with(settings));
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public KafkaConsumer<byte[], byte[]> createConsumerAndSubscribeTo(Map<String, Object> settings, String... topics) {
        return createConsumerAndSubscribeTo(settings, null, topics);
    }

    public KafkaConsumer<byte[], byte[]> createConsumerAndSubscribeTo(Map<String, Object> settings, ConsumerRebalanceListener listener, String... topics) {
        KafkaConsumer<byte[], byte[]> consumer = createConsumer(settings);
        if (listener == null) consumer.subscribe(Arrays.asList(topics));
        else consumer.subscribe(Arrays.asList(topics), listener);
        return consumer;
    }

    /** The settings of a client of this cluster; null counts as no further settings. */
    protected Map<String, Object> with(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(clientDefaultConfig());
        if (settings != null) all.putAll(settings);
        return all;
    }
}
