import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads and writes messages with the classes that Apache Kafka generates, found on the class path by reflection.
 *
 * Without arguments prints the messages there are: name, lowest version, highest version. With any argument answers
 * the lines of standard input, each with one line:
 *
 *   read NAME VERSION HEX      the bytes are read; what was read is written again, turned into JSON, and what the
 *                              JSON says is written: HEX, HEX, JSON, separated by tabs
 *   json NAME VERSION JSON     a message is made from JSON; the answer is the same
 *   plain NAME VERSION         a message of which nothing was set is written; the answer is the same
 *
 * Where something cannot be done, a "!" and the reason stand in its place. Kafka's JSON has no place for records.
 */
public class Messages {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, "UTF-8");
        Map<String, Class<?>> known = find();
        if (args.length == 0) {
            for (Map.Entry<String, Class<?>> each : known.entrySet()) {
                Message plain = (Message) each.getValue().getDeclaredConstructor().newInstance();
                out.println(each.getKey() + " " + plain.lowestSupportedVersion() + " " + plain.highestSupportedVersion());
            }
        } else {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String[] words = line.split(" ", 4);
                Class<?> type = known.get(words[1]);
                short version = Short.parseShort(words[2]);
                try {
                    out.println(answer(type, version, made(words[0], type, version, words.length > 3 ? words[3] : "")));
                } catch (Throwable problem) {
                    out.println(reason(problem));
                }
            }
        }
        out.flush();
    }

    /** The classes that have a JSON converter beside them, by the names that definitions have. */
    private static Map<String, Class<?>> find() throws Exception {
        Map<String, Class<?>> found = new TreeMap<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!new File(path).getName().startsWith("kafka")) continue;
            try (JarFile jar = new JarFile(path)) {
                jar.stream().map(each -> each.getName()).filter(each -> each.endsWith("JsonConverter.class"))
                    .filter(each -> !each.contains("$")).forEach(entry -> {
                        String stem = entry.substring(0, entry.length() - "JsonConverter.class".length());
                        String name = stem.substring(stem.lastIndexOf('/') + 1);
                        try {
                            Class<?> type = Class.forName(stem.replace('/', '.'));
                            if (Message.class.isAssignableFrom(type)) {
                                found.put(name.replaceFirst("(Request|Response|Header)Data$", "$1"), type);
                            }
                        } catch (ClassNotFoundException | NoClassDefFoundError missing) {
                            // A converter of something else.
                        }
                    });
            }
        }
        return found;
    }

    private static Message made(String verb, Class<?> type, short version, String text) throws Exception {
        if (verb.equals("plain")) return (Message) type.getDeclaredConstructor().newInstance();
        if (verb.equals("json")) return fromJson(type, version, JSON.readTree(text));
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(text));
        Message message =
            (Message) type.getConstructor(Readable.class, short.class).newInstance(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) throw new IllegalArgumentException(buffer.remaining() + " bytes are left");
        return message;
    }

    private static String answer(Class<?> type, short version, Message message) {
        String json;
        String again;
        try {
            JsonNode tree = (JsonNode) converter(type).getMethod("write", type, short.class).invoke(null, message, version);
            json = tree.toString();
            again = written(fromJson(type, version, tree), version);
        } catch (Throwable problem) {
            json = again = reason(problem);
        }
        return written(message, version) + "\t" + again + "\t" + json;
    }

    private static Message fromJson(Class<?> type, short version, JsonNode tree) throws Exception {
        return (Message) converter(type).getMethod("read", JsonNode.class, short.class).invoke(null, tree, version);
    }

    private static Class<?> converter(Class<?> type) throws ClassNotFoundException {
        return Class.forName(type.getName() + "JsonConverter");
    }

    private static String written(Message message, short version) {
        try {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return HEX.formatHex(buffer.array(), 0, buffer.position());
        } catch (Throwable problem) {
            return reason(problem);
        }
    }

    private static String reason(Throwable problem) {
        Throwable cause = problem instanceof InvocationTargetException ? problem.getCause() : problem;
        return ("! " + cause).replaceAll("\\s+", " ");
    }
}
