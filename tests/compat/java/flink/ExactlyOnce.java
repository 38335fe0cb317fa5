import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job of Apache Flink that copies topic "in" to topic "out" exactly once, and fails several times on the way.
 *
 * <p>After a failure Flink starts the job again from its last checkpoint: it commits the transactions of that
 * checkpoint by the producer ids and epochs which it has stored, and aborts those that came later.
 *
 * <p>Arguments: bootstrap servers, a directory for checkpoints, the records between two failures.
 */
public class ExactlyOnce {
    private static final AtomicInteger SEEN = new AtomicInteger();
    private static final AtomicInteger FAILURES = new AtomicInteger();

    private static String pass(String value, int failEach) throws Exception {
        int number = SEEN.incrementAndGet();
        if (number % failEach == 0 && FAILURES.get() < 4) {
            throw new RuntimeException("failure " + FAILURES.incrementAndGet());
        }
        if (number % 50 == 0) {
            Thread.sleep(20); // several checkpoints fall into the job
        }
        return value;
    }

    public static void main(String[] args) throws Exception {
        String servers = args[0];
        int failEach = Integer.parseInt(args[2]);
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "300ms");
        settings.setString("execution.checkpointing.dir", args[1]);
        settings.setString("state.checkpoints.dir", args[1]);
        settings.setString("restart-strategy.type", "fixed-delay");
        settings.setString("restart-strategy.fixed-delay.attempts", "10");
        settings.setString("restart-strategy.fixed-delay.delay", "100ms");
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
        environment.setParallelism(2);
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(servers)
                .setTopics("in")
                .setGroupId("flink")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setBounded(OffsetsInitializer.latest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        KafkaSink<String> sink = KafkaSink.<String>builder()
                .setBootstrapServers(servers)
                .setRecordSerializer(KafkaRecordSerializationSchema.builder()
                        .setTopic("out")
                        .setValueSerializationSchema(new SimpleStringSchema())
                        .build())
                .setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setTransactionalIdPrefix("flink")
                .setProperty("transaction.timeout.ms", "60000")
                .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "in")
                .map(value -> pass(value, failEach))
                .sinkTo(sink);
        environment.execute("copy");
        System.out.println("failures " + FAILURES.get());
    }
}
