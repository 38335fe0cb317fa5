import java.time.Duration;
import java.util.*;
import java.util.concurrent.Semaphore;

import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.WakeupException;

/**
 * Java's client on a cluster whose brokers die: a producer with acks=all and a group of two members.
 * Arguments and what it prints: see cluster_accounts.py.
 */
public class ClusterClient {
    static volatile boolean sending = true, reading = true;
    static String servers, topic, group;

    static synchronized void say(String line) {
        System.out.println(line);
    }

    static Properties settings() {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        for (String kind : new String[] {"key", "value"}) {
            p.put(kind + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            p.put(kind + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        p.put("acks", "all");
        p.put("enable.idempotence", "true");
        p.put("group.id", group);
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("session.timeout.ms", "6000");
        p.put("heartbeat.interval.ms", "500");
        p.put("metadata.max.age.ms", "5000");
        return p;
    }

    static void produce() {
        Semaphore window = new Semaphore(100);
        int number = 0;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings())) {
            for (; sending; number++) {
                String value = Integer.toString(number);
                window.acquire();
                producer.send(new ProducerRecord<>(topic, value, value), (found, error) -> {
                    window.release();
                    say(error == null ? "a " + value : "e " + value + " " + error);
                });
                Thread.sleep(5);
            }
            producer.flush();
        } catch (InterruptedException stopped) {
            throw new RuntimeException(stopped);
        }
        say("sent " + number);
    }

    static void consume() {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings())) {
            consumer.subscribe(List.of(topic));
            while (reading) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200)))
                    say("r " + each.value());
                try {
                    consumer.commitSync(Duration.ofSeconds(5));
                } catch (CommitFailedException | org.apache.kafka.common.errors.RetriableException again) {
                    // The records come again, to this member or to the other one.
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        topic = group = args[1];
        Thread producer = new Thread(ClusterClient::produce);
        List<Thread> members = List.of(new Thread(ClusterClient::consume), new Thread(ClusterClient::consume));
        producer.start();
        for (Thread each : members) each.start();
        Scanner orders = new Scanner(System.in);
        orders.nextLine();
        sending = false;
        producer.join();
        if (orders.hasNextLine()) orders.nextLine();
        reading = false;
        for (Thread each : members) each.join();
        System.exit(0);
    }
}
