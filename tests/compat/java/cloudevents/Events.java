import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.core.provider.EventFormatProvider;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.kafka.KafkaMessageFactory;
import io.cloudevents.types.Time;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What the Java SDK makes of the records of a topic, and the records it makes of events in JSON. */
class Events {
    static final ObjectMapper MAPPER =
        new ObjectMapper(new JsonFactory().enable(JsonWriteFeature.ESCAPE_NON_ASCII.mappedFeature()));

    public static void main(String[] args) throws Exception {
        if (args[0].equals("read")) {
            read(args[1], args[2], Integer.parseInt(args[3]));
        } else {
            write(args[1], args[2], args[3]);
        }
    }

    static void read(String servers, String topic, int count) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", servers);
        var bytes = new ByteArrayDeserializer();
        int seen = 0;
        try (var consumer = new KafkaConsumer<byte[], byte[]>(config, bytes, bytes)) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            while (seen < count) {
                for (var record : consumer.poll(Duration.ofSeconds(5))) {
                    System.out.println(MAPPER.writeValueAsString(described(record)));
                    seen++;
                }
            }
        }
    }

    static ObjectNode described(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode node = MAPPER.createObjectNode();
        try {
            CloudEvent event = KafkaMessageFactory.createReader(record).toEvent();
            ObjectNode attributes = node.putObject("attributes");
            for (String name : event.getAttributeNames()) {
                put(attributes, name, event.getAttribute(name));
            }
            for (String name : event.getExtensionNames()) {
                put(attributes, name, event.getExtension(name));
            }
            byte[] data = event.getData() == null ? null : event.getData().toBytes();
            node.put("data", data == null ? null : Base64.getEncoder().encodeToString(data));
        } catch (RuntimeException error) {
            node.removeAll();
            node.put("error", error.getClass().getSimpleName() + ": " + error.getMessage());
        }
        return node;
    }

    static void put(ObjectNode attributes, String name, Object value) {
        if (value instanceof OffsetDateTime) {
            attributes.put(name, Time.writeTime((OffsetDateTime) value));
        } else if (value instanceof byte[]) {
            attributes.put(name, Base64.getEncoder().encodeToString((byte[]) value));
        } else if (value != null) {
            attributes.put(name, value.toString());
        }
    }

    /** `mode` is binary, structured (JSON), or the content type of another format that is on the class path. */
    static void write(String servers, String topic, String mode) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "linger.ms", 5);
        var bytes = new ByteArraySerializer();
        var format = EventFormatProvider.getInstance().resolveFormat(JsonFormat.CONTENT_TYPE);
        var other = EventFormatProvider.getInstance().resolveFormat(mode);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (var producer = new KafkaProducer<byte[], byte[]>(config, bytes, bytes)) {
            String line;
            int number = 0;
            while ((line = lines.readLine()) != null) {
                byte[] key = ("key-" + number++).getBytes(StandardCharsets.UTF_8);
                try {
                    CloudEvent event = format.deserialize(line.getBytes(StandardCharsets.UTF_8));
                    var writer = KafkaMessageFactory.<byte[]>createWriter(topic, 0, key);
                    ProducerRecord<byte[], byte[]> record =
                        mode.equals("binary")
                            ? writer.writeBinary(event)
                            : writer.writeStructured(event, other == null ? format : other);
                    producer.send(record).get();
                    System.out.println("sent");
                } catch (RuntimeException error) {
                    System.out.println(error.getClass().getSimpleName() + ": " + error.getMessage());
                }
            }
        }
    }
}
