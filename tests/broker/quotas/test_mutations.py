"""Changes of metadata above a quota: they are refused, or executed with a throttle time."""

import pytest

from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.broker.quotas.mutations import MutationCharge
from barnabas.coordinator.metadata.client_quotas import quota_entity
from barnabas.protocol.errors import ApiError, ErrorCode
from tests.broker.network.edge_fakes import ManualClock


@pytest.fixture
def quotas() -> ClientQuotas:
    windows = QuotaWindows(sample_count=11, window_ms=1000)
    made = ClientQuotas(windows, windows, ManualClock().monotonic_ms)
    made.quotas_changed({quota_entity({"client-id": "c"}): {"controller_mutation_rate": 1.0}})
    return made


def test_the_change_above_the_quota_is_made_and_the_next_is_refused(quotas: ClientQuotas) -> None:
    charge = MutationCharge(quotas, "c", strict=True)
    charge(12)
    assert charge.throttle_ms == 0
    with pytest.raises(ApiError) as refused:
        charge(1)
    assert (refused.value.code, refused.value.message) == (ErrorCode.throttling_quota_exceeded, None)
    assert charge.throttle_ms == 1000


def test_older_clients_are_not_refused_and_wait(quotas: ClientQuotas) -> None:
    charge = MutationCharge(quotas, "c", strict=False)
    charge(12)
    charge(3)
    assert charge.throttle_ms == 4000


def test_others_are_charged_nothing(quotas: ClientQuotas) -> None:
    charge = MutationCharge(quotas, None, strict=True)
    charge(1000)
    charge(1000)
    assert charge.throttle_ms == 0
