import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A member of a share group that accepts, releases, rejects and renews by what a record says; one line for each. */
public class ShareMember {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[1]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("share.acquire.mode", args[3]);
        settings.put("max.poll.records", "7");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        int wanted = Integer.parseInt(args[4]), done = 0;
        Set<Long> renewed = new HashSet<>();
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(args[2]));
            long deadline = System.currentTimeMillis() + 60_000;
            while (done < wanted && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
                    int count = record.deliveryCount().get();
                    AcknowledgeType type = AcknowledgeType.ACCEPT;
                    if (record.value().startsWith("release") && count == 1) {
                        type = AcknowledgeType.RELEASE;
                    } else if (record.value().startsWith("reject")) {
                        type = AcknowledgeType.REJECT;
                    } else if (record.value().startsWith("renew") && renewed.add(record.offset())) {
                        type = AcknowledgeType.RENEW;
                    }
                    consumer.acknowledge(record, type);
                    System.out.println(record.value() + " " + count + " " + type);
                    if (type == AcknowledgeType.ACCEPT || type == AcknowledgeType.REJECT) {
                        done++;
                    }
                }
                for (Optional<KafkaException> failure : consumer.commitSync().values()) {
                    failure.ifPresent(found -> System.out.println("failed " + found));
                }
            }
        }
    }
}
