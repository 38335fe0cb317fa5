import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * What a program does with the Java clients of any release from 0.10.2 to 3.9; what came of it, a line each.
 *
 * What came after the oldest is called by reflection, where it is. Arguments: bootstrap servers; a new topic
 * that gets three partitions as it is written to.
 */
public class OldClients {
    static final int EACH = 200;
    static String servers, topic;
    static boolean later(String type) {
        try { Class.forName(type); return true; } catch (ClassNotFoundException missing) { return false; }
    }
    static final boolean HEADERS = later("org.apache.kafka.common.header.Header");
    static final boolean ADMIN = later("org.apache.kafka.clients.admin.AdminClient");
    static final boolean STICKY = later("org.apache.kafka.clients.consumer.StickyAssignor");
    static final boolean COOPERATIVE = later("org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    static final boolean ZSTD = later("com.github.luben.zstd.Zstd");

    static void say(String what, Object value) {
        System.out.println(what + "\t" + value);
    }

    static Object call(Object on, String name, Object... args) throws Exception {
        for (Class<?> type = on.getClass(); type != null; type = type.getSuperclass())
            for (Method m : type.getMethods())
                if (m.getName().equals(name) && fits(m.getParameterTypes(), args)) {
                    m.setAccessible(true);
                    return m.invoke(on, args);
                }
        throw new NoSuchMethodException(name);
    }

    static boolean fits(Class<?>[] wanted, Object[] args) {
        if (wanted.length != args.length) return false;
        for (int i = 0; i < args.length; i++)
            if (!wanted[i].isPrimitive() && !wanted[i].isInstance(args[i])) return false;
        return true;
    }

    static Properties settings(String... more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", servers);
        for (String kind : new String[] {"key", "value"}) {
            p.put(kind + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            p.put(kind + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("request.timeout.ms", "40000");
        for (int i = 0; i < more.length; i += 2) p.put(more[i], more[i + 1]);
        return p;
    }

    static void produce() throws Exception {
        List<String> codecs = new ArrayList<>(Arrays.asList("none", "gzip", "snappy", "lz4"));
        if (ZSTD) codecs.add("zstd");
        long n = 0;
        for (String codec : codecs) {
            String[] more = {"compression.type", codec, "acks", "all", "linger.ms", "5", "retries", "3"};
            Properties p = settings(more);
            if (HEADERS) p.put("enable.idempotence", "true");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int i = 0; i < EACH; i++, n++) {
                    ProducerRecord<String, String> record = new ProducerRecord<>(
                        topic, (int) (n % 3), 1_600_000_000_000L + n, "key " + n, i == 7 ? null : codec + " " + n);
                    if (HEADERS) call(call(record, "headers"), "add", "n", String.valueOf(n).getBytes(StandardCharsets.UTF_8));
                    sent.add(producer.send(record));
                }
                for (Future<RecordMetadata> one : sent) one.get();
            }
        }
        say("produced", n + " " + codecs);
    }

    static void readAssigned() throws Exception {
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(settings("max.poll.records", "100"))) {
            List<TopicPartition> all = new ArrayList<>();
            for (PartitionInfo info : c.partitionsFor(topic)) all.add(new TopicPartition(topic, info.partition()));
            all.sort(Comparator.comparing(TopicPartition::partition));
            c.assign(all);
            Map<TopicPartition, Long> begin = c.beginningOffsets(all), end = c.endOffsets(all);
            long total = 0;
            for (TopicPartition tp : all) total += end.get(tp) - begin.get(tp);
            say("ends", total);
            c.seekToBeginning(all);
            BitSet seen = new BitSet();
            int good = 0;
            while (seen.cardinality() < total)
                for (ConsumerRecord<String, String> r : c.poll(1000)) {
                    int n = Integer.parseInt(r.key().substring(4));
                    seen.set(n);
                    boolean same = r.timestamp() == 1_600_000_000_000L + n && r.partition() == n % 3
                        && (n % EACH == 7 ? r.value() == null : r.value().endsWith(" " + n));
                    if (HEADERS) {
                        Object header = call(call(r, "headers"), "lastHeader", "n");
                        same &= new String((byte[]) call(header, "value"), StandardCharsets.UTF_8).equals("" + n);
                    }
                    if (same) good++;
                }
            say("read", good);
            Map<TopicPartition, Long> when = new HashMap<>();
            for (TopicPartition tp : all) when.put(tp, 1_600_000_000_000L + 301);
            Map<TopicPartition, OffsetAndTimestamp> found = c.offsetsForTimes(when);
            List<String> places = new ArrayList<>();
            for (TopicPartition tp : all) {
                OffsetAndTimestamp place = found.get(tp);
                places.add(place.offset() + "@" + (place.timestamp() - 1_600_000_000_000L));
                c.seek(tp, place.offset());
            }
            say("offsetsForTimes", places);
            TreeSet<Integer> keys = new TreeSet<>();
            while (keys.size() < total - 301)
                for (ConsumerRecord<String, String> r : c.poll(1000)) keys.add(Integer.parseInt(r.key().substring(4)));
            say("after seek", keys.first() + " to " + keys.last() + ", position " + c.position(all.get(0)));
            c.seekToEnd(all);
            c.pause(all);
            say("at the end", c.position(all.get(2)) + " " + c.poll(100).count());
        }
    }

    static class Member extends Thread {
        final KafkaConsumer<String, String> consumer;
        final Set<String> keys;
        volatile boolean goesOn = true;
        volatile int owned = -1;
        volatile int asynchronous = 0;
        volatile Exception failure;

        Member(String group, String assignor, Set<String> keys) {
            this.keys = keys;
            setDaemon(true);
            consumer = new KafkaConsumer<>(settings("group.id", group, "partition.assignment.strategy",
                "org.apache.kafka.clients.consumer." + assignor, "session.timeout.ms", "6000", "heartbeat.interval.ms", "300"));
        }

        public void run() {
            try {
                consumer.subscribe(Collections.singletonList(topic));
                while (goesOn) {
                    for (ConsumerRecord<String, String> r : consumer.poll(100)) keys.add(r.key());
                    owned = consumer.assignment().size();
                    consumer.commitAsync((offsets, error) -> { if (error == null) asynchronous++; });
                }
                consumer.commitSync();
            } catch (Exception error) {
                failure = error;
            } finally {
                consumer.close();
            }
        }
    }

    static void until(java.util.function.BooleanSupplier holds, String what) throws Exception {
        for (long end = System.currentTimeMillis() + 60_000; !holds.getAsBoolean(); Thread.sleep(20))
            if (System.currentTimeMillis() > end) throw new IllegalStateException("waited in vain: " + what);
    }

    static void readAsGroup(String assignor, int total) throws Exception {
        String group = topic + "-" + assignor;
        Set<String> keys = Collections.synchronizedSet(new HashSet<>());
        Member first = new Member(group, assignor, keys), second = new Member(group, assignor, keys);
        first.start();
        until(() -> first.owned == 3 || first.failure != null, assignor + ": the first has all");
        second.start();
        until(() -> first.owned + second.owned == 3 && second.owned > 0 && keys.size() == total
            || first.failure != null || second.failure != null, assignor + ": they share");
        until(() -> first.asynchronous > 0, "commits");
        first.goesOn = false;
        first.join();
        until(() -> second.owned == 3 || second.failure != null, assignor + ": the second has all");
        second.goesOn = false;
        second.join();
        long committed = 0;
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(settings("group.id", group))) {
            for (int i = 0; i < 3; i++) committed += c.committed(new TopicPartition(topic, i)).offset();
        }
        say(assignor, keys.size() + " read, " + committed + " committed, failures " + first.failure + " " + second.failure);
    }

    static Object get(Object future) throws Exception {
        return ((java.util.concurrent.Future<?>) future).get(20, TimeUnit.SECONDS);
    }

    static void administer() throws Exception {
        Class<?> type = Class.forName("org.apache.kafka.clients.admin.AdminClient");
        Object admin = type.getMethod("create", Properties.class).invoke(null, settings());
        Class<?> newTopic = Class.forName("org.apache.kafka.clients.admin.NewTopic");
        Object made = newTopic.getConstructor(String.class, int.class, short.class).newInstance(topic + "-made", 2, (short) 1);
        get(call(call(admin, "createTopics", Collections.singleton(made)), "all"));
        Object names = get(call(call(admin, "listTopics"), "names"));
        Map<?, ?> described = (Map<?, ?>) get(call(call(admin, "describeTopics", Collections.singleton(topic + "-made")), "all"));
        say("topics", ((Set<?>) names).contains(topic + "-made") + " " + ((Collection<?>) call(described.values().iterator().next(), "partitions")).size());
        say("cluster", ((Collection<?>) get(call(call(admin, "describeCluster"), "nodes"))).size());
        Class<?> resource = Class.forName("org.apache.kafka.common.config.ConfigResource");
        Class<?> kind = Class.forName("org.apache.kafka.common.config.ConfigResource$Type");
        Object one = resource.getConstructor(kind, String.class).newInstance(kind.getField("TOPIC").get(null), topic);
        Object configs = ((Map<?, ?>) get(call(call(admin, "describeConfigs", Collections.singleton(one)), "all"))).get(one);
        say("config", call(call(configs, "get", "cleanup.policy"), "value"));
        Class<?> increase = Class.forName("org.apache.kafka.clients.admin.NewPartitions");
        Object four = increase.getMethod("increaseTo", int.class).invoke(null, 4);
        get(call(call(admin, "createPartitions", Collections.singletonMap(topic + "-made", four)), "all"));
        Object before = Class.forName("org.apache.kafka.clients.admin.RecordsToDelete").getMethod("beforeOffset", long.class).invoke(null, 10L);
        get(call(call(admin, "deleteRecords", Collections.singletonMap(new TopicPartition(topic, 0), before)), "all"));
        boolean groups = later("org.apache.kafka.clients.admin.ConsumerGroupDescription");
        if (groups) {
            String group = topic + "-RangeAssignor";
            Map<?, ?> all = (Map<?, ?>) get(call(call(admin, "describeConsumerGroups", Collections.singleton(group)), "all"));
            Map<?, ?> offsets = (Map<?, ?>) get(call(call(admin, "listConsumerGroupOffsets", group), "partitionsToOffsetAndMetadata"));
            say("group", call(all.get(group), "state") + " " + offsets.size());
            get(call(call(admin, "deleteConsumerGroups", Collections.singleton(group)), "all"));
        }
        get(call(call(admin, "deleteTopics", Collections.singleton(topic + "-made")), "all"));
        call(admin, "close");
        say("administered", groups);
    }

    static void transact() {
        Properties p = settings("transactional.id", topic, "max.block.ms", "15000");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p)) {
            call(producer, "initTransactions");
            say("transactions", "begun");
        } catch (java.lang.reflect.InvocationTargetException e) {
            say("transactions", e.getCause().getMessage());
        } catch (Exception e) {
            say("transactions", e);
        }
    }

    public static void main(String[] args) throws Exception {
        servers = args[0];
        topic = args[1];
        say("version", AppInfoParser.getVersion());
        produce();
        readAssigned();
        int total = (ZSTD ? 5 : 4) * EACH;
        readAsGroup("RangeAssignor", total);
        readAsGroup("RoundRobinAssignor", total);
        if (STICKY) readAsGroup("StickyAssignor", total);
        if (COOPERATIVE) readAsGroup("CooperativeStickyAssignor", total);
        if (ADMIN) administer();
        if (HEADERS) transact();
    }
}
