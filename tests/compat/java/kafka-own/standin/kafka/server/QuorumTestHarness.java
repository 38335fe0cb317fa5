package kafka.server;

import kafka.api.EndToEndAuthorizationTest;
import kafka.integration.KafkaServerTestHarness;
import kafka.utils.Logging;
import kafka.utils.TestInfoUtils;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.UserScramCredentialAlteration;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.MockFaultHandler;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInfo;
import org.junit.jupiter.params.provider.Arguments;

import scala.Option;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;

import verdicts.Host;
import verdicts.Objects;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Supplier;
import java.util.stream.Stream;

/** In place of the class of this name, which tests of Kafka's core extend: the brokers are Penstock's. */
public abstract class QuorumTestHarness implements Logging {
    private final MockFaultHandler faults = new MockFaultHandler("quorumTestHarnessFaultHandler");
    private final Supplier<Admin> admins = () -> Admin.create(Map.of("bootstrap.servers", host().servers()));
    private TestInfo test;
    private Host host;
    private List<KafkaConfig> wanted = List.of();
    private ControllerServer controller;
    private String ident = "";

    public static Stream<Arguments> getTestGroupProtocolParametersAll() {
        return Stream.of(Arguments.of("classic"), Arguments.of("consumer"));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersConsumerGroupProtocolOnly() {
        return Stream.of(Arguments.of("consumer"));
    }

    public static Stream<Arguments> getTestGroupProtocolParametersClassicGroupProtocolOnly() {
        return Stream.of(Arguments.of("classic"));
    }

    @BeforeEach
    public void setUp(TestInfo test) {
        this.test = test;
        controller = Objects.controller(admins, () -> wanted.get(0));
    }

    @AfterEach
    public void tearDown() {
        if (host != null) host.stop();
        host = null;
    }

    /** The brokers of a test are asked for one by one, and begin together. */
    public KafkaBroker createBroker(KafkaConfig config, Time time, boolean start, Option<String> threads) {
        if (host == null || !wanted.contains(config)) begin(config);
        KafkaBroker broker = Objects.broker(config.brokerId(), host, admins, () -> Objects.changed(config, host()),
            asksForLogins());
        if (start) broker.startup();
        return broker;
    }

    private void begin(KafkaConfig config) {
        if (host != null) {
            Set<Integer> running = host.ids(true);
            if (!running.isEmpty() && !running.contains(config.brokerId())) throw Host.lacks("brokers that begin one after the other");
            host.stop();
        }
        wanted = this instanceof KafkaServerTestHarness all ? CollectionConverters.asJava(all.configs()) : List.of(config);
        if (!wanted.contains(config)) throw Host.lacks("a broker that is not of the harness");
        Map<Integer, Map<String, String>> own = new TreeMap<>();
        for (KafkaConfig each : wanted) {
            Map<String, String> texts = new TreeMap<>();
            each.originals().forEach((name, value) -> texts.put(name, Host.text(value)));
            own.put(each.brokerId(), texts);
        }
        for (int id = 0; id < own.size(); id++)
            if (own.size() > 1 && !own.containsKey(id)) throw Host.lacks("brokers with ids " + own.keySet());
        host = new Host(own);
        boolean newest = metadataVersion().isAtLeast(MetadataVersion.latestProduction());
        host.start(newest ? "" : metadataVersion().version());
        if (asksForLogins()) Objects.register(host);
        List<UserScramCredentialAlteration> users = Objects.scramUsers(this::addFormatterSettings);
        if (!users.isEmpty()) Objects.ask(admins, admin -> admin.alterUserScramCredentials(users).all().get());
    }

    /** Whether a test looks at metrics of logins, and at no others. */
    private boolean asksForLogins() {
        return this instanceof EndToEndAuthorizationTest || this instanceof GssapiAuthenticationTest;
    }

    private Host host() {
        if (host == null) throw Host.lacks("a controller before there are brokers");
        return host;
    }

    public KafkaBroker createBroker(KafkaConfig config) {
        return createBroker(config, Time.SYSTEM, true, Option.empty());
    }

    public Time createBroker$default$2() {
        return Time.SYSTEM;
    }

    public boolean createBroker$default$3() {
        return true;
    }

    public Option<String> createBroker$default$4() {
        return Option.empty();
    }

    public ControllerServer controllerServer() {
        return controller;
    }

    public Seq<ControllerServer> controllerServers() {
        return CollectionConverters.asScala(List.of(controller));
    }

    public MetadataVersion metadataVersion() {
        return MetadataVersion.latestTesting();
    }

    public Option<GroupProtocol> maybeGroupProtocolSpecified() {
        return TestInfoUtils.maybeGroupProtocolSpecified(test);
    }

    public GroupProtocol groupProtocolFromTestParameters() {
        return maybeGroupProtocolSpecified().get();
    }

    public MockFaultHandler faultHandler() {
        return faults;
    }

    public QuorumTestHarnessFaultHandlerFactory faultHandlerFactory() {
        return new QuorumTestHarnessFaultHandlerFactory(faults);
    }

    public SecurityProtocol controllerListenerSecurityProtocol() {
        return SecurityProtocol.PLAINTEXT;
    }

    public Seq<SecurityProtocol> extraControllerSecurityProtocols() {
        return CollectionConverters.asScala(List.of());
    }

    public Seq<Properties> kraftControllerConfigs(TestInfo test) {
        return CollectionConverters.asScala(List.of(new Properties()));
    }

    public void addFormatterSettings(Formatter formatter) { }

    public void shutdownKRaftController() {
        throw Host.lacks("controllers that stop");
    }

    @Override
    public String logIdent() {
        return ident;
    }

    @Override
    public void logIdent_$eq(String text) {
        ident = text;
    }
}
