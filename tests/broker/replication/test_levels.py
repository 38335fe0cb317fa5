"""Tests of the initial feature levels of a new cluster's metadata, and of the records written with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.wire_client import WireClient
from for_each import for_each
from penstock import Cluster
from penstock.broker.metadata.directory_levels import describe
from penstock.broker.metadata.metadata_log import record_head
from penstock.broker.metadata.takeover import metadata_of
from penstock.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from penstock.protocol.messages.api_versions_request import ApiVersionsRequest
from penstock.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest

SOFTWARE = ApiVersionsRequest(client_software_name="t", client_software_version="1")
TOPIC = CreatableTopic(name="t", num_partitions=2, replication_factor=2, assignments=[], configs=[])
USER = ScramCredentialUpsertion(
    name="ann", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"salted"
)
OF_4_0 = {"metadata.version": 25, "transaction.version": 2, "group.version": 1}


def ask(cluster: Cluster, request: Any, version: int) -> Any:
    with WireClient(cluster.ports[0]) as client:
        return client.ask(request, version)


@for_each(
    [
        (None, OF_4_0, {(12, 0), (2, 0), (3, 1), (11, 0)}),
        ("3.9", {"metadata.version": 21}, {(12, 0), (2, 0), (3, 1), (11, 0)}),
        ("3.6", {"metadata.version": 14}, {(12, 0), (2, 0), (3, 0), (11, 0)}),
        ("3.4", {"metadata.version": 8}, {(12, 0), (2, 0), (3, 0)}),
    ]
)
def test_a_new_cluster_has_the_level_of_the_release_it_is_for(
    release: str | None, features: dict[str, int], written: set[tuple[int, int]], tmp_path: Path
) -> None:
    data_dir = tmp_path / str(release)
    settings = {} if release is None else {"penstock_metadata_version": release}
    for is_new in (True, False):
        with Cluster(2, str(data_dir), **settings) as cluster:
            if is_new:
                [made] = ask(cluster, CreateTopicsRequest(topics=[TOPIC], timeout_ms=9000), 7).topics
                assert made.error_code == 0
                [done] = ask(
                    cluster, AlterUserScramCredentialsRequest(deletions=[], upsertions=[USER]), 0
                ).results
                assert done.error_code == (0 if features["metadata.version"] >= 11 else 35)
            told = ask(cluster, SOFTWARE, 4).finalized_features
            found = {each.name: each.max_version_level for each in told}
            assert features.items() <= found.items()
        controller = str(data_dir / "controller")
        assert describe(controller).features == features
        records = metadata_of(controller, f"{controller}/__cluster_metadata-0", written_by_any=True)
        assert {record_head(value)[:2] for value in records.values()} - {(5, 0), (5, 2)} == written
