"""The charges of one request, and the throttle time in its response."""

import pytest
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
from kio.schema.list_groups.v5.response import ListGroupsResponse

from barnabas.broker.quotas import meter as meter_module
from barnabas.broker.quotas.client_quotas import ClientQuotas, QuotaWindows
from barnabas.broker.quotas.meter import Meter, charged_ms, with_throttle
from barnabas.coordinator.metadata.client_quotas import quota_entity
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.primitive import milliseconds
from tests.broker.network.edge_fakes import ManualClock


@pytest.fixture
def time_ns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of the meters, in its only element."""
    now = [0]
    monkeypatch.setattr(meter_module, "perf_counter_ns", lambda: now[0])
    return now


def quotas(**values: float) -> ClientQuotas:
    windows = QuotaWindows(sample_count=11, window_ms=1000)
    made = ClientQuotas(windows, windows, ManualClock().monotonic_ms)
    made.quotas_changed({quota_entity({"client-id": "c"}): values})
    return made


def test_the_time_of_a_wait_costs_nothing(time_ns: list[int]) -> None:
    meter = Meter(quotas(request_percentage=1), ApiKey.FETCH, "c", 100)
    time_ns[0] = 60_000_000
    meter.stop_clock()
    time_ns[0] = 10**12
    meter.start_clock()
    time_ns[0] += 50_000_000
    assert meter.charge(0, is_answered=True) == 1000
    assert Meter(quotas(request_percentage=12), ApiKey.FETCH, "c", 100).charge(0, is_answered=True) == 0


def test_a_produce_request_costs_its_bytes(time_ns: list[int]) -> None:
    limits = quotas(producer_byte_rate=10)
    assert Meter(limits, ApiKey.FETCH, "c", 200).charge(0, is_answered=True) == 0
    assert Meter(limits, ApiKey.PRODUCE, "c", 200).charge(0, is_answered=False) == 10_000


def test_the_time_of_a_request_without_an_answer_is_free(time_ns: list[int]) -> None:
    meter = Meter(quotas(request_percentage=1), ApiKey.PRODUCE, "c", 100)
    time_ns[0] = 10**12
    assert meter.charge(0, is_answered=False) == 0


def test_the_longest_wait_counts(time_ns: list[int]) -> None:
    meter = Meter(quotas(producer_byte_rate=10), ApiKey.PRODUCE, "c", 200)
    assert meter.charge(25_000, is_answered=True) == 25_000


def response(throttle_ms: int) -> ListGroupsResponse:
    return ListGroupsResponse(throttle_time=milliseconds(throttle_ms), error_code=ErrorCode.none, groups=())


def test_a_response_has_the_throttle_time_of_its_handler() -> None:
    assert charged_ms(response(7)) == 7


def test_a_response_gets_the_throttle_time() -> None:
    answered = response(0)
    assert with_throttle(answered, 5) == response(5)
    assert with_throttle(answered, 0) is answered


def test_a_response_without_the_field_is_unchanged() -> None:
    answered = DescribeQuorumResponse(error_code=ErrorCode.none, error_message=None, topics=(), nodes=())
    assert with_throttle(answered, 5) is answered
    assert charged_ms(answered) == 0
