"""The options of clients as keyword arguments, for editors, type checkers and ``help()``.

Each name is Kafka's with underscores for dots. `penstock.client.config` and
`penstock.client.security.options` parse the options, and a test compares these classes with both. Values may
also be given as text, and under the dotted names in `config`: ``Producer(config={"linger.ms": "5"})``.
Durations are in milliseconds, sizes in bytes.

Clients do not need this module; it is imported only when it is used.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from penstock.client.config import Partitioner

if TYPE_CHECKING:
    import ssl

    from penstock.client.assignors import Assignor
    from penstock.client.statistics import Statistics
    from penstock.security.secrets import Secret

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]


class SecurityOptions(TypedDict, total=False):
    """The security options of connections, by their names in Java, librdkafka and other clients.

    docs/how-to/security.md describes how they work together.
    """

    security_protocol: SecurityProtocol
    """The protocol of connections, with or without TLS and SASL; ``PLAINTEXT`` by default, which has
    neither."""
    ssl_context: ssl.SSLContext
    """An `ssl.SSLContext` of the application, which replaces all other ``ssl_*`` options."""
    ssl_ca_location: str
    """File or directory of the CAs to trust, in PEM; by default the CAs of the operating system."""
    ssl_cafile: str
    """kafka-python's name for ``ssl_ca_location``."""
    ssl_ca_pem: str
    """The CAs to trust, as PEM text."""
    ssl_truststore_location: str
    """File of the CAs to trust: JKS, PKCS12 or PEM."""
    ssl_truststore_type: str
    """JKS, PKCS12 or PEM; by default recognized from the file."""
    ssl_truststore_password: str | Secret
    """Password of the trust store."""
    ssl_truststore_certificates: str
    """Java's name for ``ssl_ca_pem``."""
    ssl_crl_location: str
    """File of revoked certificates, in PEM."""
    ssl_crlfile: str
    """kafka-python's name for ``ssl_crl_location``."""
    ssl_certificate_location: str
    """File of the client's own certificate and its chain, in PEM."""
    ssl_certfile: str
    """kafka-python's name for ``ssl_certificate_location``."""
    ssl_certificate_pem: str
    """The client's own certificate, as PEM text."""
    ssl_keystore_certificate_chain: str
    """Java's name for ``ssl_certificate_pem``."""
    ssl_key_location: str | Secret
    """File of the private key of the client's certificate, in PEM."""
    ssl_keyfile: str | Secret
    """kafka-python's name for ``ssl_key_location``."""
    ssl_key_pem: str | Secret
    """The private key of the client's certificate, as PEM text."""
    ssl_keystore_key: str | Secret
    """Java's name for ``ssl_key_pem``."""
    ssl_key_password: str | Secret
    """Password of the client's private key."""
    ssl_password: str | Secret
    """kafka-python's name for ``ssl_key_password``."""
    ssl_keystore_location: str
    """File with the client's certificate and private key: JKS, PKCS12 or PEM."""
    ssl_keystore_type: str
    """JKS, PKCS12 or PEM; by default recognized from the file."""
    ssl_keystore_password: str | Secret
    """Password of the key store."""
    ssl_endpoint_identification_algorithm: str
    """``https``, the default, verifies host names; an empty text or ``none`` does not."""
    ssl_check_hostname: bool
    """kafka-python's name for ``ssl_endpoint_identification_algorithm``."""
    enable_ssl_certificate_verification: bool
    """Verifies the certificates of brokers; True by default. Use False for tests only."""
    ssl_enabled_protocols: str | Sequence[str]
    """The allowed TLS versions: TLSv1.2, TLSv1.3 or both."""
    ssl_cipher_suites: str
    """The ciphers for TLS 1.2, under OpenSSL's names."""
    ssl_ciphers: str
    """kafka-python's name for ``ssl_cipher_suites``."""
    ssl_curves_list: str
    """The elliptic curve for key exchange."""
    sasl_mechanism: Mechanism
    """The SASL mechanism to log in with."""
    sasl_mechanisms: Mechanism
    """librdkafka's name for ``sasl_mechanism``; it takes one name as well."""
    sasl_username: str | Secret
    """The user, for PLAIN and SCRAM."""
    sasl_plain_username: str | Secret
    """kafka-python's name for ``sasl_username``."""
    sasl_password: str | Secret
    """The password, for PLAIN and SCRAM."""
    sasl_plain_password: str | Secret
    """kafka-python's name for ``sasl_password``."""
    sasl_jaas_config: str | Secret
    """Java's JAAS configuration line, with login module, user and password."""
    sasl_oauthbearer_token_provider: Callable[..., Any]
    """A function that returns a token for each login: text, or text and expiry. It may be async."""
    sasl_oauth_token_provider: Callable[..., Any] | object
    """kafka-python's name for ``sasl_oauthbearer_token_provider``: an object with a method ``token()``."""
    oauth_cb: Callable[..., Any]
    """librdkafka's name for ``sasl_oauthbearer_token_provider``."""
    sasl_oauthbearer_config: str
    """The argument for a token callback that takes one; or the claims of a token without a signature, as in
    librdkafka: ``principal=alice scope=read,write``."""
    sasl_oauthbearer_method: str
    """The source of tokens: ``default`` for a callback, ``oidc`` for a token endpoint."""
    sasl_oauthbearer_token_endpoint_url: str
    """The URL from which tokens are fetched: ``https://...``, or ``file:/...``."""
    sasl_oauthbearer_client_id: str
    """The client's id at the token endpoint."""
    sasl_oauthbearer_client_credentials_client_id: str
    """Java's name for ``sasl_oauthbearer_client_id``."""
    sasl_oauthbearer_client_secret: str | Secret
    """The client's secret at the token endpoint."""
    sasl_oauthbearer_client_credentials_client_secret: str | Secret
    """Java's name for ``sasl_oauthbearer_client_secret``."""
    sasl_oauthbearer_scope: str
    """The scope of requested tokens."""
    sasl_oauthbearer_extensions: str | Mapping[str, str]
    """SASL extensions that go with the token: ``key=value,key=value``."""
    sasl_oauthbearer_header_urlencode: bool
    """URL-encodes client id and secret in the header of the token request."""
    enable_sasl_oauthbearer_unsecure_jwt: bool
    """Allows tokens without a signature, which only brokers under test accept."""
    sasl_login_connect_timeout_ms: float
    """The time limit for connecting to the token endpoint; 10,000 ms by default."""
    https_ca_location: str
    """File of the CAs to trust at the token endpoint."""
    https_ca_pem: str
    """The CAs to trust at the token endpoint, as PEM text."""
    sasl_kerberos_service_name: str
    """The first part of the brokers' principals; ``kafka`` by default."""
    sasl_kerberos_principal: str
    """The client's Kerberos principal."""
    sasl_kerberos_keytab: str
    """File with the client's Kerberos keys."""


class ClientOptions(SecurityOptions, total=False):
    """The options of every client, beside `bootstrap_servers` and `config`."""

    metadata_broker_list: str | Sequence[str]
    """librdkafka's name for ``bootstrap_servers``."""
    client_id: str
    """The name of this client in the brokers' logs and quotas; ``penstock`` by default."""
    request_timeout_ms: float
    """The time limit for a response, after which the request fails; 30,000 ms by default."""
    socket_timeout_ms: float
    """librdkafka's name for ``request_timeout_ms``."""
    default_api_timeout_ms: float
    """The time limit for a call, including retries; 60,000 ms by default."""
    retry_backoff_ms: float
    """The first pause before a request is retried; 100 ms by default."""
    retry_backoff_max_ms: float
    """The longest pause before a request is retried; pauses double up to it; 1,000 ms by default."""
    reconnect_backoff_ms: float
    """The first pause before a broker is reconnected to; 50 ms by default."""
    reconnect_backoff_max_ms: float
    """The longest pause before a broker is reconnected to; pauses double up to it; 1,000 ms by default."""
    socket_connection_setup_timeout_ms: float
    """The time limit for connecting, including TLS and login; 10,000 ms by default."""
    api_version_request: bool
    """Asks brokers for their API versions; True by default. Use False for brokers before 0.10."""
    api_version_request_timeout_ms: float
    """The time limit for the response to ApiVersions; 10,000 ms by default."""
    unstable_api_versions_enable: bool
    """Uses API versions that are not final if brokers offer them; False by default."""
    penstock_login_patience_ms: float
    """The time for which a refused login is retried, if it was accepted before and its secrets come from
    files; 120,000 ms by default."""
    metadata_max_age_ms: float
    """The age at which metadata are refreshed; 300,000 ms by default."""
    topic_metadata_refresh_interval_ms: float
    """librdkafka's name for ``metadata_max_age_ms``."""
    topic_metadata_propagation_max_ms: float
    """The time that an unknown topic may take to appear; 5,000 ms by default."""
    allow_auto_create_topics: bool
    """Lets brokers create unknown topics that the client asks for; True by default for producers only."""
    receive_message_max_bytes: int
    """The maximum size of a response; 256 MiB by default."""
    send_buffer_bytes: int
    """SO_SNDBUF of sockets; -1, the default, leaves it to the operating system."""
    socket_send_buffer_bytes: int
    """librdkafka's name for ``send_buffer_bytes``."""
    receive_buffer_bytes: int
    """SO_RCVBUF of sockets; -1, the default, leaves it to the operating system."""
    socket_receive_buffer_bytes: int
    """librdkafka's name for ``receive_buffer_bytes``."""
    enable_metrics_push: bool
    """Pushes metrics to brokers that ask for them (KIP-714); True by default."""
    statistics_interval_ms: float
    """The interval between calls of ``stats_cb``; 0, the default, means never."""
    stats_cb: Callable[[Statistics], object] | None
    """A function that is called with statistics at intervals, on the client's event loop, or in a thread for
    blocking clients."""


class AdminOptions(ClientOptions, total=False):
    """The options of an admin client: those of every client."""


PartitionerName = Literal[
    "murmur2_random", "murmur2", "consistent_random", "consistent", "fnv1a_random", "fnv1a"
]
CompressionType = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal["all", -1, 0, 1, 2, 3]


class ProducerOptions(ClientOptions, total=False):
    """The options of a producer, beside `bootstrap_servers` and `config`."""

    acks: Acks
    """The replicas that must acknowledge a record: ``all`` in sync (the default), 1 the leader, 0 none.
    Brokers of Kafka 0.8 also accept a greater number of replicas."""
    request_required_acks: Acks
    """librdkafka's name for ``acks``."""
    compression_type: CompressionType | None
    """The compression codec of batches; ``none`` by default."""
    compression_codec: CompressionType | None
    """librdkafka's name for ``compression_type``."""
    linger_ms: float
    """The time that a batch that is not full may wait for more records; 0 ms by default."""
    queue_buffering_max_ms: float
    """librdkafka's name for ``linger_ms``."""
    batch_size: int
    """The maximum size of a batch in bytes; 1,000,000 by default."""
    buffer_memory: int
    """The number of bytes of unacknowledged records above which `send` waits; 32 MiB by default."""
    max_block_ms: float
    """The time that `send` may wait for metadata and buffer memory; 60,000 ms by default."""
    max_request_size: int
    """The maximum size of a request in bytes; 1 MiB by default."""
    message_max_bytes: int
    """librdkafka's name for ``max_request_size``."""
    max_in_flight_requests_per_connection: int
    """The maximum number of requests in flight per connection; 5 by default, the maximum with idempotence."""
    max_in_flight: int
    """librdkafka's name for ``max_in_flight_requests_per_connection``."""
    enable_idempotence: bool | None
    """Lets brokers drop duplicates of retries; by default True if options and brokers allow it."""
    delivery_timeout_ms: float
    """The time that a record may take to be acknowledged, including retries; 120,000 ms by default."""
    message_timeout_ms: float
    """librdkafka's name for ``delivery_timeout_ms``."""
    retries: int
    """The maximum number of retries of a batch within ``delivery_timeout_ms``; 2,147,483,647 by default."""
    message_send_max_retries: int
    """librdkafka's name for ``retries``."""
    partitioner: PartitionerName | Partitioner
    """The partitioner for keys; ``murmur2_random`` by default, as in Java. Or a function of the key and the
    number of partitions."""
    transactional_id: str | None
    """The identity for transactions, the same after a restart; without it, the producer has none."""
    transaction_timeout_ms: float
    """The time that a transaction may be open before the broker aborts it; 60,000 ms by default."""


AutoOffsetReset = (
    Literal["earliest", "latest", "none", "smallest", "beginning", "largest", "end", "error"] | str
)
IsolationLevel = Literal["read_uncommitted", "read_committed"]


GroupProtocol = Literal["classic", "consumer", "auto"]


class ConsumerOptions(ClientOptions, total=False):
    """The options of a consumer, beside `bootstrap_servers` and `config`."""

    auto_offset_reset: AutoOffsetReset
    """The position to begin at if there is no committed offset, or if it is outside the log: ``latest`` (the
    default), ``earliest``, ``none`` for an error, or ``by_duration:PT1H`` for an hour before now."""
    isolation_level: IsolationLevel
    """``read_uncommitted``, the default, or ``read_committed``, which leaves out records of open and aborted
    transactions."""
    fetch_min_bytes: int
    """The number of bytes that a broker waits for before it answers a fetch; 1 by default."""
    fetch_max_wait_ms: int
    """The time that a broker waits for ``fetch_min_bytes``; 500 ms by default."""
    fetch_wait_max_ms: int
    """librdkafka's name for ``fetch_max_wait_ms``."""
    fetch_max_bytes: int
    """The maximum size of a fetch response in bytes; 50 MiB by default."""
    max_partition_fetch_bytes: int
    """The maximum size of one partition in a fetch response in bytes; 1 MiB by default."""
    fetch_message_max_bytes: int
    """librdkafka's name for ``max_partition_fetch_bytes``."""
    max_poll_records: int
    """The maximum number of records that `poll` returns; 500 by default."""
    check_crcs: bool
    """Verifies the checksums of batches; True by default."""
    queued_max_messages_kbytes: int
    """The maximum size in KiB of records fetched ahead; 65,536 by default."""
    penstock_unpack_max_bytes: int
    """The maximum number of bytes that one compressed batch may decompress to."""
    penstock_unpack_max_records: int
    """The maximum number of records in one compressed batch."""
    group_id: str | None
    """The consumer group, which divides the partitions and stores offsets; without it, the application
    assigns partitions."""
    group_instance_id: str | None
    """The name of a static member, which keeps its partitions over a restart."""
    group_protocol: GroupProtocol
    """The side that assigns partitions: with ``classic``, the default, a member of the group; with
    ``consumer`` the broker (KIP-848, Kafka 4.0); with ``auto`` the broker if it supports this."""
    group_remote_assignor: str | None
    """The broker's assignor, with ``group_protocol="consumer"``: ``uniform`` or ``range``; by default the
    first of its ``group.consumer.assignors``."""
    client_rack: str | None
    """The rack of this consumer. Leaders may direct it to a replica in this rack, and assignors get the
    rack."""
    session_timeout_ms: float
    """The time without a heartbeat after which the group removes a member; 45,000 ms by default."""
    heartbeat_interval_ms: float
    """The interval between heartbeats; 3,000 ms by default."""
    max_poll_interval_ms: float
    """The maximum time between two polls of the application; 300,000 ms by default."""
    partition_assignment_strategy: str | Sequence[str | Assignor | type[Assignor]]
    """The assignors in the order of preference; ``range``, then ``cooperative-sticky`` by default."""
    enable_auto_commit: bool
    """Commits positions in the background; True by default."""
    auto_commit_interval_ms: float
    """The interval between automatic commits; 5,000 ms by default."""


class ShareConsumerOptions(ClientOptions, total=False):
    """The options of a share consumer, beside `bootstrap_servers` and `config`."""

    group_id: str
    """The share group, which gives each record to one of its members."""
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    """The way in which records are accepted: with ``implicit``, the default, by the next `poll`; with
    ``explicit`` by calls of `acknowledge`."""
    share_acquire_mode: Literal["batch_optimized", "record_limit"]
    """The number of records that are locked at once: with ``batch_optimized``, the default, whole batches of
    the log; with ``record_limit`` at most ``max_poll_records`` (Kafka 4.2)."""
    max_poll_records: int
    """The maximum number of records that `poll` returns; 500 by default."""
    max_poll_interval_ms: float
    """The maximum time between two polls of the application; 300,000 ms by default."""
    fetch_min_bytes: int
    """The number of bytes that a broker waits for before it answers a fetch; 1 by default."""
    fetch_max_wait_ms: int
    """The time that a broker waits for ``fetch_min_bytes``; 500 ms by default. Acknowledgements may have to
    wait for the same time."""
    fetch_wait_max_ms: int
    """librdkafka's name for ``fetch_max_wait_ms``."""
    fetch_max_bytes: int
    """The maximum size of a fetch response in bytes; 50 MiB by default."""
    check_crcs: bool
    """Verifies the checksums of batches; True by default."""
    penstock_unpack_max_bytes: int
    """The maximum number of bytes that one compressed batch may decompress to."""
    penstock_unpack_max_records: int
    """The maximum number of records in one compressed batch."""
    client_rack: str | None
    """The rack of this consumer, which brokers show in descriptions of the group."""


@cache
def documented(name: str) -> dict[str, tuple[str, str]]:
    """Return a dict from keyword to type and description, for the options of the class `name`."""
    found: dict[str, tuple[str, str]] = {}
    made = _classes()[name]
    for base in made.bases:
        if isinstance(base, ast.Name) and base.id != "TypedDict":
            found |= documented(base.id)
    for statement, after in zip(made.body, made.body[1:], strict=False):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            said = ast.literal_eval(after.value) if isinstance(after, ast.Expr) else ""
            found[statement.target.id] = (ast.unparse(statement.annotation), " ".join(said.split()))
    return found


@cache
def _classes() -> dict[str, ast.ClassDef]:
    """Return the classes of this module as syntax trees.

    Python keeps the strings below the options only there.
    """
    try:
        source = inspect.getsource(sys.modules[__name__])
    except OSError:  # installed without sources
        return {}
    return {made.name: made for made in ast.parse(source).body if isinstance(made, ast.ClassDef)}


_kinds = (
    ClientOptions,
    AdminOptions,
    ProducerOptions,
    ConsumerOptions,
    ShareConsumerOptions,
    SecurityOptions,
)
for _kind in _kinds:
    if _kind.__name__ in _classes():
        _texts = [
            f"    {name}: {kind}\n        {said}" for name, (kind, said) in documented(_kind.__name__).items()
        ]
        # What help() shows.
        _kind.__doc__ = "\n\n".join([_kind.__doc__ or "", *_texts])
