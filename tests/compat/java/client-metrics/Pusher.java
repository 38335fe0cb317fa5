import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Pusher SERVERS TOPIC COUNT: a producer and a consumer in a group that push metrics; prints their instance ids. */
public final class Pusher {
    public static void main(String[] args) {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        Map<String, Object> producing = Map.of(
                "bootstrap.servers", args[0], "client.id", "java-producer",
                "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class);
        Map<String, Object> consuming = Map.of(
                "bootstrap.servers", args[0], "client.id", "java-consumer", "group.id", "java-group",
                "auto.offset.reset", "earliest",
                "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(producing);
                KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consuming)) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(topic, "k", "v" + i));
            }
            producer.flush();
            consumer.subscribe(List.of(topic));
            int seen = 0;
            while (seen < count) {
                seen += consumer.poll(Duration.ofMillis(100)).count();
            }
            System.out.println("producer\t" + producer.clientInstanceId(Duration.ofSeconds(20)));
            System.out.println("consumer\t" + consumer.clientInstanceId(Duration.ofSeconds(20)));
            long end = System.nanoTime() + 2_000_000_000L; // so that both push after the last record
            while (System.nanoTime() < end) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }
}
