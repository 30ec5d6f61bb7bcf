"""The clients' usage of shared and own quotas, and the effect of changed quotas."""

from collections.abc import Callable

import pytest

from barnabas.broker.quotas import client_quotas
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.coordinator.metadata.client_quotas import QuotaEntity, quota_entity
from tests.broker.network.edge_fakes import ManualClock

WINDOWS = QuotaWindows(sample_count=11, window_ms=1000)
CLIENT, ANY_CLIENT = quota_entity({"client-id": "c"}), quota_entity({"client-id": None})
ANONYMOUS = quota_entity({"user": "ANONYMOUS"})

Limit = Callable[..., ClientQuotas]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def limit(clock: ManualClock) -> Limit:
    """Quotas with a single one, for an entity."""

    def made(entity: QuotaEntity, **values: float) -> ClientQuotas:
        quotas = ClientQuotas(WINDOWS, WINDOWS, clock.monotonic_ms)
        quotas.quotas_changed({entity: values})
        return quotas

    return made


def test_without_quotas_no_client_has_one(clock: ManualClock) -> None:
    quotas = ClientQuotas(WINDOWS, WINDOWS, clock.monotonic_ms)
    assert not quotas.active
    assert quotas.fetch_bytes_max("c") is None
    assert quotas.produced("c", 1 << 40) == 0


def test_a_quota_of_addresses_is_none_for_clients(limit: Limit) -> None:
    assert not limit(quota_entity({"ip": None}), connection_creation_rate=1).active


def test_produced_bytes_above_the_quota_throttle(limit: Limit) -> None:
    quotas = limit(CLIENT, producer_byte_rate=20_000)
    assert [quotas.produced("c", 200_000), quotas.produced("c", 50_000)] == [0, 2500]
    assert quotas.produced("other", 1 << 40) == 0


def test_clients_share_the_quota_of_their_user(limit: Limit) -> None:
    quotas = limit(ANONYMOUS, producer_byte_rate=20_000)
    assert [quotas.produced("a", 200_000), quotas.produced("b", 50_000)] == [0, 2500]


def test_each_client_has_the_default_for_itself(limit: Limit) -> None:
    quotas = limit(ANY_CLIENT, producer_byte_rate=20_000)
    assert [quotas.produced("a", 200_000), quotas.produced("b", 50_000)] == [0, 0]


def test_a_throttled_fetch_is_not_recorded(limit: Limit, clock: ManualClock) -> None:
    quotas = limit(CLIENT, consumer_byte_rate=20_000)
    assert quotas.fetched("c", 100_000) == 0
    assert quotas.fetched("c", 200_000) == 5000
    assert quotas.fetched("c", 100_000) == 0
    assert quotas.fetched("c", 200) == 10


def test_a_fetch_may_return_ten_windows_of_the_quota(limit: Limit) -> None:
    assert limit(CLIENT, consumer_byte_rate=20_000).fetch_bytes_max("c") == 200_000


def test_the_wait_for_busy_time_is_one_window_at_most(limit: Limit) -> None:
    quotas = limit(CLIENT, request_percentage=1)
    assert quotas.handled("c", 99_000_000) == 0
    assert quotas.handled("c", 2_000_000) == 100
    assert quotas.handled("c", 10**12) == 1000


@pytest.mark.parametrize("bound", [1, 1e-5, 5e-324])
def test_a_wait_fits_the_protocol(limit: Limit, bound: float) -> None:
    assert limit(CLIENT, producer_byte_rate=bound).produced("c", 1 << 50) == 2**31 - 1
    assert limit(CLIENT, consumer_byte_rate=bound).fetched("c", 1 << 50) == 2**31 - 1
    assert limit(CLIENT, request_percentage=bound).handled("c", 1 << 50) == 1000
    mutations = limit(CLIENT, controller_mutation_rate=bound)
    mutations.mutated("c", 1 << 50)
    assert mutations.mutation_throttle_ms("c") == 2**31 - 1


def test_a_changed_quota_applies_to_earlier_usage(limit: Limit) -> None:
    quotas = limit(CLIENT, producer_byte_rate=20_000)
    quotas.produced("c", 200_000)
    quotas.quotas_changed({CLIENT: {"producer_byte_rate": 10_000}})
    assert quotas.produced("c", 0) == 10_000
    quotas.quotas_changed({})
    assert quotas.produced("c", 1 << 40) == 0


def test_clients_beyond_the_cache_are_limited_too(limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "CLIENTS_MAX", 2)
    quotas = limit(ANONYMOUS, producer_byte_rate=20_000)
    waits_ms = [quotas.produced(f"client {number}", 100_000) for number in range(4)]
    assert waits_ms == [0, 0, 5000, 10_000]


def test_clients_idle_for_an_hour_are_dropped_first(
    limit: Limit, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_quotas, "SHARES_MAX", 2)
    quotas = limit(ANY_CLIENT, producer_byte_rate=20_000)
    quotas.produced("idle", 200_000)
    clock.now_ms += 3_600_000
    quotas.produced("busy", 200_000)
    quotas.produced("new", 1)
    assert quotas.produced("busy", 50_000) == 2500


def test_changes_of_metadata_take_tokens_from_a_bucket(limit: Limit) -> None:
    quotas = limit(CLIENT, controller_mutation_rate=1)
    quotas.mutated("c", 12)
    assert quotas.mutation_throttle_ms("c") == 1000
    assert quotas.mutation_throttle_ms("other") == 0
