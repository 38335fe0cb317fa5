package org.apache.kafka.common.test.junit;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

import verdicts.Host;
import verdicts.Objects;

import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Callable;

/** In place of the class of this name in Kafka's harness: the brokers of a test are Penstock's. */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private final String title;
    private final ClusterConfig wanted;
    private final boolean combined;

    public RaftClusterInvocationContext(String title, ClusterConfig wanted, boolean combined) {
        this.title = title;
        this.wanted = wanted;
        this.combined = combined;
    }

    @Override
    public String getDisplayName(int number) {
        return title + " " + number;
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Served cluster = new Served();
        BeforeEachCallback begin = context -> {
            if (wanted.isAutoStart()) cluster.start();
        };
        AfterTestExecutionCallback end = context -> cluster.stop();
        AfterEachCallback atLast = context -> cluster.stop();
        return List.of(atLast, begin, end, new ClusterInstanceParameterResolver(cluster));
    }

    private final class Served implements ClusterInstance {
        private final Host host = new Host(wanted.numBrokers(), wanted.numDisksPerBroker(), wanted.serverProperties(),
            wanted.perServerOverrideProperties(), wanted.brokerListenerName().value(), wanted.brokerSecurityProtocol().name);
        private boolean started, stopped;

        @Override
        public synchronized void start() {
            if (started) return;
            if (wanted.brokerSecurityProtocol().name.endsWith("SSL")) throw Host.lacks("TLS by the key store of the harness");
            boolean newest = wanted.metadataVersion().isAtLeast(MetadataVersion.latestProduction());
            host.start(newest ? "" : wanted.metadataVersion().version());
            wanted.features().forEach((feature, level) -> setLevel(feature.featureName(), level));
            started = true;
        }

        private void setLevel(String feature, short level) {
            try {
                Objects.ask(this::admin, admin -> {
                    var present = admin.describeFeatures().featureMetadata().get().finalizedFeatures().get(feature);
                    boolean lower = present != null && level < present.maxVersionLevel();
                    var update = new FeatureUpdate(level, lower ? FeatureUpdate.UpgradeType.UNSAFE_DOWNGRADE : FeatureUpdate.UpgradeType.UPGRADE);
                    return admin.updateFeatures(Map.of(feature, update), new UpdateFeaturesOptions()).all().get();
                });
            } catch (RuntimeException e) {
                throw Host.lacks("the feature " + feature + " at level " + level + " from the start");
            }
        }

        @Override
        public synchronized void stop() {
            if (started && !stopped) host.stop();
            stopped = true;
        }

        @Override public boolean started() { return started; }
        @Override public boolean stopped() { return stopped; }
        @Override public Type type() { return combined ? Type.CO_KRAFT : Type.KRAFT; }
        @Override public ClusterConfig config() { return wanted; }
        @Override public ListenerName clientListener() { return wanted.brokerListenerName(); }
        @Override public ListenerName controllerListenerName() { return wanted.controllerListenerName(); }
        @Override public String bootstrapServers() { return host.servers(); }
        @Override public List<Integer> brokerBoundPorts() { return host.ports(); }
        @Override public String bootstrapControllers() { throw Host.lacks("controllers with addresses"); }
        @Override public List<Integer> controllerBoundPorts() { throw Host.lacks("controllers with addresses"); }
        @Override public Optional<FaultHandlerException> firstFatalException() { return Optional.empty(); }
        @Override public Optional<FaultHandlerException> firstNonFatalException() { return Optional.empty(); }
        @Override public List<Authorizer> authorizers() { throw Host.lacks("authorizers as objects"); }
        @Override public void shutdownBroker(int id) { host.stopBroker(id); }
        @Override public void startBroker(int id) { host.startBroker(id); }
        @Override public Set<Integer> brokerIds() { return host.ids(false); }
        @Override public Map<Integer, KafkaBroker> brokers() { return objects(false); }
        @Override public Map<Integer, KafkaBroker> aliveBrokers() { return objects(true); }

        private Map<Integer, KafkaBroker> objects(boolean alive) {
            Map<Integer, KafkaBroker> found = new TreeMap<>();
            host.ids(alive).forEach(id -> found.put(id, Objects.broker(id, host, this::admin)));
            return found;
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            Map<Integer, ControllerServer> found = new TreeMap<>();
            controllerIds().forEach(id -> found.put(id, Objects.controller(this::admin)));
            return found;
        }

        @Override
        public Set<Integer> controllerIds() {
            Set<Integer> found = new TreeSet<>();
            for (int place = 0; place < wanted.numControllers(); place++) found.add(combined ? place : 3000 + place);
            return found;
        }

        @Override
        public String clusterId() {
            return Objects.ask(this::admin, admin -> admin.describeCluster().clusterId().get());
        }

        @Override
        public void waitForReadyBrokers() throws InterruptedException {
            patiently("brokers that are ready", () ->
                Objects.ask(this::admin, admin -> admin.describeCluster().nodes().get().size()) >= host.ids(true).size());
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            waitTopicCreation(topic, 0);
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            patiently(partitions + " partitions of " + topic, () -> Objects.ask(this::admin, admin -> {
                if (!admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get().contains(topic)) return partitions == 0;
                return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size() == partitions;
            }));
        }

        @Override
        public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
            patiently("rules " + entries, () -> Objects.ask(this::admin, admin -> {
                Set<AccessControlEntry> found = new HashSet<>();
                for (AclBinding each : admin.describeAcls(filter).values().get()) found.add(each.entry());
                return found.equals(new HashSet<>(entries));
            }));
        }

        @Override public void ensureConsistentMetadata() { }
        @Override public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) { }

        private void patiently(String what, Callable<Boolean> condition) throws InterruptedException {
            for (long end = System.nanoTime() + 30_000_000_000L; System.nanoTime() < end; Thread.sleep(20)) {
                try {
                    if (condition.call()) return;
                } catch (InterruptedException e) {
                    throw e;
                } catch (Exception e) {
                    // a broker that stops at this moment: asked again
                }
            }
            throw new AssertionError("30 s have not brought " + what);
        }
    }
}
