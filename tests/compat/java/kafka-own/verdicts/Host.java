package verdicts;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.types.Password;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.io.OutputStreamWriter;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

import org.opentest4j.TestAbortedException;

/** A cluster of a test. Its brokers live in the Python process that started this one: a line of JSON asks, a line answers. */
public final class Host {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static BufferedReader answers;
    private static Writer questions;
    private static String missing;

    private static int hosts;

    private final int number;
    private final Map<String, Object> wanted = new LinkedHashMap<>();
    private final Set<Integer> down = new TreeSet<>();
    private final int size;
    private int first;
    private final String listener;
    private final Map<String, String> settings;
    private List<Integer> ports = List.of();
    private JsonNode listeners;
    private boolean runs;

    public Host(int size, int disks, Map<String, String> settings, Map<Integer, Map<String, String>> own, String listener, String protocol) {
        synchronized (Host.class) {
            number = hosts++;
        }
        this.size = size;
        this.listener = listener;
        this.settings = new TreeMap<>();
        settings.forEach((name, value) -> this.settings.put(name, value == null ? "" : value));
        wanted.putAll(Map.of("ask", "start", "cluster", number, "brokers", size, "disks", disks, "settings", this.settings, "own", own, "listener", listener, "protocol", protocol));
    }

    /** Brokers with the listeners and settings of their own, by their ids. */
    public Host(Map<Integer, Map<String, String>> own) {
        this(own.size(), 1, Map.of(), own, "VERDICTS", "PLAINTEXT");
        first = new TreeSet<>(own.keySet()).first();
        wanted.put("whole", true);
        wanted.put("login", System.getProperty("java.security.auth.login.config", "")); // as brokers in this JVM would read it
    }

    /** The text of a setting that a test has as an object. */
    public static String text(Object value) {
        if (value instanceof List<?> all) return String.join(",", all.stream().map(String::valueOf).toList());
        return value instanceof Password secret ? secret.value() : "" + value;
    }

    /** Ends the test as not judged: it needs what only brokers in its own JVM have. */
    public static TestAbortedException lacks(String what) {
        if (missing == null) missing = what;
        return new TestAbortedException(what);
    }

    static String takeMissing() {
        String found = missing;
        missing = null;
        return found;
    }

    /** Stops the brokers of all tests. */
    static void stopAll() {
        ask(Map.of("ask", "stop all"));
    }

    /** Starts a Kerberos server without principals; returns the file by which it is found. */
    public static String startKerberos() {
        return ask(Map.of("ask", "start kerberos")).get("file").asText();
    }

    public static void stopKerberos() {
        ask(Map.of("ask", "stop kerberos"));
    }

    public static void addToKerberos(File keytab, List<String> principals) {
        ask(Map.of("ask", "add to kerberos", "keytab", keytab.getPath(), "principals", principals));
    }

    public void start() {
        start("");
    }

    /** Starts the brokers at a `metadata.version`; an empty one is the newest. */
    public void start(String metadata) {
        wanted.put("metadata", metadata);
        List<Integer> found = new ArrayList<>();
        JsonNode answer = ask(wanted);
        answer.get("ports").forEach(each -> found.add(each.asInt()));
        ports = found;
        listeners = answer.path("listeners");
        runs = true;
    }

    public void stop() {
        if (runs) ask(Map.of("ask", "stop", "cluster", number));
        runs = false;
    }

    public void stopBroker(int id) {
        ask(Map.of("ask", "stop broker", "cluster", number, "id", id));
        down.add(id);
    }

    public void startBroker(int id) {
        ask(Map.of("ask", "start broker", "cluster", number, "id", id));
        down.remove(id);
    }

    /** What a broker has of a partition: offsets `start`, `end`, `high`, whether it `leads`, and the `epoch`. */
    JsonNode partition(int id, TopicPartition at) {
        return ask(Map.of("ask", "partition", "cluster", number, "id", id, "topic", at.topic(), "index", at.partition()));
    }

    /** The settings of a broker that clients have changed. */
    Map<String, String> changes(int id) {
        Map<String, String> found = new TreeMap<>();
        ask(Map.of("ask", "changes", "cluster", number, "id", id)).properties().forEach(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    /** How often something has happened at a broker, by the name of Kafka's metric. */
    Map<String, Double> counts(int id) {
        Map<String, Double> found = new TreeMap<>();
        ask(Map.of("ask", "counts", "cluster", number, "id", id)).properties().forEach(each -> found.put(each.getKey(), each.getValue().asDouble()));
        return found;
    }

    /** How many delegation tokens a broker knows. */
    int tokens(int id) {
        return ask(Map.of("ask", "tokens", "cluster", number, "id", id)).path("tokens").asInt();
    }

    public Set<Integer> ids(boolean alive) {
        Set<Integer> found = new TreeSet<>();
        for (int id = first; id < first + size; id++) if (!alive || !down.contains(id)) found.add(id);
        return found;
    }

    public String servers() {
        return String.join(",", ports.stream().map(each -> "localhost:" + each).toList());
    }

    public List<Integer> ports() {
        return ports;
    }

    /** The port of a listener of a broker; those of most tests have one. */
    public int port(int id, String name) {
        return listeners.has(id - first) ? listeners.get(id - first).get(name).asInt() : ports.get(id - first);
    }

    public String listener() {
        return listener;
    }

    public Map<String, String> settings() {
        return settings;
    }

    private static synchronized JsonNode ask(Map<String, Object> question) {
        try {
            if (answers == null) {
                Socket socket = new Socket("127.0.0.1", Integer.getInteger("verdicts.port"));
                answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
                questions = new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8);
            }
            questions.write(JSON.writeValueAsString(question) + "\n");
            questions.flush();
            String line = answers.readLine();
            if (line == null) throw new IllegalStateException("the process with the brokers has ended");
            JsonNode answer = JSON.readTree(line);
            if (answer.has("lacks")) throw lacks(answer.get("lacks").asText());
            if (answer.has("error")) throw new IllegalStateException("Penstock: " + answer.get("error").asText());
            return answer;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
