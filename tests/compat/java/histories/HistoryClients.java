import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's clients for histories: prints its port, and has a producer and a consumer for each connection. A line asks, its words behind
 * tabs; a line answers, `ok` and what was found, or `error` and why. Ends with its standard input.
 */
public class HistoryClients {
    private static final Duration SOON = Duration.ofSeconds(1);
    private final Socket socket;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;

    private HistoryClients(Socket socket) {
        this.socket = socket;
    }

    public static void main(String[] words) throws Exception {
        ServerSocket listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        System.out.println(listening.getLocalPort());
        System.out.flush();
        Thread accepting = new Thread(() -> {
            try {
                while (true) new Thread(new HistoryClients(listening.accept())::serve).start();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        });
        accepting.setDaemon(true);
        accepting.start();
        while (System.in.read() != -1) { }
        Runtime.getRuntime().halt(0);
    }

    private void serve() {
        try (socket;
             var lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
             var answers = new PrintWriter(socket.getOutputStream(), false, StandardCharsets.UTF_8)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String answer;
                try {
                    answer = "ok" + answer(line.split("\t", -1));
                } catch (Throwable e) {
                    answer = "error\t" + e.toString().replaceAll("\\s+", " ");
                }
                answers.print(answer + "\n");
                answers.flush();
            }
        } catch (Exception e) {
            // its client has gone
        } finally {
            close();
        }
    }

    private String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "open" -> open(words[1], words[2], words[3], words[4]);
            case "begin" -> {
                sent.clear();
                producer.beginTransaction();
            }
            case "send" -> {
                sent.add(producer.send(new ProducerRecord<>(words[1], Integer.parseInt(words[2]), null, words[3])));
                return "\t" + (sent.size() - 1);
            }
            case "wait" -> {
                return "\t" + sent.get(Integer.parseInt(words[1])).get(30, TimeUnit.SECONDS).offset();
            }
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "seek" -> seek(words);
            case "poll" -> {
                StringBuilder found = new StringBuilder();
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(Long.parseLong(words[1])))) {
                    found.append("\t").append(each.topic()).append(" ").append(each.partition()).append(" ").append(each.offset()).append(" ").append(each.value());
                }
                return found.toString();
            }
            default -> close();
        }
        return "";
    }

    private void open(String servers, String transactionalId, String transactionMs, String deliveryMs) {
        Map<String, Object> common = Map.of("bootstrap.servers", servers, "retry.backoff.ms", "20", "reconnect.backoff.ms", "20", "reconnect.backoff.max.ms", "500");
        Map<String, Object> mine = new HashMap<>(common);
        mine.putAll(Map.of("linger.ms", "1", "request.timeout.ms", "3000", "delivery.timeout.ms", deliveryMs, "max.block.ms", "20000"));
        if (!transactionalId.isEmpty()) mine.putAll(Map.of("transactional.id", transactionalId, "transaction.timeout.ms", transactionMs));
        Map<String, Object> theirs = new HashMap<>(common);
        theirs.putAll(Map.of("isolation.level", "read_committed", "enable.auto.commit", "false", "auto.offset.reset", "earliest"));
        consumer = new KafkaConsumer<>(theirs, new StringDeserializer(), new StringDeserializer());
        producer = new KafkaProducer<>(mine, new StringSerializer(), new StringSerializer());
        if (!transactionalId.isEmpty()) producer.initTransactions();
    }

    private void seek(String[] words) {
        Map<TopicPartition, Long> places = new HashMap<>();
        for (int place = 2; place < words.length; place++) {
            String[] both = words[place].split(" ");
            places.put(new TopicPartition(words[1], Integer.parseInt(both[0])), Long.parseLong(both[1]));
        }
        consumer.assign(places.keySet());
        places.forEach(consumer::seek);
    }

    private void close() {
        if (producer != null) producer.close(SOON);
        if (consumer != null) consumer.close();
        producer = null;
        consumer = null;
    }
}
