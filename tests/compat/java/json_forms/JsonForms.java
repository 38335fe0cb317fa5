import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Completes lines as `penstock wire` does, with Kafka's own serialisers and JSON converters. A line has name,
 * version and hex, and gets json; or it has json instead, and gets hex. "absent" marks a message that this
 * release does not have.
 */
public final class JsonForms {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
        "org.apache.kafka.raft.generated.",
    };

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        for (String text = lines.readLine(); text != null; text = lines.readLine()) {
            ObjectNode line = (ObjectNode) mapper.readTree(text);
            try {
                complete(line);
            } catch (java.lang.reflect.InvocationTargetException error) {
                line.put("error", String.valueOf(error.getCause()));
            } catch (Exception error) {
                line.put("error", String.valueOf(error));
            }
            out.println(mapper.writeValueAsString(line));
        }
        out.flush();
    }

    private static void complete(ObjectNode line) throws Exception {
        String name = line.get("name").asText();
        short version = (short) line.get("version").asInt();
        Class<?> type = find(name);
        if (type == null || !covers(type, version)) {
            line.put("absent", true);
            return;
        }
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        if (line.has("hex")) {
            ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(line.get("hex").asText()));
            Object message = type.getConstructor(Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(bytes), version);
            line.set("json", (JsonNode) converter.getMethod("write", type, short.class).invoke(null, message, version));
        } else {
            Object message = converter.getMethod("read", JsonNode.class, short.class)
                .invoke(null, line.get("json"), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(((Message) message).size(cache, version));
            ((Message) message).write(new ByteBufferAccessor(bytes), cache, version);
            line.put("hex", HexFormat.of().formatHex(bytes.array()));
        }
    }

    private static boolean covers(Class<?> type, short version) throws Exception {
        Message plain = (Message) type.getConstructor().newInstance();
        return plain.lowestSupportedVersion() <= version && version <= plain.highestSupportedVersion();
    }

    private static Class<?> find(String name) {
        for (String prefix : PACKAGES) {
            for (String suffix : new String[] {"Data", ""}) {
                try {
                    return Class.forName(prefix + name + suffix);
                } catch (ClassNotFoundException error) {
                    continue;
                }
            }
        }
        return null;
    }
}
