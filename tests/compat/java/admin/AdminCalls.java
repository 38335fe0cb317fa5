import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

/**
 * Every call of the newest Admin, right ones and wrong ones: a line for each, its name and what came of it. That is
 * `ok`, or the class of an exception behind a `!`;
     for several things at once each one's. Argument: bootstrap servers.
 */
public class AdminCalls {
    interface Call {
        Object get() throws Exception;
    }

    static void show(String name, Call call) {
        String said;
        try {
            said = text(call.get());
        } catch (Exception error) {
            said = "thrown " + text(error);
        }
        System.out.println(name + "\t" + said);
    }

    static String text(Object o) {
        if (o instanceof KafkaFuture<?> future) {
            try {
                return text(future.get(30, TimeUnit.SECONDS));
            } catch (Exception error) {
                return text(error);
            }
        }
        if (o instanceof ExecutionException) return text(((Exception) o).getCause());
        if (o instanceof Throwable) return "!" + o.getClass().getSimpleName();
        if (o instanceof Optional<?> optional) return text(optional.orElse(null));
        if (o instanceof String || o instanceof Integer || o instanceof Boolean) return o.toString();
        if (!(o instanceof Map)) return "ok";
        TreeMap<String, String> sorted = new TreeMap<>();
        ((Map<?, ?>) o).forEach((key, value) -> sorted.put(key.toString(), text(value)));
        return sorted.toString();
    }

    public static void main(String[] args) throws Exception {
        Map<String, Object> p = new HashMap<>(Map.of("bootstrap.servers", args[0], "default.api.timeout.ms", 40_000));
        TopicPartition t0 = new TopicPartition("t", 0), t1 = new TopicPartition("t", 1);
        TopicPartition none = new TopicPartition("none", 0), t9 = new TopicPartition("t", 9);
        try (Admin a = Admin.create(p)) {
            show("createTopics", () -> a.createTopics(List.of(new NewTopic("t", 2, (short) 1), new NewTopic("u",
                Optional.empty(), Optional.empty()))).all());
            show("createTopics again", () -> a.createTopics(List.of(new NewTopic("t", 2, (short) 1))).values());
            show("createTopics replicas 3", () -> a.createTopics(List.of(new NewTopic("r", 2, (short) 3))).values());
            show("createTopics assigned", () -> a.createTopics(List.of(new NewTopic("r", Map.of(0, List.of(1), 1,
                List.of(1))))).values());
            show("createTopics assigned badly", () -> a.createTopics(List.of(new NewTopic("r2", Map.of(0,
                List.of(1, 2))), new NewTopic("r3", Map.of(1, List.of(1))), new NewTopic("r4", Map.of(0,
                List.of(7))))).values());
            show("createTopics bad config", () -> a.createTopics(List.of(new NewTopic("c1", 1,
                (short) 1).configs(Map.of("nonsense", "1")), new NewTopic("c2", 1,
                (short) 1).configs(Map.of("retention.ms", "x")), new NewTopic("bad name", 1, (short) 1),
                new NewTopic("", 1, (short) 1), new NewTopic("..", 1, (short) 1), new NewTopic("zero", 0,
                (short) 1), new NewTopic("a.b", 1, (short) 1))).values());
            show("createTopics collides", () -> a.createTopics(List.of(new NewTopic("a_b", 1, (short) 1))).values());
            show("createTopics validate", () -> a.createTopics(List.of(new NewTopic("v", 1, (short) 1)),
                new CreateTopicsOptions().validateOnly(true)).config("v").get().entries().size() > 20);
            show("listTopics", () -> a.listTopics(new ListTopicsOptions().listInternal(true)).names());
            show("describeTopics", () -> a.describeTopics(List.of("t", "none"),
                new DescribeTopicsOptions().includeAuthorizedOperations(true)).topicNameValues());
            show("describeTopics id", () -> a.describeTopics(TopicCollection.ofTopicIds(List.of(new Uuid(1,
                2)))).topicIdValues());
            show("describeTopics paged", () -> a.describeTopics(List.of("t", "r"),
                new DescribeTopicsOptions().partitionSizeLimitPerResponse(1)).allTopicNames());
            show("describeCluster", () -> a.describeCluster().nodes());
            // data
            Map<String, Object> pp = new HashMap<>(p);
            pp.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            pp.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(pp)) {
                for (int i = 0; i < 100; i++) producer.send(new ProducerRecord<>("t", i % 2, 1000L + i, "k" + i,
                    "v" + i)).get();
                show("describeProducers", () -> a.describeProducers(List.of(t0, t1, none,
                    t9)).partitionResult(t0).get().activeProducers().stream().map(s ->
                    s.lastSequence() + " " + s.coordinatorEpoch() + " " + s.currentTransactionStartOffset() + " " + s.producerEpoch()).collect(Collectors.toList()));
            }
            show("describeProducers broker 5", () -> a.describeProducers(List.of(t0),
                new DescribeProducersOptions().brokerId(5)).all());
            show("listOffsets", () -> { Map<TopicPartition, OffsetSpec> m = new HashMap<>(); m.put(t0,
                OffsetSpec.latest()); m.put(t1, OffsetSpec.earliest()); return a.listOffsets(m).all(); });
            for (OffsetSpec s : List.of(OffsetSpec.maxTimestamp(), OffsetSpec.earliestLocal(),
                OffsetSpec.latestTiered(), OffsetSpec.forTimestamp(1050), OffsetSpec.forTimestamp(9999)))
                show("listOffsets " + s.getClass().getSimpleName(), () -> a.listOffsets(Map.of(t0,
                    s)).partitionResult(t0));
            show("listOffsets pending", () -> a.listOffsets(Map.of(t0,
                OffsetSpec.earliestPendingUpload())).partitionResult(t0));
            show("listOffsets none", () -> a.listOffsets(Map.of(none, OffsetSpec.latest())).partitionResult(none));
            show("listOffsets committed", () -> a.listOffsets(Map.of(t0, OffsetSpec.latest()),
                new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all());
            show("deleteRecords", () -> a.deleteRecords(Map.of(t0, RecordsToDelete.beforeOffset(10), t1,
                RecordsToDelete.beforeOffset(1000))).lowWatermarks());
            // groups
            Map<String, Object> cp = new HashMap<>(p);
            cp.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            cp.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
            cp.put("auto.offset.reset", "earliest"); cp.put("group.id", "g"); cp.put("enable.auto.commit", "false");
            cp.put("group.instance.id", "fixed"); cp.put("client.id", "reader");
            KafkaConsumer<String, String> c = new KafkaConsumer<>(cp);
            c.subscribe(List.of("t"));
            for (int n = 0; n < 90; ) n += c.poll(Duration.ofMillis(200)).count();
            c.commitSync(Map.of(t0, new OffsetAndMetadata(30, Optional.of(0), "note"), t1,
                new OffsetAndMetadata(20)));
            show("listGroups", () -> a.listGroups().all());
            show("listGroups classic", () ->
                a.listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.CLASSIC)).inGroupStates(Set.of(GroupState.STABLE)).withProtocolTypes(Set.of("consumer"))).all());
            show("listGroups new", () -> a.listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER,
                GroupType.SHARE))).all());
            show("listGroups forShare", () -> a.listGroups(ListGroupsOptions.forShareGroups()).all());
            show("listGroups forStreams", () -> a.listGroups(ListGroupsOptions.forStreamsGroups()).all());
            show("listConsumerGroups", () -> a.listConsumerGroups(new ListConsumerGroupsOptions()).all());
            show("describeConsumerGroups", () -> a.describeConsumerGroups(List.of("g"),
                new DescribeConsumerGroupsOptions().includeAuthorizedOperations(true)).all());
            show("describeConsumerGroups none", () -> a.describeConsumerGroups(List.of("none")).describedGroups());
            show("describeClassicGroups", () -> a.describeClassicGroups(List.of("g")).all());
            show("describeClassicGroups none", () -> a.describeClassicGroups(List.of("none")).describedGroups());
            show("describeShareGroups", () -> a.describeShareGroups(List.of("g")).describedGroups());
            show("describeShareGroups none", () -> a.describeShareGroups(List.of("none")).describedGroups());
            show("describeStreamsGroups", () -> a.describeStreamsGroups(List.of("g")).describedGroups());
            show("describeStreamsGroups none", () -> a.describeStreamsGroups(List.of("none")).describedGroups());
            show("listConsumerGroupOffsets", () -> a.listConsumerGroupOffsets("g").partitionsToOffsetAndMetadata());
            show("listConsumerGroupOffsets two", () -> a.listConsumerGroupOffsets(Map.of("g",
                new ListConsumerGroupOffsetsSpec().topicPartitions(List.of(t0, none)), "none",
                new ListConsumerGroupOffsetsSpec()),
                new ListConsumerGroupOffsetsOptions().requireStable(true)).all());
            show("alterConsumerGroupOffsets live", () -> a.alterConsumerGroupOffsets("g", Map.of(t0,
                new OffsetAndMetadata(5))).all());
            show("deleteConsumerGroupOffsets live", () -> a.deleteConsumerGroupOffsets("g", Set.of(t0)).all());
            show("deleteConsumerGroups live", () -> a.deleteConsumerGroups(List.of("g")).deletedGroups());
            show("removeMembers other", () -> a.removeMembersFromConsumerGroup("g",
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("other")))).all());
            show("removeMembers fixed", () -> a.removeMembersFromConsumerGroup("g",
                new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("fixed")))).all());
            show("describe emptied", () -> a.describeConsumerGroups(List.of("g")).all());
            show("consumer removed", () -> { for (int i = 0; i < 50; i++) { c.poll(Duration.ofMillis(100));
                c.commitSync(); } return "fine"; });
            show("removeMembers all", () -> a.removeMembersFromConsumerGroup("g",
                new RemoveMembersFromConsumerGroupOptions()).all());
            try { c.close(Duration.ofSeconds(1)); } catch (Exception e) { System.out.println("close\t" + e); }
            show("removeMembers all again", () -> a.removeMembersFromConsumerGroup("g",
                new RemoveMembersFromConsumerGroupOptions()).all());
            show("removeMembers none", () -> a.removeMembersFromConsumerGroup("none",
                new RemoveMembersFromConsumerGroupOptions()).all());
            show("alterConsumerGroupOffsets", () -> a.alterConsumerGroupOffsets("g", Map.of(t0,
                new OffsetAndMetadata(5, "by hand"))).all());
            show("alterConsumerGroupOffsets none", () -> a.alterConsumerGroupOffsets("g", Map.of(none,
                new OffsetAndMetadata(5))).partitionResult(none));
            show("alterConsumerGroupOffsets new", () -> a.alterConsumerGroupOffsets("fresh", Map.of(t0,
                new OffsetAndMetadata(5))).all());
            show("alterConsumerGroupOffsets huge", () -> a.alterConsumerGroupOffsets("fresh", Map.of(t0,
                new OffsetAndMetadata(5, "x".repeat(5000)))).all());
            show("deleteConsumerGroupOffsets", () -> a.deleteConsumerGroupOffsets("g", Set.of(t0)).all());
            show("deleteConsumerGroupOffsets again", () -> a.deleteConsumerGroupOffsets("g", Set.of(t0,
                none)).partitionResult(none));
            show("deleteConsumerGroupOffsets none", () -> a.deleteConsumerGroupOffsets("none", Set.of(t0)).all());
            show("listed after", () -> a.listConsumerGroupOffsets("g").partitionsToOffsetAndMetadata());
            show("deleteConsumerGroups", () -> a.deleteConsumerGroups(List.of("g", "none")).deletedGroups());
            // share, streams groups
            show("alterShareGroupOffsets", () -> a.alterShareGroupOffsets("s", Map.of(t0, 1L)).all());
            show("listShareGroupOffsets", () -> a.listShareGroupOffsets(Map.of("s",
                new ListShareGroupOffsetsSpec())).all());
            show("deleteShareGroupOffsets", () -> a.deleteShareGroupOffsets("s", Set.of("t")).all());
            show("deleteShareGroups", () -> a.deleteShareGroups(List.of("s")).deletedGroups());
            show("alterStreamsGroupOffsets", () -> a.alterStreamsGroupOffsets("st", Map.of(t0,
                new OffsetAndMetadata(1))).all());
            show("listStreamsGroupOffsets", () -> a.listStreamsGroupOffsets(Map.of("st",
                new ListStreamsGroupOffsetsSpec())).all());
            show("deleteStreamsGroupOffsets", () -> a.deleteStreamsGroupOffsets("st", Set.of(t0)).all());
            show("deleteStreamsGroups", () -> a.deleteStreamsGroups(List.of("st")).deletedGroups());
            // configs
            ConfigResource rt = new ConfigResource(ConfigResource.Type.TOPIC, "t");
            show("incrementalAlterConfigs", () -> a.incrementalAlterConfigs(Map.of(rt,
                List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "77777"), AlterConfigOp.OpType.SET),
                new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"),
                AlterConfigOp.OpType.APPEND)))).all());
            show("incrementalAlterConfigs subtract", () -> a.incrementalAlterConfigs(Map.of(rt,
                List.of(new AlterConfigOp(new ConfigEntry("cleanup.policy", "delete"),
                AlterConfigOp.OpType.SUBTRACT), new AlterConfigOp(new ConfigEntry("retention.ms", ""),
                AlterConfigOp.OpType.DELETE)))).all());
            show("describeConfigs", () -> a.describeConfigs(List.of(rt),
                new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true)).all().get().get(rt).get("cleanup.policy"));
            show("describeConfigs none", () ->
                a.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.TOPIC, "none"))).values());
            show("describeConfigs logger", () ->
                a.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.BROKER_LOGGER,
                "1"))).all().get().size());
            show("describeConfigs group", () ->
                a.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.GROUP,
                "g"))).values().values().iterator().next().get().entries().size() > 0);
            show("describeConfigs metrics", () ->
                a.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "m"))).values());
            show("alter group", () ->
                a.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, "g"),
                List.of(new AlterConfigOp(new ConfigEntry("consumer.session.timeout.ms", "50000"),
                AlterConfigOp.OpType.SET)))).all());
            show("alter metrics", () ->
                a.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "m"),
                List.of(new AlterConfigOp(new ConfigEntry("interval.ms", "50000"),
                AlterConfigOp.OpType.SET)))).all());
            show("alter logger", () ->
                a.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1"),
                List.of(new AlterConfigOp(new ConfigEntry("kafka.log", "DEBUG"),
                AlterConfigOp.OpType.SET)))).all());
            show("listConfigResources", () -> a.listConfigResources().all());
            show("listConfigResources topics", () -> a.listConfigResources(Set.of(ConfigResource.Type.TOPIC,
                ConfigResource.Type.BROKER), new ListConfigResourcesOptions()).all());
            show("listConfigResources group", () -> a.listConfigResources(Set.of(ConfigResource.Type.GROUP),
                new ListConfigResourcesOptions()).all());
            show("listClientMetricsResources", () -> a.listClientMetricsResources().all());
            show("clientInstanceId", () -> a.clientInstanceId(Duration.ofSeconds(1)));
            // features
            show("describeFeatures", () -> a.describeFeatures().featureMetadata());
            short level = a.describeFeatures().featureMetadata().get().finalizedFeatures().get("metadata.version").maxVersionLevel();
            show("updateFeatures same", () -> a.updateFeatures(Map.of("metadata.version", new FeatureUpdate(level,
                FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).all());
            show("updateFeatures higher", () -> a.updateFeatures(Map.of("metadata.version",
                new FeatureUpdate((short) 999, FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all());
            show("updateFeatures unknown", () -> a.updateFeatures(Map.of("nonsense", new FeatureUpdate((short) 1,
                FeatureUpdate.UpgradeType.UPGRADE)), new UpdateFeaturesOptions()).values());
            show("updateFeatures delete", () -> a.updateFeatures(Map.of("metadata.version",
                new FeatureUpdate((short) 0, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE)),
                new UpdateFeaturesOptions().validateOnly(true)).all());
            // transactions
            show("listTransactions", () ->
                a.listTransactions(new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING)).filterProducerIds(Set.of(5L)).filterOnDuration(5)).all());
            show("describeTransactions", () -> a.describeTransactions(List.of("tx")).description("tx"));
            show("fenceProducers", () -> a.fenceProducers(List.of("tx")).producerId("tx"));
            show("terminateTransaction", () -> a.forceTerminateTransaction("tx").result());
            show("abortTransaction", () -> a.abortTransaction(new AbortTransactionSpec(t0, 4711, (short) 0,
                0)).all());
            Map<String, Object> tp = new HashMap<>(pp); tp.put("transactional.id", "mine"); tp.put("max.block.ms",
                "8000");
            show("initTransactions", () -> { try (KafkaProducer<String, String> x = new KafkaProducer<>(tp)) {
                x.initTransactions(); } return "fine"; });
            // replicas
            show("electLeaders", () -> a.electLeaders(ElectionType.PREFERRED, Set.of(t0, none)).partitions());
            show("electLeaders unclean", () -> a.electLeaders(ElectionType.UNCLEAN, Set.of(t0, t9)).partitions());
            show("electLeaders all", () -> a.electLeaders(ElectionType.PREFERRED, null).partitions());
            show("alterReassignments", () -> { Map<TopicPartition, Optional<NewPartitionReassignment>>
                m = new HashMap<>(); m.put(t0, Optional.of(new NewPartitionReassignment(List.of(1)))); m.put(t1,
                Optional.empty()); m.put(none, Optional.of(new NewPartitionReassignment(List.of(1))));
                return a.alterPartitionReassignments(m).values(); });
            show("alterReassignments badly", () -> { Map<TopicPartition, Optional<NewPartitionReassignment>>
                m = new HashMap<>(); m.put(t0, Optional.of(new NewPartitionReassignment(List.of(1, 2)))); m.put(t1,
                Optional.of(new NewPartitionReassignment(List.of(1, 1)))); m.put(t9,
                Optional.of(new NewPartitionReassignment(List.of(-3))));
                return a.alterPartitionReassignments(m).values(); });
            show("listReassignments", () -> a.listPartitionReassignments().reassignments());
            show("listReassignments named", () -> a.listPartitionReassignments(Set.of(t0, none)).reassignments());
            show("describeLogDirs", () ->
                a.describeLogDirs(List.of(1)).allDescriptions().get().values().iterator().next().values().iterator().next().replicaInfos().keySet().stream().filter(x -> !x.topic().startsWith("__")).collect(Collectors.toSet()));
            show("describeReplicaLogDirs", () -> a.describeReplicaLogDirs(List.of(new TopicPartitionReplica("t", 0,
                1), new TopicPartitionReplica("none", 0, 1))).all().get().values().stream().map(x ->
                (x.getCurrentReplicaLogDir() != null) + " " + x.getFutureReplicaLogDir() + " " + x.getCurrentReplicaOffsetLag()).collect(Collectors.toList()));
            show("alterReplicaLogDirs", () -> a.alterReplicaLogDirs(Map.of(new TopicPartitionReplica("t", 0, 1),
                "/nowhere", new TopicPartitionReplica("none", 0, 1), "/nowhere", new TopicPartitionReplica("t", 1,
                1), "relative")).values());
            String dir = a.describeLogDirs(List.of(1)).allDescriptions().get().get(1).keySet().iterator().next();
            show("alterReplicaLogDirs same", () -> a.alterReplicaLogDirs(Map.of(new TopicPartitionReplica("t", 0,
                1), dir)).values());
            show("describeMetadataQuorum", () -> { QuorumInfo q = a.describeMetadataQuorum().quorumInfo().get();
                return q.leaderId() + " " + q.voters().stream().map(v ->
                v.replicaId() + " " + v.lastFetchTimestamp().isPresent() + " " + v.lastCaughtUpTimestamp().isPresent()).collect(Collectors.toList()) + " " + q.observers() + " " + q.nodes().keySet(); });
            show("addRaftVoter", () -> a.addRaftVoter(7, Uuid.randomUuid(),
                Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 1))).all());
            show("removeRaftVoter", () -> a.removeRaftVoter(7, Uuid.randomUuid()).all());
            show("unregisterBroker", () -> a.unregisterBroker(7).all());
            // security, quotas
            show("describeAcls", () -> a.describeAcls(AclBindingFilter.ANY).values());
            show("createAcls", () -> a.createAcls(List.of(new AclBinding(new ResourcePattern(ResourceType.TOPIC,
                "t", PatternType.LITERAL), new AccessControlEntry("User:x", "*", AclOperation.READ,
                AclPermissionType.ALLOW)))).values());
            show("deleteAcls", () -> a.deleteAcls(List.of(AclBindingFilter.ANY)).all());
            show("createDelegationToken", () -> a.createDelegationToken().delegationToken());
            show("renewDelegationToken", () -> a.renewDelegationToken(new byte[] {1}).expiryTimestamp());
            show("expireDelegationToken", () -> a.expireDelegationToken(new byte[] {1}).expiryTimestamp());
            show("describeDelegationToken", () -> a.describeDelegationToken().delegationTokens());
            show("describeClientQuotas", () -> a.describeClientQuotas(ClientQuotaFilter.all()).entities());
            show("describeClientQuotas contains", () ->
                a.describeClientQuotas(ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity("user", "x"), ClientQuotaFilterComponent.ofDefaultEntity("client-id")))).entities());
            show("describeClientQuotas odd", () ->
                a.describeClientQuotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity("colour", "red")))).entities());
            show("describeClientQuotas ip user", () ->
                a.describeClientQuotas(ClientQuotaFilter.contains(List.of(ClientQuotaFilterComponent.ofEntity("ip",
                "127.0.0.1"), ClientQuotaFilterComponent.ofEntity("user", "u")))).entities());
            show("alterClientQuotas", () ->
                a.alterClientQuotas(List.of(new ClientQuotaAlteration(new ClientQuotaEntity(Map.of("user", "x")),
                List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1000.0))))).all());
            show("describeUserScramCredentials", () -> a.describeUserScramCredentials().all());
            show("describeUserScramCredentials x", () ->
                a.describeUserScramCredentials(List.of("x")).description("x"));
            show("describeUserScramCredentials users", () -> a.describeUserScramCredentials(List.of("x")).users());
            show("alterUserScramCredentials", () ->
                a.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("x",
                new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).values());
            // partitions, deletion
            show("createPartitions", () -> a.createPartitions(Map.of("t", NewPartitions.increaseTo(4), "u",
                NewPartitions.increaseTo(1), "none", NewPartitions.increaseTo(2), "r", NewPartitions.increaseTo(3,
                List.of(List.of(1))))).values());
            show("createPartitions badly", () -> a.createPartitions(Map.of("t", NewPartitions.increaseTo(2), "r",
                NewPartitions.increaseTo(5, List.of(List.of(1))), "u", NewPartitions.increaseTo(2,
                List.of(List.of(9)))), new CreatePartitionsOptions().validateOnly(true)).values());
            show("deleteTopics", () -> a.deleteTopics(List.of("u", "none")).topicNameValues());
            show("deleteTopics id", () -> a.deleteTopics(TopicCollection.ofTopicIds(List.of(new Uuid(1,
                2)))).topicIdValues());
            Uuid id = a.describeTopics(List.of("r")).allTopicNames().get().get("r").topicId();
            show("deleteTopics by id", () -> a.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all());
            show("listTopics at the end", () -> a.listTopics().names());
            // KIP-848 consumer
            Map<String, Object> np = new HashMap<>(cp); np.remove("group.instance.id"); np.put("group.protocol",
                "consumer"); np.put("group.id", "newer");
            show("consumer protocol", () -> { try (KafkaConsumer<String, String> x = new KafkaConsumer<>(np)) {
                x.subscribe(List.of("t")); for (int i = 0; i < 30; i++) x.poll(Duration.ofMillis(100));
                } return "fine"; });
            Map<String, Object> sp = new HashMap<>(np); sp.remove("group.protocol");
                sp.remove("auto.offset.reset"); sp.remove("enable.auto.commit"); sp.put("group.id", "share");
            show("share consumer", () -> { try (KafkaShareConsumer<String, String>
                x = new KafkaShareConsumer<>(sp)) { x.subscribe(List.of("t")); for (int i = 0; i < 30;
                i++) x.poll(Duration.ofMillis(100)); } return "fine"; });
        }
    }
}
