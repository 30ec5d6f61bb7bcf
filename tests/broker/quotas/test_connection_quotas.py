"""Addresses that connect too often."""

import pytest

from barnabas.broker.quotas import connection_quotas
from barnabas.broker.quotas.client_quotas import QuotaWindows
from barnabas.broker.quotas.connection_quotas import ConnectionQuotas
from barnabas.coordinator.metadata.client_quotas import quota_entity
from tests.broker.network.edge_fakes import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def quotas(clock: ManualClock, bounds: dict[str | None, float]) -> ConnectionQuotas:
    """Quotas over two samples of a second; None is the default of all addresses."""
    made = ConnectionQuotas(QuotaWindows(sample_count=2, window_ms=1000), clock.monotonic_ms)
    made.quotas_changed(
        {quota_entity({"ip": name}): {"connection_creation_rate": bound} for name, bound in bounds.items()}
    )
    return made


def test_without_quotas_no_address_waits(clock: ManualClock) -> None:
    limits = quotas(clock, {})
    assert [limits.connected("/10.0.0.1") for _ in range(100)] == [0] * 100


def test_an_address_that_connects_too_often_waits_and_is_not_counted(clock: ManualClock) -> None:
    limits = quotas(clock, {None: 2})
    assert [limits.connected("/10.0.0.1") for _ in range(4)] == [0, 0, 500, 500]
    clock.now_ms += 2000
    assert limits.connected("/10.0.0.1") == 0


def test_each_address_has_the_default_for_itself(clock: ManualClock) -> None:
    limits = quotas(clock, {None: 1})
    assert [limits.connected(f"/10.0.0.{number}") for number in range(5)] == [0] * 5


def test_an_address_has_its_own_quota_in_any_notation(clock: ManualClock) -> None:
    limits = quotas(clock, {None: 1, "::1": 5})
    assert [limits.connected("/0:0:0:0:0:0:0:1") for _ in range(5)] == [0] * 5
    assert limits.connected("/::1") > 0


def test_no_wait_is_longer_than_all_samples(clock: ManualClock) -> None:
    limits = quotas(clock, {None: 1})
    limits.connected("/10.0.0.1")
    limits.quotas_changed({quota_entity({"ip": None}): {"connection_creation_rate": 0.001}})
    assert limits.connected("/10.0.0.1") == 2000


def test_other_quotas_and_other_addresses_have_no_effect(clock: ManualClock) -> None:
    limits = quotas(clock, {"10.0.0.1": 1})
    limits.connected("/10.0.0.1")
    assert limits.connected("/") == limits.connected("/10.0.0.2") == 0
    limits.quotas_changed({quota_entity({"user": "u"}): {"producer_byte_rate": 1}})
    assert limits.connected("/10.0.0.1") == 0


def test_beyond_the_bound_of_addresses_counts_begin_again(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_quotas, "ADDRESSES_MAX", 1)
    limits = quotas(clock, {None: 1})
    assert [limits.connected(f"/10.0.0.{number % 2}") for number in range(4)] == [0] * 4
