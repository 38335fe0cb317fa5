"""The error codes of the protocol: number, name, whether a retry may succeed, and a description."""

from __future__ import annotations

from enum import IntEnum

from penstock.errors import (
    AuthorizationError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)


class ErrorCode(IntEnum):
    """An error code that a broker sends."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133
    GROUP_DELETION_FAILED = 134
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135
    CONTROLLER_ID_NOT_REGISTERED = 136

    @property
    def retriable(self) -> bool:
        """True if the same request may succeed later, perhaps after a refresh of metadata."""
        return self in _RETRIABLE

    @property
    def description(self) -> str:
        """The meaning of the error, in one sentence."""
        return _DESCRIPTIONS[self]


def error_for(code: int, context: str = "") -> KafkaError:
    """Return the exception for an error code. Its message begins with `context`, the failed action.

    A code that is not in the table, perhaps from a newer broker, gives an error that is not retriable.
    """
    try:
        known = ErrorCode(code)
    except ValueError:
        name, text, retriable = f"ERROR_{code}", f"The broker answered with error code {code}.", False
    else:
        name, text, retriable = known.name, known.description, known.retriable
    kind, cure = _REFUSALS.get(code, (KafkaError, ""))
    beginning = context.removesuffix(".")
    message = f"{beginning}: {text} ({name}){cure}" if context else f"{text} ({name}){cure}"
    return kind(code, name, message, retriable=retriable, detail=context or text)


_REFUSALS: dict[int, tuple[type[KafkaError], str]] = {
    29: (
        TopicAuthorizationError,
        "; an ACL has to allow it: READ to consume, WRITE to produce, DESCRIBE to see",
    ),
    30: (GroupAuthorizationError, "; an ACL has to allow READ on the group"),
    31: (ClusterAuthorizationError, "; an ACL has to allow it on the cluster"),
    53: (TransactionalIdAuthorizationError, "; an ACL has to allow WRITE on the transactional id"),
    54: (KafkaError, "; access rules need authorizer.class.name among the settings of the broker"),
    65: (AuthorizationError, ""),
}
"""A dict from each error code about missing authorization to the exception class and advice for the
message."""

_RETRIABLE = frozenset(
    (
        2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84,
        88, 89, 100, 103, 106, 122, 123, 133,
    )
)  # fmt: skip

_DESCRIPTIONS = {
    -1: "The broker failed in a way it has no code for.",
    0: "All went well.",
    1: "The offset is before the start or past the end of the partition's log.",
    2: "A record batch fails its checksum, its size, or a rule of the topic about keys.",
    3: "This broker has no such topic or partition.",
    4: "The fetch size asked for is not possible.",
    5: "The partition has no leader at the moment, as during an election.",
    6: "This broker neither leads the partition nor follows it in the role asked for.",
    7: "The broker could not finish within the time the request allowed.",
    8: "The broker needed for this is not up.",
    9: "A replica that the partition should have is missing on this broker.",
    10: "A record batch is larger than the broker or topic accepts.",
    11: "The request comes from a controller that has been replaced.",
    12: "The text stored with an offset is longer than the broker accepts.",
    13: "The connection broke before an answer came.",
    14: "The coordinator is still reading its state and cannot answer yet.",
    15: "There is no coordinator for this group or transaction at the moment.",
    16: "Another broker coordinates this group or transaction.",
    17: "The name cannot be a topic's, or the topic may not be used this way.",
    18: "The batch is larger than a segment of the log.",
    19: "Fewer replicas are in sync than the topic demands; nothing was written.",
    20: "The records were written, but to fewer replicas than the topic demands.",
    21: "The number of acknowledgements must be -1, 0 or 1.",
    22: "The member speaks of a generation of the group that is not the current one.",
    23: "The member offers no protocol that the rest of the group has too.",
    24: "The group id is empty or otherwise not possible.",
    25: "The group has no member with this id; it must join anew.",
    26: "The session timeout is outside the range the broker allows.",
    27: "The group is dividing its partitions anew; the member must join again.",
    28: "The offset was not stored because its entry would be too large.",
    29: "The user may not do this with the topic.",
    30: "The user may not do this with the group.",
    31: "The user may not do this with the cluster.",
    32: "A record's timestamp is too far from the broker's time.",
    33: "The broker does not offer this way to authenticate.",
    34: "The request does not fit this stage of authentication.",
    35: "The broker does not speak this version of the request.",
    36: "There is a topic of this name already.",
    37: "The number of partitions is not possible.",
    38: "The replication factor is below one or above the number of brokers.",
    39: "The assignment of replicas to brokers contradicts itself.",
    40: "A configuration entry has an unknown name or an impossible value.",
    41: "This node is not the controller of the cluster at the moment.",
    42: "The request contradicts itself or the rules of its API.",
    43: "The record format that the topic is stored in does not allow this.",
    44: "A policy of the cluster's operators forbids this.",
    45: "The producer's batch does not follow the last one that the broker has.",
    46: "The broker has this batch of the producer already.",
    47: "A newer producer with the same id has taken over.",
    48: "The transaction is in a state that does not allow this step.",
    49: "The transactional id belongs to another producer id.",
    50: "The transaction timeout is longer than the broker allows.",
    51: "The previous transaction of this producer is still being completed.",
    52: "A newer transaction coordinator has taken over.",
    53: "The user may not use the transactional id.",
    54: "The broker runs without the security feature that was asked about.",
    55: "Another part of the request failed, so this part was not tried.",
    56: "The broker could not read or write its disk.",
    57: "The broker has no such log directory.",
    58: "The credentials were not accepted.",
    59: "The broker has no record left of this producer.",
    60: "The partition is being moved between brokers.",
    61: "Delegation tokens are not switched on.",
    62: "There is no such delegation token.",
    63: "The delegation token belongs to another principal.",
    64: "This connection may not ask for delegation tokens.",
    65: "The user may not do this with the delegation token.",
    66: "The delegation token is no longer valid.",
    67: "The kind of principal is not supported here.",
    68: "The group still has members.",
    69: "There is no such group.",
    70: "The broker has dropped the fetch session.",
    71: "The fetch session is at another step than the request assumes.",
    72: "The partition's leader has no listener like the one that was asked.",
    73: "Topics cannot be deleted on this cluster.",
    74: "The request names a leader epoch older than the broker's.",
    75: "The request names a leader epoch newer than the broker's.",
    76: "The asking client cannot read the codec that the records are stored in.",
    77: "The request comes from a former life of the broker.",
    78: "The new leader cannot yet say how far the partition is committed.",
    79: "The member must join again with the id that it was given.",
    80: "The preferred leader is not up or not in sync.",
    81: "The group has as many members as it may have.",
    82: "Another member has joined with the same static instance id.",
    83: "No replica that could lead the partition is up.",
    84: "The partition has the leader that an election would give it.",
    85: "The partition is not being moved.",
    86: "A group that reads the topic still needs its offsets.",
    87: "A record breaks a rule of the broker and its whole batch was refused.",
    88: "Offsets committed in an unfinished transaction are not settled yet.",
    89: "The client has used up its quota for such requests.",
    90: "A newer producer with the same transactional id has taken over.",
    91: "What the request names does not exist.",
    92: "The request names something twice, or it exists already.",
    93: "The new credential does not meet the rules.",
    94: "One side has voters of the quorum that the other has not.",
    95: "There is no such level of the feature, or it cannot be reached from the present one.",
    96: "The cluster's features could not be changed.",
    97: "The principal inside a forwarded request cannot be read.",
    98: "There is no such snapshot.",
    99: "The position is outside the snapshot.",
    100: "This broker has no topic with this id.",
    101: "A broker with this id is registered and alive.",
    102: "No broker with this id is registered.",
    103: "The topic id is not the one that the log was made for.",
    104: "The request was meant for another cluster.",
    105: "There is no such transactional id.",
    106: "A fetch session mixes topics with and without ids.",
    107: "A replica that should join those in sync may not.",
    108: "The change was made, and it brought the partition a new leader.",
    109: "The offset asked for lies in tiered storage.",
    110: "The coordinator has moved on without the member, which must join anew.",
    111: "Another member still holds the static instance id.",
    112: "The coordinator does not have the assignor that was asked for.",
    113: "The member's epoch is over; the next heartbeat has the new one.",
    114: "The request came to a broker but was meant for a controller, or the reverse.",
    115: "The kind of endpoint asked for is not known here.",
    116: "There is no controller with this id.",
    117: "The client's telemetry subscription has been replaced; it must ask for the new one.",
    118: "The telemetry pushed is larger than the broker accepts.",
    119: "The controller refused what a broker said about itself.",
    120: "The transaction cannot go on; aborting it lets the producer continue.",
    121: "The record is not in a state that allows the acknowledgement.",
    122: "The broker has dropped the share session.",
    123: "The share session is at another step than the request assumes.",
    124: "A newer owner of the share group's state has taken over.",
    125: "The voter key is not this replica's.",
    126: "The voter belongs to the quorum already.",
    127: "The quorum has no such voter.",
    128: "The pattern is no regular expression that the broker can use.",
    129: "The client must drop its metadata and begin at its bootstrap servers.",
    130: "The topology of a streams application is not possible.",
    131: "The epoch of a streams topology is not possible.",
    132: "The streams group has moved on to a newer topology.",
    133: "The broker has as many share sessions as it allows.",
    134: "The group could not be deleted.",
    135: "The description of a streams topology could not be stored.",
    136: "No controller with this id is registered.",
}
