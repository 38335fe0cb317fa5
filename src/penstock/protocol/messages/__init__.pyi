from penstock.protocol.messages.abort_transaction_record import (
    AbortTransactionRecord as AbortTransactionRecord,
)
from penstock.protocol.messages.aborted_txn import AbortedTxn as AbortedTxn
from penstock.protocol.messages.access_control_entry_record import (
    AccessControlEntryRecord as AccessControlEntryRecord,
)
from penstock.protocol.messages.add_offsets_to_txn_request import (
    AddOffsetsToTxnRequest as AddOffsetsToTxnRequest,
)
from penstock.protocol.messages.add_offsets_to_txn_response import (
    AddOffsetsToTxnResponse as AddOffsetsToTxnResponse,
)
from penstock.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest as AddPartitionsToTxnRequest,
)
from penstock.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnResponse as AddPartitionsToTxnResponse,
)
from penstock.protocol.messages.add_raft_voter_request import AddRaftVoterRequest as AddRaftVoterRequest
from penstock.protocol.messages.add_raft_voter_response import AddRaftVoterResponse as AddRaftVoterResponse
from penstock.protocol.messages.allocate_producer_ids_request import (
    AllocateProducerIdsRequest as AllocateProducerIdsRequest,
)
from penstock.protocol.messages.allocate_producer_ids_response import (
    AllocateProducerIdsResponse as AllocateProducerIdsResponse,
)
from penstock.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest as AlterClientQuotasRequest,
)
from penstock.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse as AlterClientQuotasResponse,
)
from penstock.protocol.messages.alter_configs_request import AlterConfigsRequest as AlterConfigsRequest
from penstock.protocol.messages.alter_configs_response import AlterConfigsResponse as AlterConfigsResponse
from penstock.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest as AlterPartitionReassignmentsRequest,
)
from penstock.protocol.messages.alter_partition_reassignments_response import (
    AlterPartitionReassignmentsResponse as AlterPartitionReassignmentsResponse,
)
from penstock.protocol.messages.alter_partition_request import AlterPartitionRequest as AlterPartitionRequest
from penstock.protocol.messages.alter_partition_response import (
    AlterPartitionResponse as AlterPartitionResponse,
)
from penstock.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDirsRequest as AlterReplicaLogDirsRequest,
)
from penstock.protocol.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirsResponse as AlterReplicaLogDirsResponse,
)
from penstock.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest as AlterShareGroupOffsetsRequest,
)
from penstock.protocol.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse as AlterShareGroupOffsetsResponse,
)
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest as AlterUserScramCredentialsRequest,
)
from penstock.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse as AlterUserScramCredentialsResponse,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest as ApiVersionsRequest
from penstock.protocol.messages.api_versions_response import ApiVersionsResponse as ApiVersionsResponse
from penstock.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest as AssignReplicasToDirsRequest,
)
from penstock.protocol.messages.assign_replicas_to_dirs_response import (
    AssignReplicasToDirsResponse as AssignReplicasToDirsResponse,
)
from penstock.protocol.messages.begin_quorum_epoch_request import (
    BeginQuorumEpochRequest as BeginQuorumEpochRequest,
)
from penstock.protocol.messages.begin_quorum_epoch_response import (
    BeginQuorumEpochResponse as BeginQuorumEpochResponse,
)
from penstock.protocol.messages.begin_transaction_record import (
    BeginTransactionRecord as BeginTransactionRecord,
)
from penstock.protocol.messages.broker_heartbeat_request import (
    BrokerHeartbeatRequest as BrokerHeartbeatRequest,
)
from penstock.protocol.messages.broker_heartbeat_response import (
    BrokerHeartbeatResponse as BrokerHeartbeatResponse,
)
from penstock.protocol.messages.broker_registration_change_record import (
    BrokerRegistrationChangeRecord as BrokerRegistrationChangeRecord,
)
from penstock.protocol.messages.broker_registration_request import (
    BrokerRegistrationRequest as BrokerRegistrationRequest,
)
from penstock.protocol.messages.broker_registration_response import (
    BrokerRegistrationResponse as BrokerRegistrationResponse,
)
from penstock.protocol.messages.clear_elr_record import ClearElrRecord as ClearElrRecord
from penstock.protocol.messages.client_quota_record import ClientQuotaRecord as ClientQuotaRecord
from penstock.protocol.messages.config_record import ConfigRecord as ConfigRecord
from penstock.protocol.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey as ConsumerGroupCurrentMemberAssignmentKey,
)
from penstock.protocol.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue as ConsumerGroupCurrentMemberAssignmentValue,
)
from penstock.protocol.messages.consumer_group_describe_request import (
    ConsumerGroupDescribeRequest as ConsumerGroupDescribeRequest,
)
from penstock.protocol.messages.consumer_group_describe_response import (
    ConsumerGroupDescribeResponse as ConsumerGroupDescribeResponse,
)
from penstock.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest as ConsumerGroupHeartbeatRequest,
)
from penstock.protocol.messages.consumer_group_heartbeat_response import (
    ConsumerGroupHeartbeatResponse as ConsumerGroupHeartbeatResponse,
)
from penstock.protocol.messages.consumer_group_member_metadata_key import (
    ConsumerGroupMemberMetadataKey as ConsumerGroupMemberMetadataKey,
)
from penstock.protocol.messages.consumer_group_member_metadata_value import (
    ConsumerGroupMemberMetadataValue as ConsumerGroupMemberMetadataValue,
)
from penstock.protocol.messages.consumer_group_metadata_key import (
    ConsumerGroupMetadataKey as ConsumerGroupMetadataKey,
)
from penstock.protocol.messages.consumer_group_metadata_value import (
    ConsumerGroupMetadataValue as ConsumerGroupMetadataValue,
)
from penstock.protocol.messages.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey as ConsumerGroupPartitionMetadataKey,
)
from penstock.protocol.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue as ConsumerGroupPartitionMetadataValue,
)
from penstock.protocol.messages.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey as ConsumerGroupRegularExpressionKey,
)
from penstock.protocol.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue as ConsumerGroupRegularExpressionValue,
)
from penstock.protocol.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey as ConsumerGroupTargetAssignmentMemberKey,
)
from penstock.protocol.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue as ConsumerGroupTargetAssignmentMemberValue,
)
from penstock.protocol.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey as ConsumerGroupTargetAssignmentMetadataKey,
)
from penstock.protocol.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue as ConsumerGroupTargetAssignmentMetadataValue,
)
from penstock.protocol.messages.consumer_protocol_assignment import (
    ConsumerProtocolAssignment as ConsumerProtocolAssignment,
)
from penstock.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription as ConsumerProtocolSubscription,
)
from penstock.protocol.messages.control_record_type_schema import (
    ControlRecordTypeSchema as ControlRecordTypeSchema,
)
from penstock.protocol.messages.controlled_shutdown_request import (
    ControlledShutdownRequest as ControlledShutdownRequest,
)
from penstock.protocol.messages.controlled_shutdown_response import (
    ControlledShutdownResponse as ControlledShutdownResponse,
)
from penstock.protocol.messages.controller_registration_request import (
    ControllerRegistrationRequest as ControllerRegistrationRequest,
)
from penstock.protocol.messages.controller_registration_response import (
    ControllerRegistrationResponse as ControllerRegistrationResponse,
)
from penstock.protocol.messages.create_acls_request import CreateAclsRequest as CreateAclsRequest
from penstock.protocol.messages.create_acls_response import CreateAclsResponse as CreateAclsResponse
from penstock.protocol.messages.create_delegation_token_request import (
    CreateDelegationTokenRequest as CreateDelegationTokenRequest,
)
from penstock.protocol.messages.create_delegation_token_response import (
    CreateDelegationTokenResponse as CreateDelegationTokenResponse,
)
from penstock.protocol.messages.create_partitions_request import (
    CreatePartitionsRequest as CreatePartitionsRequest,
)
from penstock.protocol.messages.create_partitions_response import (
    CreatePartitionsResponse as CreatePartitionsResponse,
)
from penstock.protocol.messages.create_topics_request import CreateTopicsRequest as CreateTopicsRequest
from penstock.protocol.messages.create_topics_response import CreateTopicsResponse as CreateTopicsResponse
from penstock.protocol.messages.default_principal_data import DefaultPrincipalData as DefaultPrincipalData
from penstock.protocol.messages.delegation_token_record import DelegationTokenRecord as DelegationTokenRecord
from penstock.protocol.messages.delete_acls_request import DeleteAclsRequest as DeleteAclsRequest
from penstock.protocol.messages.delete_acls_response import DeleteAclsResponse as DeleteAclsResponse
from penstock.protocol.messages.delete_groups_request import DeleteGroupsRequest as DeleteGroupsRequest
from penstock.protocol.messages.delete_groups_response import DeleteGroupsResponse as DeleteGroupsResponse
from penstock.protocol.messages.delete_records_request import DeleteRecordsRequest as DeleteRecordsRequest
from penstock.protocol.messages.delete_records_response import DeleteRecordsResponse as DeleteRecordsResponse
from penstock.protocol.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest as DeleteShareGroupOffsetsRequest,
)
from penstock.protocol.messages.delete_share_group_offsets_response import (
    DeleteShareGroupOffsetsResponse as DeleteShareGroupOffsetsResponse,
)
from penstock.protocol.messages.delete_share_group_state_request import (
    DeleteShareGroupStateRequest as DeleteShareGroupStateRequest,
)
from penstock.protocol.messages.delete_share_group_state_response import (
    DeleteShareGroupStateResponse as DeleteShareGroupStateResponse,
)
from penstock.protocol.messages.delete_topics_request import DeleteTopicsRequest as DeleteTopicsRequest
from penstock.protocol.messages.delete_topics_response import DeleteTopicsResponse as DeleteTopicsResponse
from penstock.protocol.messages.describe_acls_request import DescribeAclsRequest as DescribeAclsRequest
from penstock.protocol.messages.describe_acls_response import DescribeAclsResponse as DescribeAclsResponse
from penstock.protocol.messages.describe_client_quotas_request import (
    DescribeClientQuotasRequest as DescribeClientQuotasRequest,
)
from penstock.protocol.messages.describe_client_quotas_response import (
    DescribeClientQuotasResponse as DescribeClientQuotasResponse,
)
from penstock.protocol.messages.describe_cluster_request import (
    DescribeClusterRequest as DescribeClusterRequest,
)
from penstock.protocol.messages.describe_cluster_response import (
    DescribeClusterResponse as DescribeClusterResponse,
)
from penstock.protocol.messages.describe_configs_request import (
    DescribeConfigsRequest as DescribeConfigsRequest,
)
from penstock.protocol.messages.describe_configs_response import (
    DescribeConfigsResponse as DescribeConfigsResponse,
)
from penstock.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenRequest as DescribeDelegationTokenRequest,
)
from penstock.protocol.messages.describe_delegation_token_response import (
    DescribeDelegationTokenResponse as DescribeDelegationTokenResponse,
)
from penstock.protocol.messages.describe_groups_request import DescribeGroupsRequest as DescribeGroupsRequest
from penstock.protocol.messages.describe_groups_response import (
    DescribeGroupsResponse as DescribeGroupsResponse,
)
from penstock.protocol.messages.describe_log_dirs_request import (
    DescribeLogDirsRequest as DescribeLogDirsRequest,
)
from penstock.protocol.messages.describe_log_dirs_response import (
    DescribeLogDirsResponse as DescribeLogDirsResponse,
)
from penstock.protocol.messages.describe_producers_request import (
    DescribeProducersRequest as DescribeProducersRequest,
)
from penstock.protocol.messages.describe_producers_response import (
    DescribeProducersResponse as DescribeProducersResponse,
)
from penstock.protocol.messages.describe_quorum_request import DescribeQuorumRequest as DescribeQuorumRequest
from penstock.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse as DescribeQuorumResponse,
)
from penstock.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest as DescribeShareGroupOffsetsRequest,
)
from penstock.protocol.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse as DescribeShareGroupOffsetsResponse,
)
from penstock.protocol.messages.describe_topic_partitions_request import (
    DescribeTopicPartitionsRequest as DescribeTopicPartitionsRequest,
)
from penstock.protocol.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse as DescribeTopicPartitionsResponse,
)
from penstock.protocol.messages.describe_transactions_request import (
    DescribeTransactionsRequest as DescribeTransactionsRequest,
)
from penstock.protocol.messages.describe_transactions_response import (
    DescribeTransactionsResponse as DescribeTransactionsResponse,
)
from penstock.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest as DescribeUserScramCredentialsRequest,
)
from penstock.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse as DescribeUserScramCredentialsResponse,
)
from penstock.protocol.messages.elect_leaders_request import ElectLeadersRequest as ElectLeadersRequest
from penstock.protocol.messages.elect_leaders_response import ElectLeadersResponse as ElectLeadersResponse
from penstock.protocol.messages.end_quorum_epoch_request import EndQuorumEpochRequest as EndQuorumEpochRequest
from penstock.protocol.messages.end_quorum_epoch_response import (
    EndQuorumEpochResponse as EndQuorumEpochResponse,
)
from penstock.protocol.messages.end_transaction_record import EndTransactionRecord as EndTransactionRecord
from penstock.protocol.messages.end_txn_marker import EndTxnMarker as EndTxnMarker
from penstock.protocol.messages.end_txn_request import EndTxnRequest as EndTxnRequest
from penstock.protocol.messages.end_txn_response import EndTxnResponse as EndTxnResponse
from penstock.protocol.messages.envelope_request import EnvelopeRequest as EnvelopeRequest
from penstock.protocol.messages.envelope_response import EnvelopeResponse as EnvelopeResponse
from penstock.protocol.messages.expire_delegation_token_request import (
    ExpireDelegationTokenRequest as ExpireDelegationTokenRequest,
)
from penstock.protocol.messages.expire_delegation_token_response import (
    ExpireDelegationTokenResponse as ExpireDelegationTokenResponse,
)
from penstock.protocol.messages.feature_level_record import FeatureLevelRecord as FeatureLevelRecord
from penstock.protocol.messages.fence_broker_record import FenceBrokerRecord as FenceBrokerRecord
from penstock.protocol.messages.fetch_request import FetchRequest as FetchRequest
from penstock.protocol.messages.fetch_response import FetchResponse as FetchResponse
from penstock.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest as FetchSnapshotRequest
from penstock.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse as FetchSnapshotResponse
from penstock.protocol.messages.find_coordinator_request import (
    FindCoordinatorRequest as FindCoordinatorRequest,
)
from penstock.protocol.messages.find_coordinator_response import (
    FindCoordinatorResponse as FindCoordinatorResponse,
)
from penstock.protocol.messages.get_telemetry_subscriptions_request import (
    GetTelemetrySubscriptionsRequest as GetTelemetrySubscriptionsRequest,
)
from penstock.protocol.messages.get_telemetry_subscriptions_response import (
    GetTelemetrySubscriptionsResponse as GetTelemetrySubscriptionsResponse,
)
from penstock.protocol.messages.group_metadata_key import GroupMetadataKey as GroupMetadataKey
from penstock.protocol.messages.group_metadata_value import GroupMetadataValue as GroupMetadataValue
from penstock.protocol.messages.heartbeat_request import HeartbeatRequest as HeartbeatRequest
from penstock.protocol.messages.heartbeat_response import HeartbeatResponse as HeartbeatResponse
from penstock.protocol.messages.incremental_alter_configs_request import (
    IncrementalAlterConfigsRequest as IncrementalAlterConfigsRequest,
)
from penstock.protocol.messages.incremental_alter_configs_response import (
    IncrementalAlterConfigsResponse as IncrementalAlterConfigsResponse,
)
from penstock.protocol.messages.init_producer_id_request import InitProducerIdRequest as InitProducerIdRequest
from penstock.protocol.messages.init_producer_id_response import (
    InitProducerIdResponse as InitProducerIdResponse,
)
from penstock.protocol.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest as InitializeShareGroupStateRequest,
)
from penstock.protocol.messages.initialize_share_group_state_response import (
    InitializeShareGroupStateResponse as InitializeShareGroupStateResponse,
)
from penstock.protocol.messages.join_group_request import JoinGroupRequest as JoinGroupRequest
from penstock.protocol.messages.join_group_response import JoinGroupResponse as JoinGroupResponse
from penstock.protocol.messages.k_raft_version_record import KRaftVersionRecord as KRaftVersionRecord
from penstock.protocol.messages.leader_and_isr_request import LeaderAndIsrRequest as LeaderAndIsrRequest
from penstock.protocol.messages.leader_and_isr_response import LeaderAndIsrResponse as LeaderAndIsrResponse
from penstock.protocol.messages.leader_change_message import LeaderChangeMessage as LeaderChangeMessage
from penstock.protocol.messages.leave_group_request import LeaveGroupRequest as LeaveGroupRequest
from penstock.protocol.messages.leave_group_response import LeaveGroupResponse as LeaveGroupResponse
from penstock.protocol.messages.legacy_offset_commit_key import LegacyOffsetCommitKey as LegacyOffsetCommitKey
from penstock.protocol.messages.legacy_offset_commit_value import (
    LegacyOffsetCommitValue as LegacyOffsetCommitValue,
)
from penstock.protocol.messages.list_config_resources_request import (
    ListConfigResourcesRequest as ListConfigResourcesRequest,
)
from penstock.protocol.messages.list_config_resources_response import (
    ListConfigResourcesResponse as ListConfigResourcesResponse,
)
from penstock.protocol.messages.list_groups_request import ListGroupsRequest as ListGroupsRequest
from penstock.protocol.messages.list_groups_response import ListGroupsResponse as ListGroupsResponse
from penstock.protocol.messages.list_offsets_request import ListOffsetsRequest as ListOffsetsRequest
from penstock.protocol.messages.list_offsets_response import ListOffsetsResponse as ListOffsetsResponse
from penstock.protocol.messages.list_partition_reassignments_request import (
    ListPartitionReassignmentsRequest as ListPartitionReassignmentsRequest,
)
from penstock.protocol.messages.list_partition_reassignments_response import (
    ListPartitionReassignmentsResponse as ListPartitionReassignmentsResponse,
)
from penstock.protocol.messages.list_transactions_request import (
    ListTransactionsRequest as ListTransactionsRequest,
)
from penstock.protocol.messages.list_transactions_response import (
    ListTransactionsResponse as ListTransactionsResponse,
)
from penstock.protocol.messages.metadata_request import MetadataRequest as MetadataRequest
from penstock.protocol.messages.metadata_response import MetadataResponse as MetadataResponse
from penstock.protocol.messages.no_op_record import NoOpRecord as NoOpRecord
from penstock.protocol.messages.offset_commit_key import OffsetCommitKey as OffsetCommitKey
from penstock.protocol.messages.offset_commit_request import OffsetCommitRequest as OffsetCommitRequest
from penstock.protocol.messages.offset_commit_response import OffsetCommitResponse as OffsetCommitResponse
from penstock.protocol.messages.offset_commit_value import OffsetCommitValue as OffsetCommitValue
from penstock.protocol.messages.offset_delete_request import OffsetDeleteRequest as OffsetDeleteRequest
from penstock.protocol.messages.offset_delete_response import OffsetDeleteResponse as OffsetDeleteResponse
from penstock.protocol.messages.offset_fetch_request import OffsetFetchRequest as OffsetFetchRequest
from penstock.protocol.messages.offset_fetch_response import OffsetFetchResponse as OffsetFetchResponse
from penstock.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest as OffsetForLeaderEpochRequest,
)
from penstock.protocol.messages.offset_for_leader_epoch_response import (
    OffsetForLeaderEpochResponse as OffsetForLeaderEpochResponse,
)
from penstock.protocol.messages.partition_change_record import PartitionChangeRecord as PartitionChangeRecord
from penstock.protocol.messages.partition_record import PartitionRecord as PartitionRecord
from penstock.protocol.messages.produce_request import ProduceRequest as ProduceRequest
from penstock.protocol.messages.produce_response import ProduceResponse as ProduceResponse
from penstock.protocol.messages.producer_ids_record import ProducerIdsRecord as ProducerIdsRecord
from penstock.protocol.messages.producer_snapshot import ProducerSnapshot as ProducerSnapshot
from penstock.protocol.messages.push_telemetry_request import PushTelemetryRequest as PushTelemetryRequest
from penstock.protocol.messages.push_telemetry_response import PushTelemetryResponse as PushTelemetryResponse
from penstock.protocol.messages.quorum_state_data import QuorumStateData as QuorumStateData
from penstock.protocol.messages.read_share_group_state_request import (
    ReadShareGroupStateRequest as ReadShareGroupStateRequest,
)
from penstock.protocol.messages.read_share_group_state_response import (
    ReadShareGroupStateResponse as ReadShareGroupStateResponse,
)
from penstock.protocol.messages.read_share_group_state_summary_request import (
    ReadShareGroupStateSummaryRequest as ReadShareGroupStateSummaryRequest,
)
from penstock.protocol.messages.read_share_group_state_summary_response import (
    ReadShareGroupStateSummaryResponse as ReadShareGroupStateSummaryResponse,
)
from penstock.protocol.messages.register_broker_record import RegisterBrokerRecord as RegisterBrokerRecord
from penstock.protocol.messages.register_controller_record import (
    RegisterControllerRecord as RegisterControllerRecord,
)
from penstock.protocol.messages.remote_log_segment_metadata_record import (
    RemoteLogSegmentMetadataRecord as RemoteLogSegmentMetadataRecord,
)
from penstock.protocol.messages.remote_log_segment_metadata_snapshot_record import (
    RemoteLogSegmentMetadataSnapshotRecord as RemoteLogSegmentMetadataSnapshotRecord,
)
from penstock.protocol.messages.remote_log_segment_metadata_update_record import (
    RemoteLogSegmentMetadataUpdateRecord as RemoteLogSegmentMetadataUpdateRecord,
)
from penstock.protocol.messages.remote_partition_delete_metadata_record import (
    RemotePartitionDeleteMetadataRecord as RemotePartitionDeleteMetadataRecord,
)
from penstock.protocol.messages.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord as RemoveAccessControlEntryRecord,
)
from penstock.protocol.messages.remove_delegation_token_record import (
    RemoveDelegationTokenRecord as RemoveDelegationTokenRecord,
)
from penstock.protocol.messages.remove_raft_voter_request import (
    RemoveRaftVoterRequest as RemoveRaftVoterRequest,
)
from penstock.protocol.messages.remove_raft_voter_response import (
    RemoveRaftVoterResponse as RemoveRaftVoterResponse,
)
from penstock.protocol.messages.remove_topic_record import RemoveTopicRecord as RemoveTopicRecord
from penstock.protocol.messages.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord as RemoveUserScramCredentialRecord,
)
from penstock.protocol.messages.renew_delegation_token_request import (
    RenewDelegationTokenRequest as RenewDelegationTokenRequest,
)
from penstock.protocol.messages.renew_delegation_token_response import (
    RenewDelegationTokenResponse as RenewDelegationTokenResponse,
)
from penstock.protocol.messages.request_header import RequestHeader as RequestHeader
from penstock.protocol.messages.response_header import ResponseHeader as ResponseHeader
from penstock.protocol.messages.sasl_authenticate_request import (
    SaslAuthenticateRequest as SaslAuthenticateRequest,
)
from penstock.protocol.messages.sasl_authenticate_response import (
    SaslAuthenticateResponse as SaslAuthenticateResponse,
)
from penstock.protocol.messages.sasl_handshake_request import SaslHandshakeRequest as SaslHandshakeRequest
from penstock.protocol.messages.sasl_handshake_response import SaslHandshakeResponse as SaslHandshakeResponse
from penstock.protocol.messages.share_acknowledge_request import (
    ShareAcknowledgeRequest as ShareAcknowledgeRequest,
)
from penstock.protocol.messages.share_acknowledge_response import (
    ShareAcknowledgeResponse as ShareAcknowledgeResponse,
)
from penstock.protocol.messages.share_fetch_request import ShareFetchRequest as ShareFetchRequest
from penstock.protocol.messages.share_fetch_response import ShareFetchResponse as ShareFetchResponse
from penstock.protocol.messages.share_group_current_member_assignment_key import (
    ShareGroupCurrentMemberAssignmentKey as ShareGroupCurrentMemberAssignmentKey,
)
from penstock.protocol.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue as ShareGroupCurrentMemberAssignmentValue,
)
from penstock.protocol.messages.share_group_describe_request import (
    ShareGroupDescribeRequest as ShareGroupDescribeRequest,
)
from penstock.protocol.messages.share_group_describe_response import (
    ShareGroupDescribeResponse as ShareGroupDescribeResponse,
)
from penstock.protocol.messages.share_group_heartbeat_request import (
    ShareGroupHeartbeatRequest as ShareGroupHeartbeatRequest,
)
from penstock.protocol.messages.share_group_heartbeat_response import (
    ShareGroupHeartbeatResponse as ShareGroupHeartbeatResponse,
)
from penstock.protocol.messages.share_group_member_metadata_key import (
    ShareGroupMemberMetadataKey as ShareGroupMemberMetadataKey,
)
from penstock.protocol.messages.share_group_member_metadata_value import (
    ShareGroupMemberMetadataValue as ShareGroupMemberMetadataValue,
)
from penstock.protocol.messages.share_group_metadata_key import ShareGroupMetadataKey as ShareGroupMetadataKey
from penstock.protocol.messages.share_group_metadata_value import (
    ShareGroupMetadataValue as ShareGroupMetadataValue,
)
from penstock.protocol.messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey as ShareGroupStatePartitionMetadataKey,
)
from penstock.protocol.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue as ShareGroupStatePartitionMetadataValue,
)
from penstock.protocol.messages.share_group_target_assignment_member_key import (
    ShareGroupTargetAssignmentMemberKey as ShareGroupTargetAssignmentMemberKey,
)
from penstock.protocol.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue as ShareGroupTargetAssignmentMemberValue,
)
from penstock.protocol.messages.share_group_target_assignment_metadata_key import (
    ShareGroupTargetAssignmentMetadataKey as ShareGroupTargetAssignmentMetadataKey,
)
from penstock.protocol.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue as ShareGroupTargetAssignmentMetadataValue,
)
from penstock.protocol.messages.share_snapshot_key import ShareSnapshotKey as ShareSnapshotKey
from penstock.protocol.messages.share_snapshot_value import ShareSnapshotValue as ShareSnapshotValue
from penstock.protocol.messages.share_update_key import ShareUpdateKey as ShareUpdateKey
from penstock.protocol.messages.share_update_value import ShareUpdateValue as ShareUpdateValue
from penstock.protocol.messages.snapshot_footer_record import SnapshotFooterRecord as SnapshotFooterRecord
from penstock.protocol.messages.snapshot_header_record import SnapshotHeaderRecord as SnapshotHeaderRecord
from penstock.protocol.messages.stop_replica_request import StopReplicaRequest as StopReplicaRequest
from penstock.protocol.messages.stop_replica_response import StopReplicaResponse as StopReplicaResponse
from penstock.protocol.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey as StreamsGroupCurrentMemberAssignmentKey,
)
from penstock.protocol.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue as StreamsGroupCurrentMemberAssignmentValue,
)
from penstock.protocol.messages.streams_group_describe_request import (
    StreamsGroupDescribeRequest as StreamsGroupDescribeRequest,
)
from penstock.protocol.messages.streams_group_describe_response import (
    StreamsGroupDescribeResponse as StreamsGroupDescribeResponse,
)
from penstock.protocol.messages.streams_group_heartbeat_request import (
    StreamsGroupHeartbeatRequest as StreamsGroupHeartbeatRequest,
)
from penstock.protocol.messages.streams_group_heartbeat_response import (
    StreamsGroupHeartbeatResponse as StreamsGroupHeartbeatResponse,
)
from penstock.protocol.messages.streams_group_member_metadata_key import (
    StreamsGroupMemberMetadataKey as StreamsGroupMemberMetadataKey,
)
from penstock.protocol.messages.streams_group_member_metadata_value import (
    StreamsGroupMemberMetadataValue as StreamsGroupMemberMetadataValue,
)
from penstock.protocol.messages.streams_group_metadata_key import (
    StreamsGroupMetadataKey as StreamsGroupMetadataKey,
)
from penstock.protocol.messages.streams_group_metadata_value import (
    StreamsGroupMetadataValue as StreamsGroupMetadataValue,
)
from penstock.protocol.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey as StreamsGroupTargetAssignmentMemberKey,
)
from penstock.protocol.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue as StreamsGroupTargetAssignmentMemberValue,
)
from penstock.protocol.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey as StreamsGroupTargetAssignmentMetadataKey,
)
from penstock.protocol.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue as StreamsGroupTargetAssignmentMetadataValue,
)
from penstock.protocol.messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest as StreamsGroupTopologyDescriptionUpdateRequest,
)
from penstock.protocol.messages.streams_group_topology_description_update_response import (
    StreamsGroupTopologyDescriptionUpdateResponse as StreamsGroupTopologyDescriptionUpdateResponse,
)
from penstock.protocol.messages.streams_group_topology_key import (
    StreamsGroupTopologyKey as StreamsGroupTopologyKey,
)
from penstock.protocol.messages.streams_group_topology_value import (
    StreamsGroupTopologyValue as StreamsGroupTopologyValue,
)
from penstock.protocol.messages.sync_group_request import SyncGroupRequest as SyncGroupRequest
from penstock.protocol.messages.sync_group_response import SyncGroupResponse as SyncGroupResponse
from penstock.protocol.messages.topic_record import TopicRecord as TopicRecord
from penstock.protocol.messages.transaction_log_key import TransactionLogKey as TransactionLogKey
from penstock.protocol.messages.transaction_log_value import TransactionLogValue as TransactionLogValue
from penstock.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest as TxnOffsetCommitRequest,
)
from penstock.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse as TxnOffsetCommitResponse,
)
from penstock.protocol.messages.unfence_broker_record import UnfenceBrokerRecord as UnfenceBrokerRecord
from penstock.protocol.messages.unregister_broker_record import (
    UnregisterBrokerRecord as UnregisterBrokerRecord,
)
from penstock.protocol.messages.unregister_broker_request import (
    UnregisterBrokerRequest as UnregisterBrokerRequest,
)
from penstock.protocol.messages.unregister_broker_response import (
    UnregisterBrokerResponse as UnregisterBrokerResponse,
)
from penstock.protocol.messages.unregister_controller_record import (
    UnregisterControllerRecord as UnregisterControllerRecord,
)
from penstock.protocol.messages.unregister_controller_request import (
    UnregisterControllerRequest as UnregisterControllerRequest,
)
from penstock.protocol.messages.unregister_controller_response import (
    UnregisterControllerResponse as UnregisterControllerResponse,
)
from penstock.protocol.messages.update_features_request import UpdateFeaturesRequest as UpdateFeaturesRequest
from penstock.protocol.messages.update_features_response import (
    UpdateFeaturesResponse as UpdateFeaturesResponse,
)
from penstock.protocol.messages.update_metadata_request import UpdateMetadataRequest as UpdateMetadataRequest
from penstock.protocol.messages.update_metadata_response import (
    UpdateMetadataResponse as UpdateMetadataResponse,
)
from penstock.protocol.messages.update_raft_voter_request import (
    UpdateRaftVoterRequest as UpdateRaftVoterRequest,
)
from penstock.protocol.messages.update_raft_voter_response import (
    UpdateRaftVoterResponse as UpdateRaftVoterResponse,
)
from penstock.protocol.messages.user_scram_credential_record import (
    UserScramCredentialRecord as UserScramCredentialRecord,
)
from penstock.protocol.messages.vote_request import VoteRequest as VoteRequest
from penstock.protocol.messages.vote_response import VoteResponse as VoteResponse
from penstock.protocol.messages.voters_record import VotersRecord as VotersRecord
from penstock.protocol.messages.write_share_group_state_request import (
    WriteShareGroupStateRequest as WriteShareGroupStateRequest,
)
from penstock.protocol.messages.write_share_group_state_response import (
    WriteShareGroupStateResponse as WriteShareGroupStateResponse,
)
from penstock.protocol.messages.write_txn_markers_request import (
    WriteTxnMarkersRequest as WriteTxnMarkersRequest,
)
from penstock.protocol.messages.write_txn_markers_response import (
    WriteTxnMarkersResponse as WriteTxnMarkersResponse,
)
from penstock.protocol.messages.zk_migration_state_record import (
    ZkMigrationStateRecord as ZkMigrationStateRecord,
)
