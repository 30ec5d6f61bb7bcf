"""ApiVersions: the listed APIs, the features of each version, and odd client names."""

import pytest

from barnabas.broker.handlers.api_versions import handle_api_versions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.newer.api_versions_v5 import ApiVersionsRequest
from barnabas.protocol.primitive import BrokerId
from tests.broker.handlers.admin_broker import AdminBroker, ask


def request(
    name: str = "client", version: str = "1.0", *, cluster_id: str | None = None, node_id: int = -1
) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name=name,
        client_software_version=version,
        cluster_id=cluster_id,
        node_id=BrokerId(node_id),
    )


async def test_the_apis_that_librdkafka_and_java_need_are_listed(broker: AdminBroker) -> None:
    response = await ask(broker, handle_api_versions, request())
    ranges = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    assert ranges[0] == (0, 13)
    assert ranges[1] == (4, 18)
    assert ranges[18] == (0, 5)
    assert ranges[78] == (1, 2)
    assert not ranges.keys() & {71, 72, 83, 84, 85, 86, 87}


async def test_features_that_may_be_absent_are_left_out_for_version_3(broker: AdminBroker) -> None:
    newest = await ask(broker, handle_api_versions, request())
    assert [(one.name, one.min_version, one.max_version) for one in newest.supported_features] == [
        ("metadata.version", 7, 33),
        ("group.version", 0, 1),
        ("share.version", 0, 2),
        ("transaction.version", 0, 2),
        ("individual.commit", 1, 1),
        ("release.delay", 1, 1),
        ("share.transactional.acknowledgement", 1, 1),
    ]
    older = await ask(broker, handle_api_versions, request(), version=3)
    assert [one.name for one in older.supported_features] == [
        "metadata.version",
        "individual.commit",
        "release.delay",
        "share.transactional.acknowledgement",
    ]
    for response in (newest, older):
        assert {
            (one.name, one.min_version_level, one.max_version_level) for one in response.finalized_features
        } == {
            ("metadata.version", 33, 33),
            ("group.version", 1, 1),
            ("share.version", 2, 2),
            ("transaction.version", 2, 2),
            ("individual.commit", 1, 1),
            ("release.delay", 1, 1),
            ("share.transactional.acknowledgement", 1, 1),
        }
        assert response.finalized_features_epoch == broker.metadata.last_offset


@pytest.mark.parametrize(
    ("name", "version", "valid"),
    [
        ("a", "1", True),
        ("a.b-c", "1.0", True),
        ("", "1", False),
        ("a", "", False),
        ("-a", "1", False),
        ("a-", "1", False),
        ("a b", "1", False),
        ("a", "-1", False),
    ],
)
async def test_a_client_name_must_have_valid_characters(
    broker: AdminBroker, name: str, version: str, valid: bool
) -> None:
    response = await ask(broker, handle_api_versions, request(name, version))
    assert (response.error_code is ErrorCode.none) is valid
    assert bool(response.api_keys) is valid
    if not valid:
        assert response.error_code is ErrorCode.invalid_request


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_older_clients_send_no_name(broker: AdminBroker, version: int) -> None:
    response = await ask(broker, handle_api_versions, request("", ""), version=version)
    assert response.error_code is ErrorCode.none


OWN = "the broker's own cluster id"


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "error_code"),
    [
        (OWN, 1, ErrorCode.none),
        (OWN, 2, ErrorCode.rebootstrap_required),
        (OWN, -2, ErrorCode.rebootstrap_required),
        ("another", 1, ErrorCode.rebootstrap_required),
        ("", 1, ErrorCode.rebootstrap_required),
        (None, 1, ErrorCode.invalid_request),
        (None, -2, ErrorCode.invalid_request),
        (OWN, -1, ErrorCode.invalid_request),
        ("", -1, ErrorCode.invalid_request),
    ],
)
async def test_a_client_that_wants_another_broker_must_rebootstrap(
    broker: AdminBroker, cluster_id: str | None, node_id: int, error_code: ErrorCode
) -> None:
    meant = broker.cluster_id if cluster_id == OWN else cluster_id
    response = await ask(broker, handle_api_versions, request(cluster_id=meant, node_id=node_id))
    assert response.error_code is error_code
    assert bool(response.api_keys) is (error_code is ErrorCode.none)
    assert (response.finalized_features_epoch == -1) is (error_code is not ErrorCode.none)


async def test_the_error_of_the_name_precedes_that_of_the_cluster(broker: AdminBroker) -> None:
    response = await ask(broker, handle_api_versions, request("!", cluster_id="another", node_id=1))
    assert response.error_code is ErrorCode.invalid_request
