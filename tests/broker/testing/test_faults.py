"""The choice of the fault that a request meets, and plans as JSON."""

from __future__ import annotations

import pytest

from barnabas.broker.testing.fault_plans import read_plan, shown_plan
from barnabas.broker.testing.faults import FAULTS_MAX, FaultKind, FaultPlan, Faults, TooManyFaults
from barnabas.broker.testing.fields import Fields, Refused
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode


def plan(**fields: object) -> FaultPlan:
    return read_plan(Fields({"kind": "refuse", **fields}))


@pytest.mark.parametrize(
    ("fields", "meets"),
    [
        ({}, True),
        ({"api": "Fetch"}, True),
        ({"api": "Produce"}, False),
        ({"group": "g"}, True),
        ({"group": "h"}, False),
        ({"topic": "t"}, True),
        ({"topic": "u"}, False),
        ({"api": "Fetch", "group": "g", "topic": "u"}, False),
    ],
)
def test_a_request_meets_a_fault_that_fits_in_everything(fields: dict[str, object], meets: bool) -> None:
    faults = Faults()
    fault = faults.add(plan(**fields))
    assert (faults.match(ApiKey.FETCH, {"g"}, {"t", "s"}) is not None) == meets
    assert fault.hits == meets


def test_the_oldest_fault_counts_until_it_is_used_up() -> None:
    faults = Faults()
    first, second = faults.add(plan(times=2)), faults.add(plan(times=1))
    met = [faults.match(ApiKey.FETCH, (), ()) for _ in range(4)]
    assert met == [first.plan, first.plan, second.plan, None]
    assert not faults.may_match(ApiKey.FETCH)


def test_a_removed_fault_meets_nothing() -> None:
    faults = Faults()
    fault = faults.add(plan())
    assert faults.remove(fault.fault_id) is fault
    assert faults.remove(fault.fault_id) is None
    assert faults.match(ApiKey.FETCH, (), ()) is None


def test_the_number_of_faults_is_bounded() -> None:
    faults = Faults()
    for _ in range(FAULTS_MAX):
        faults.add(plan())
    with pytest.raises(TooManyFaults):
        faults.add(plan())


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "cut", "api": "ShareAcknowledge", "group": "g", "times": 3},
        {"kind": "delay", "delay_ms": 500, "topic": "t"},
        {"kind": "error", "error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce"},
    ],
)
def test_a_plan_is_shown_as_it_was_given(given: dict[str, object]) -> None:
    assert shown_plan(read_plan(Fields(given))) == given


def test_a_plan_has_kafkas_names() -> None:
    found = read_plan(Fields({"kind": "error", "error": "UNKNOWN_MEMBER_ID", "api": "ShareGroupHeartbeat"}))
    assert (found.kind, found.api) == (FaultKind.ERROR, ApiKey.SHARE_GROUP_HEARTBEAT)
    assert found.error is ErrorCode.unknown_member_id


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "kind is None; it must be a text."),
        ({"kind": "explode"}, "kind is 'explode'; it must be one of refuse, cut, delay, error."),
        ({"kind": "delay"}, "delay_ms is None; it must be a whole number from 1 to 86400000."),
        ({"kind": "error", "error": "NONE"}, "There is no error NONE."),
        ({"kind": "cut", "times": True}, "times is True; it must be a whole number from 1 to 1000000."),
        ({"kind": "cut", "api": "LeaderAndIsr"}, "There is no API LeaderAndIsr."),
    ],
)
def test_a_wrong_plan_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(Refused) as raised:
        read_plan(Fields(given))
    assert str(raised.value).startswith(message)


def test_a_field_that_was_not_read_is_refused() -> None:
    fields = Fields({"kind": "cut", "time": 3})
    read_plan(fields)
    with pytest.raises(Refused, match=r"There is no field time\. Is times meant\?"):
        fields.check_all_known()


@pytest.mark.parametrize("given", [[], {"a": 1}, "text"])
def test_texts_are_an_object_of_texts(given: object) -> None:
    with pytest.raises(Refused, match="configs is"):
        Fields({"configs": given}).texts("configs")
