"""The served APIs and their versions."""

from __future__ import annotations

import pytest

from barnabas.protocol.api import APIS, ApiKey, ApiSpec, find_api
from barnabas.protocol.kio_messages import message_class
from tests.protocol.filled_messages import served_versions

OWN_KEYS_FROM = 10_000
KEY_MAX = 2**15 - 1
"""A key is an int16 on the wire."""


@pytest.mark.parametrize(("spec", "version"), served_versions(), ids=str)
def test_versions_are_flexible_as_in_kafka(spec: ApiSpec, version: int) -> None:
    is_flexible = version >= spec.flexible_version

    assert message_class(spec.key, version, "request").__flexible__ is is_flexible
    assert message_class(spec.key, version, "response").__flexible__ is is_flexible


def test_apis_are_in_the_order_of_their_keys() -> None:
    assert list(APIS) == sorted(APIS)
    assert all(spec.key == key and spec.name == key.name.lower() for key, spec in APIS.items())


def test_only_produce_advertises_versions_that_it_does_not_serve() -> None:
    assert [spec.key for spec in APIS.values() if spec.advertised_min != spec.min_version] == [ApiKey.PRODUCE]
    assert APIS[ApiKey.PRODUCE].advertised_min == 0


@pytest.mark.parametrize(
    ("version", "is_served"), [(2, False), (3, True), (13, True), (14, False), (-1, False)]
)
def test_served_versions_are_inclusive(version: int, is_served: bool) -> None:
    assert APIS[ApiKey.PRODUCE].serves(version) is is_served


def test_apis_are_found_by_number() -> None:
    assert find_api(78) is APIS[ApiKey.SHARE_FETCH]
    assert find_api(ApiKey.VOTE) is None
    assert find_api(-1) is None


def test_every_api_of_kafka_has_its_number() -> None:
    assert [key.value for key in ApiKey if key < OWN_KEYS_FROM] == list(range(95))
    assert (ApiKey.PRODUCE, ApiKey.API_VERSIONS, ApiKey.SHARE_FETCH) == (0, 18, 78)


def test_the_apis_of_barnabas_have_keys_from_10000_on() -> None:
    own = [key for key in ApiKey if key >= OWN_KEYS_FROM]
    assert own == [
        ApiKey.DESCRIBE_SHARE_RECORDS,
        ApiKey.ALTER_SHARE_RECORDS,
        ApiKey.DESCRIBE_SHARE_RECORD_HISTORY,
    ]
    assert max(own) <= KEY_MAX
