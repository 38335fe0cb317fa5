package verdicts;

import com.yammer.metrics.core.Gauge;
import com.yammer.metrics.core.MetricName;

import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.network.SocketServer;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaApis;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import kafka.server.ReplicaManager;
import kafka.server.SharedServer;
import kafka.raft.KafkaRaftManager;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.TopicListing;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.metrics.Measurable;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.scram.ScramCredential;
import org.apache.kafka.common.security.token.delegation.internals.DelegationTokenCache;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.controller.Controller;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.image.loader.MetadataLoader;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.KRaftMetadataCache;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.raft.LogOffsetMetadata;
import org.apache.kafka.raft.RaftLog;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.security.CredentialProvider;
import org.apache.kafka.server.BrokerLifecycleManager;
import org.apache.kafka.server.HostedPartition;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.metrics.KafkaYammerMetrics;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import org.mockito.Mockito;

import scala.Option;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Objects of brokers for tests that ask them for little: addresses, settings, what topics there are. An Admin asks
 * Penstock for it. A method without an entry ends the test as not judged.
 */
public final class Objects {
    /** What a method returns: a function of its arguments. */
    private interface Answer extends Function<Object[], Object> { }

    /** A question to an Admin. */
    public interface Question<T> {
        T ask(Admin admin) throws Exception;
    }

    private static final Pattern SCRAM_USER = Pattern.compile("(SCRAM-SHA-[0-9]+)=\\[name=([^,]+),password=([^,]+)]");

    private Objects() {
    }

    public static <T> T ask(Supplier<Admin> admins, Question<T> question) {
        try (Admin admin = admins.get()) {
            return question.ask(admin);
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    }

    /** The users of SCRAM that a test has its storage formatted with. */
    public static List<UserScramCredentialAlteration> scramUsers(Consumer<Formatter> test) {
        Formatter formatter = new Formatter();
        test.accept(formatter);
        try {
            Field found = Formatter.class.getDeclaredField("scramArguments");
            found.setAccessible(true);
            return ((List<String>) found.get(formatter)).stream().map(Objects::scramUser).toList();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static UserScramCredentialAlteration scramUser(String text) {
        Matcher found = SCRAM_USER.matcher(text);
        if (!found.matches()) throw Host.lacks("the user of SCRAM " + text);
        return new UserScramCredentialUpsertion(found.group(2), new ScramCredentialInfo(ScramMechanism.fromMechanismName(found.group(1)), 4096), found.group(3));
    }

    public static KafkaBroker broker(int id, Host host, Supplier<Admin> admins) {
        return broker(id, host, admins, () -> config(id, host), false);
    }

    /** A broker that has the metrics of logins, and no others, if the test asks only for these. */
    public static KafkaBroker broker(int id, Host host, Supplier<Admin> admins, Supplier<KafkaConfig> config, boolean onlyLogins) {
        Object cache = cache(admins);
        return object(BrokerServer.class, Map.ofEntries(
            answer("config", no -> config.get()),
            answer("boundPort", what -> host.port(id, ((ListenerName) what[0]).value())),
            answer("authorizerPlugin", no -> authorizer(admins)),
            answer("isShutdown", no -> !host.ids(true).contains(id)),
            answer("shutdown", no -> does(() -> host.stopBroker(id))),
            answer("startup", no -> does(() -> host.startBroker(id))),
            answer("awaitShutdown", no -> null),
            answer("brokerState", no -> host.ids(true).contains(id) ? BrokerState.RUNNING : BrokerState.NOT_RUNNING),
            answer("clusterId", no -> ask(admins, admin -> admin.describeCluster().clusterId().get())),
            answer("metadataCache", no -> cache),
            answer("metrics", no -> {
                if (!onlyLogins) throw Host.lacks("the object BrokerServer.metrics");
                return metrics(id, host);
            }),
            answer("lifecycleManager", no -> object(BrokerLifecycleManager.class, Map.of(
                "initialUnfenceFuture", any -> CompletableFuture.completedFuture(null)))),
            answer("credentialProvider", no -> credentials(admins)),
            answer("tokenCache", no -> object(DelegationTokenCache.class, Map.of("tokens", any -> Collections.nCopies(host.tokens(id), null)))),
            answer("logManager", no -> logs(id, host)),
            answer("replicaManager", no -> replicas(id, host, cache)),
            answer("socketServer", no -> object(SocketServer.class, Map.of("boundPort", what -> host.port(id, ((ListenerName) what[0]).value())))),
            answer("dataPlaneRequestProcessor", no -> object(KafkaApis.class, Map.of(
                "metadataCache", any -> cache, "isConsumerGroupProtocolEnabled", any -> true, "authorizerPlugin", any -> authorizer(admins)))),
            answer("sharedServer", no -> object(SharedServer.class, Map.of(
                "loader", any -> object(MetadataLoader.class, Map.of("lastAppliedOffset", none -> Long.MAX_VALUE))))),
            answer("groupCoordinator", no -> object(GroupCoordinator.class, Map.of(
                "groupMetadataTopicConfigs", any -> properties(Map.of("cleanup.policy", "compact", "compression.type", "producer")),
                "partitionFor", group -> Utils.abs(group[0].hashCode()) % config.get().getInt("offsets.topic.num.partitions"))))));
    }

    /** The metrics of logins. */
    private static Metrics metrics(int id, Host host) {
        Metrics metrics = new Metrics();
        for (String name : host.counts(id).keySet())
            metrics.addMetric(metrics.metricName(name, "socket-server-metrics"), (Measurable) (config, now) -> host.counts(id).get(name));
        return metrics;
    }

    /** Puts the metric of all brokers that tests look for where they look. */
    public static void register(Host host) {
        MetricName name = new MetricName("kafka.network", "SocketServer", "ExpiredConnectionsKilledCount");
        KafkaYammerMetrics.defaultRegistry().removeMetric(name);
        KafkaYammerMetrics.defaultRegistry().newGauge(name, new Gauge<Double>() {
            @Override public Double value() {
                return host.ids(true).stream().mapToDouble(id -> host.counts(id).get("expired-connections-killed-count")).sum();
            }
        });
    }

    /** The users of SCRAM as they are now. */
    private static CredentialProvider credentials(Supplier<Admin> admins) {
        CredentialProvider provider = new CredentialProvider(org.apache.kafka.common.security.scram.internals.ScramMechanism.mechanismNames(), null);
        ask(admins, admin -> admin.describeUserScramCredentials().all().get()).forEach((user, known) -> known.credentialInfos().forEach(each ->
            provider.credentialCache.cache(each.mechanism().mechanismName(), ScramCredential.class)
                .put(user, new ScramCredential(new byte[0], new byte[0], new byte[0], each.iterations()))));
        return provider;
    }

    private static LogManager logs(int id, Host host) {
        return object(LogManager.class, Map.of("getLog", what -> log(id, host, (TopicPartition) what[0])));
    }

    private static ReplicaManager replicas(int id, Host host, Object cache) {
        return object(ReplicaManager.class, Map.of(
            "metadataCache", no -> cache,
            "logManager", no -> logs(id, host),
            "localLog", what -> log(id, host, (TopicPartition) what[0]),
            "localLogOrException", what -> partition(id, host, (TopicPartition) what[0]).localLogOrException(),
            "onlinePartition", what -> host.partition(id, (TopicPartition) what[0]).isEmpty()
                ? Option.empty() : Option.apply(partition(id, host, (TopicPartition) what[0])),
            "getPartitionOrException", what -> partition(id, host, (TopicPartition) what[0]),
            "getPartition", what -> host.partition(id, (TopicPartition) what[0]).isEmpty()
                ? new HostedPartition.None<>() : new HostedPartition.Online<>(partition(id, host, (TopicPartition) what[0]))));
    }

    private static Partition partition(int id, Host host, TopicPartition at) {
        return object(Partition.class, Map.of(
            "isLeader", no -> host.partition(id, at).path("leads").asBoolean(),
            "getLeaderEpoch", no -> host.partition(id, at).path("epoch").asInt(),
            "leaderLogIfLocal", no -> host.partition(id, at).path("leads").asBoolean() ? log(id, host, at) : Option.empty(),
            "log", no -> log(id, host, at),
            "localLogOrException", no -> log(id, host, at).get()));
    }

    private static Option<UnifiedLog> log(int id, Host host, TopicPartition at) {
        if (host.partition(id, at).isEmpty()) return Option.empty();
        return Option.apply(object(UnifiedLog.class, Map.of(
            "logStartOffset", no -> host.partition(id, at).get("start").asLong(),
            "logEndOffset", no -> host.partition(id, at).get("end").asLong(),
            "highWatermark", no -> host.partition(id, at).get("high").asLong())));
    }

    public static ControllerServer controller(Supplier<Admin> admins) {
        return controller(admins, () -> {
            throw Host.lacks("the settings of a controller");
        });
    }

    public static ControllerServer controller(Supplier<Admin> admins, Supplier<KafkaConfig> config) {
        Answer log = any -> object(RaftLog.class, Map.of("endOffset", none -> new LogOffsetMetadata(0)));
        return object(ControllerServer.class, Map.of(
            "config", no -> config.get(),
            "clusterId", no -> ask(admins, admin -> admin.describeCluster().clusterId().get()),
            "authorizerPlugin", no -> authorizer(admins),
            "controller", no -> object(Controller.class, Map.of("isActive", any -> true,
                "findAllTopicIds", any -> CompletableFuture.completedFuture(ids(admins)))),
            "raftManager", no -> object(KafkaRaftManager.class, Map.of("raftLog", log))));
    }

    /** The settings of a broker as they are after what clients have changed. */
    public static KafkaConfig changed(KafkaConfig first, Host host) {
        Map<String, String> changes = host.changes(first.brokerId());
        if (changes.isEmpty()) return first;
        Map<Object, Object> all = new HashMap<>(first.originals());
        all.putAll(changes);
        return new KafkaConfig(all, false);
    }

    private static KafkaConfig config(int id, Host host) {
        Properties all = properties(host.settings());
        all.putAll(host.changes(id));
        String address = host.listener() + "://localhost:" + host.ports().get(id);
        all.putAll(Map.of("process.roles", "broker,controller", "node.id", "" + id, "controller.listener.names", "CONTROLLER",
            "controller.quorum.bootstrap.servers", "localhost:1", "listeners", address + ",CONTROLLER://localhost:0", "advertised.listeners", address,
            "inter.broker.listener.name", host.listener(), "listener.security.protocol.map", host.listener() + ":PLAINTEXT,CONTROLLER:PLAINTEXT"));
        return new KafkaConfig(all, false);
    }

    /** Rights, which an Admin changes and lists. */
    private static Option<Plugin<Authorizer>> authorizer(Supplier<Admin> admins) {
        Authorizer own = object(Authorizer.class, Map.of(
            "createAcls", what -> {
                Collection<AclBinding> bindings = (Collection<AclBinding>) what[1];
                ask(admins, admin -> admin.createAcls(bindings).all().get());
                return bindings.stream().map(each -> CompletableFuture.completedFuture(AclCreateResult.SUCCESS)).toList();
            },
            "deleteAcls", what -> {
                Collection<AclBindingFilter> filters = (Collection<AclBindingFilter>) what[1];
                ask(admins, admin -> admin.deleteAcls(filters).all().get());
                return filters.stream().map(each -> CompletableFuture.completedFuture(new AclDeleteResult(List.of()))).toList();
            },
            "acls", what -> ask(admins, admin -> admin.describeAcls((AclBindingFilter) what[0]).values().get())));
        return Option.apply(Plugin.wrapInstance(own, null, "authorizer.class.name"));
    }

    private static Object cache(Supplier<Admin> admins) {
        return object(KRaftMetadataCache.class, Map.of(
            "getAllTopics", no -> names(admins),
            "contains", what -> what[0] instanceof TopicPartition at
                ? topic(admins, at.topic()).filter(each -> each.partitions().size() > at.partition()).isPresent() : names(admins).contains(what[0]),
            "numPartitions", what -> topic(admins, what[0]).map(each -> each.partitions().size()),
            "getTopicId", what -> topic(admins, what[0]).map(TopicDescription::topicId).orElse(Uuid.ZERO_UUID),
            "topicNamesToIds", no -> ids(admins),
            "getLeaderAndIsr", what -> topic(admins, what[0]).flatMap(each -> each.partitions().stream().filter(one -> one.partition() == (int) what[1]).findFirst())
                .map(one -> new LeaderAndIsr(one.leader() == null ? -1 : one.leader().id(), one.isr().stream().map(node -> node.id()).toList())),
            "getAliveBrokerNodes", what -> List.copyOf(ask(admins, admin -> admin.describeCluster().nodes().get())),
            "hasAliveBroker", what -> ask(admins, admin -> admin.describeCluster().nodes().get()).stream().anyMatch(each -> each.id() == (int) what[0])));
    }

    private static Map<String, Uuid> ids(Supplier<Admin> admins) {
        return ask(admins, admin -> admin.listTopics(new ListTopicsOptions().listInternal(true)).listings().get())
            .stream().collect(Collectors.toMap(TopicListing::name, TopicListing::topicId));
    }

    private static Set<String> names(Supplier<Admin> admins) {
        return new HashSet<>(ids(admins).keySet());
    }

    private static Optional<TopicDescription> topic(Supplier<Admin> admins, Object name) {
        return ask(admins, admin -> {
            if (!admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().contains(name)) return Optional.empty();
            return Optional.of(admin.describeTopics(List.of(name.toString())).allTopicNames().get().get(name));
        });
    }

    private static Properties properties(Map<String, String> from) {
        Properties found = new Properties();
        found.putAll(from);
        return found;
    }

    private static Object does(Runnable what) {
        what.run();
        return null;
    }

    private static Map.Entry<String, Answer> answer(String name, Answer answer) {
        return Map.entry(name, answer);
    }

    private static <T> T object(Class<T> type, Map<String, Answer> answers) {
        return Mockito.mock(type, Mockito.withSettings().stubOnly().defaultAnswer(call -> {
            String name = call.getMethod().getName();
            if (name.equals("toString")) return type.getSimpleName();
            if (name.equals("hashCode")) return System.identityHashCode(call.getMock());
            if (name.equals("equals")) return call.getArgument(0) == call.getMock();
            Answer found = answers.get(name);
            if (found == null) throw Host.lacks("the object " + call.getMethod().getDeclaringClass().getSimpleName() + "." + name);
            return found.apply(call.getArguments());
        }));
    }
}
