import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/**
 * Counts the words of `lines` into `counts`, the lines of each key in ten seconds into `windows`, and puts the names
 * of a global table before lines, into `named`. A word on standard input is answered from the store: `get WORD COUNT`.
 * Prints states and errors; ends with its input. Arguments: bootstrap servers, application id, directory, settings;
 * one without a value is not set.
 */
public class WordCount {
    static <S extends org.apache.kafka.streams.processor.StateStore> Materialized<String, Long, S> stored(String name) {
        return Materialized.<String, Long, S>as(name).withKeySerde(Serdes.String()).withValueSerde(Serdes.Long());
    }

    static void build(StreamsBuilder builder) {
        Produced<String, Long> numbers = Produced.with(Serdes.String(), Serdes.Long());
        KStream<String, String> lines = builder.stream("lines");
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.as("words"))
            .count(WordCount.<KeyValueStore<Bytes, byte[]>>stored("counts"))
            .toStream().to("counts", numbers);
        lines.groupByKey()
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
            .count(WordCount.<WindowStore<Bytes, byte[]>>stored("windows"))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream((key, count) -> key.key() + "@" + key.window().start()).to("windows", numbers);
        GlobalKTable<String, String> names = builder.globalTable("names");
        lines.join(names, (key, line) -> key, (line, name) -> name + ": " + line).to("named");
    }

    static Long count(KafkaStreams streams, String word) {
        try {
            return streams.store(StoreQueryParameters.fromNameAndType(
                "counts", QueryableStoreTypes.<String, Long>keyValueStore())).get(word);
        } catch (InvalidStateStoreException rebalancing) {
            return -1L;
        }
    }

    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[2]);
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        settings.put("dsl.store.suppliers.class", BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class.getName());
        settings.put("commit.interval.ms", "100");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "500");
        settings.put("internal.leave.group.on.close", "true");
        for (int i = 3; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            if (setting[1].isEmpty()) settings.remove(setting[0]);
            else settings.put(setting[0], setting[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        build(builder);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> {
            System.out.println("state " + now);
            if (now == KafkaStreams.State.ERROR) Runtime.getRuntime().halt(1);
        });
        streams.setUncaughtExceptionHandler(error -> {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) System.out.println("error " + cause);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String word; (word = input.readLine()) != null; ) System.out.println("get " + word + " " + count(streams, word));
        streams.close(Duration.ofSeconds(30));
    }
}
