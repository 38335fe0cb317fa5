import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Reads lines "records transactions"; answers each with the nanoseconds of every transaction. */
public class Transactions {
    public static void main(String[] args) throws Exception {
        Map<Integer, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
        byte[] value = new byte[100];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            int size = Integer.parseInt(words[0]);
            KafkaProducer<byte[], byte[]> producer = producers.get(size);
            if (producer == null) {
                Map<String, Object> settings = new HashMap<>();
                settings.put("bootstrap.servers", args[0]);
                settings.put("transactional.id", args[2] + "-" + size);
                if (size == 1) settings.put("linger.ms", 0);
                producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                producer.initTransactions();
                producers.put(size, producer);
            }
            StringBuilder answer = new StringBuilder();
            for (int number = Integer.parseInt(words[1]); number > 0; number--) {
                long begin = System.nanoTime();
                producer.beginTransaction();
                for (int index = 0; index < size; index++) {
                    producer.send(new ProducerRecord<>(args[1], value));
                }
                producer.commitTransaction();
                answer.append(System.nanoTime() - begin).append(' ');
            }
            System.out.println(answer);
        }
    }
}
