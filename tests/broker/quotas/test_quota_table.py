"""The precedence of quotas, as Kafka documents it."""

import pytest

from barnabas.broker.quotas.quota_table import Quota, find_quota
from barnabas.coordinator.metadata.client_quotas import QuotaEntity, quota_entity

KEY = "producer_byte_rate"
MOST_SPECIAL_FIRST: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({"user": "u", "client-id": "c"}, ("u", "c")),
    ({"user": "u", "client-id": None}, ("u", "c")),
    ({"user": "u"}, ("u", "")),
    ({"user": None, "client-id": "c"}, ("u", "c")),
    ({"user": None, "client-id": None}, ("u", "c")),
    ({"user": None}, ("u", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]
"""Entities, and the share of each one's quota for client `c` of user `u`."""


@pytest.mark.parametrize("first", range(len(MOST_SPECIAL_FIRST)))
def test_the_most_specific_quota_counts(first: int) -> None:
    quotas: dict[QuotaEntity, dict[str, float]] = {
        quota_entity(parts): {KEY: rank}
        for rank, (parts, _) in enumerate(MOST_SPECIAL_FIRST)
        if rank >= first
    }
    assert find_quota(quotas, KEY, "u", "c") == Quota(first, MOST_SPECIAL_FIRST[first][1])


def test_a_quota_of_another_kind_does_not_count() -> None:
    quotas = {quota_entity({"client-id": "c"}): {"consumer_byte_rate": 1.0}}
    assert find_quota(quotas, KEY, "u", "c") is None


def test_others_have_no_quota() -> None:
    quotas = {quota_entity({"client-id": "c"}): {KEY: 1.0}, quota_entity({"user": "w"}): {KEY: 1.0}}
    assert find_quota(quotas, KEY, "u", "d") is None


def test_a_client_without_an_id_has_only_its_users_quota() -> None:
    of_clients = {
        quota_entity({"client-id": None}): {KEY: 1.0},
        quota_entity({"user": "u", "client-id": None}): {KEY: 2.0},
    }
    assert find_quota(of_clients, KEY, "u", "") is None
    assert find_quota({quota_entity({"user": None}): {KEY: 3.0}}, KEY, "u", "") == Quota(3, ("u", ""))
