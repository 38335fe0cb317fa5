import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * An idempotent producer, a transactional one and a consumer in a group, which stay connected to one address until a
 * line comes on standard input. Prints "acked N", "committed N" and "read N" as they come, and what failed. Arguments:
 * the address, two topics, and for how many milliseconds deliveries and transactions wait for a broker.
 */
public class Connected {
    static final AtomicBoolean done = new AtomicBoolean();
    static final Lines lines = new Lines();

    /** Prints at once, for a reader that waits for progress. */
    static class Lines {
        synchronized void add(String line) {
            System.out.println(line);
            System.out.flush();
        }
    }

    static int waitsMs;

    static Map<String, Object> settings(String servers) {
        return new java.util.HashMap<>(Map.of(
            "bootstrap.servers", servers, "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class,
            "delivery.timeout.ms", waitsMs, "reconnect.backoff.max.ms", 200, "retry.backoff.max.ms", 200));
    }

    static void idempotent(String servers, String topic) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings(servers))) {
            for (int number = 0; !done.get(); number++) {
                String value = "java " + number;
                producer.send(new ProducerRecord<>(topic, number % 2, null, value), (metadata, error) ->
                    lines.add(error == null ? "acked " + value : "failed " + value + " " + error));
                Thread.sleep(5);
            }
        }
    }

    static void transactional(String servers, String topic) throws Exception {
        Map<String, Object> settings = settings(servers);
        settings.put("transactional.id", "java");
        settings.put("transaction.timeout.ms", waitsMs);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            producer.initTransactions();
            for (int number = 0; !done.get(); number++) {
                try {
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(topic, 0, null, "java-tx " + number));
                    producer.send(new ProducerRecord<>(topic, 1, null, "java-tx " + number));
                    while (true) {
                        try {
                            producer.commitTransaction();
                            break;
                        } catch (org.apache.kafka.common.errors.TimeoutException again) {
                            continue;
                        }
                    }
                    lines.add("committed " + number);
                } catch (ProducerFencedException | OutOfOrderSequenceException | AuthorizationException fatal) {
                    lines.add("failed transaction " + number + " " + fatal);
                    return;
                } catch (KafkaException abortable) {
                    lines.add("aborted " + number + " " + abortable);
                    producer.abortTransaction();
                }
                Thread.sleep(20);
            }
        }
    }

    static void group(String servers, String topic) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", servers, "key.deserializer", StringDeserializer.class,
            "value.deserializer", StringDeserializer.class, "group.id", "java", "auto.offset.reset", "earliest",
            "enable.auto.commit", false, "reconnect.backoff.max.ms", 200, "retry.backoff.max.ms", 200);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (!done.get()) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100)))
                    lines.add("read " + record.partition() + " " + record.offset() + " " + record.value());
                try {
                    consumer.commitSync(Duration.ofSeconds(60));
                } catch (org.apache.kafka.clients.consumer.CommitFailedException | org.apache.kafka.common.errors.RebalanceInProgressException again) {
                    lines.add("rejoins " + again);
                }
            }
        }
    }

    interface Work {
        void run() throws Exception;
    }

    static Thread start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable error) {
                lines.add("failed " + error);
            }
        });
        thread.start();
        return thread;
    }

    public static void main(String[] args) throws Exception {
        waitsMs = Integer.parseInt(args[3]);
        List<Thread> threads = List.of(
            start(() -> idempotent(args[0], args[1])), start(() -> transactional(args[0], args[2])),
            start(() -> group(args[0], args[1])));
        System.in.read();
        done.set(true);
        for (Thread thread : threads) thread.join();
    }
}
