import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Prints the settings that a release of Apache Kafka defines: scope, name, type, default, limits, whether hidden. */
public class Settings {
    interface Way {
        Object go() throws Exception;
    }

    public static void main(String[] words) throws Exception {
        print("broker", first(
            () -> field(null, Class.forName("org.apache.kafka.server.config.AbstractKafkaConfig"), "CONFIG_DEF"),
            () -> call(module("kafka.server.KafkaConfig"), "configDef"),
            () -> field(module("kafka.server.KafkaConfig"), "configDef"),
            () -> field(module("kafka.server.KafkaConfig"), "kafka$server$KafkaConfig$$configDef")));
        print("topic", first(
            () -> call(Class.forName("org.apache.kafka.storage.internals.log.LogConfig"), "configDefCopy"),
            () -> call(module("kafka.log.LogConfig"), "configDefCopy"),
            () -> field(module("kafka.log.LogConfig"), "configDef"),
            () -> field(module("kafka.log.LogConfig"), "kafka$log$LogConfig$$configDef")));
    }

    static Object first(Way... ways) throws Exception {
        Exception last = null;
        for (Way way : ways) {
            try {
                return way.go();
            } catch (Exception e) {
                last = e;
            }
        }
        throw last;
    }

    static Object module(String name) throws Exception {
        return field(null, Class.forName(name + "$"), "MODULE$");
    }

    static Object call(Object target, String name) throws Exception {
        for (Class<?> each = target instanceof Class<?> c ? c : target.getClass(); each != null; each = each.getSuperclass()) {
            for (Method method : each.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == 0) {
                    method.setAccessible(true);
                    return method.invoke(target instanceof Class<?> ? null : target);
                }
            }
        }
        throw new NoSuchMethodException(name);
    }

    static Object field(Object target, String name) throws Exception {
        return field(target, target.getClass(), name);
    }

    static Object field(Object target, Class<?> type, String name) throws Exception {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(target);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    static void print(String scope, Object definition) throws Exception {
        Map<String, Object> keys = new TreeMap<>();
        Map<?, ?> found = (Map<?, ?>) first(() -> call(definition, "configKeys"), () -> field(definition, "configKeys"));
        found.forEach((name, key) -> keys.put((String) name, key));
        for (Object key : keys.values()) {
            Object given = field(key, "defaultValue");
            String text = "-";
            if (given instanceof List<?> list) text = "=" + String.join(",", list.stream().map(String::valueOf).toList());
            else if (given instanceof Class<?> type) text = "=" + type.getName();
            else if (given != null && given.getClass() != Object.class) text = "=" + given;
            Object hidden = first(() -> field(key, "internalConfig"), () -> false);
            System.out.println(String.join("\t", scope, field(key, "name") + "", field(key, "type") + "", text.replace("\n", " "),
                (field(key, "validator") + "").replaceAll("\\s+", " "), hidden + ""));
        }
    }
}
