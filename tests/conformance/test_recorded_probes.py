"""The error codes that Apache Kafka 4.3.1 returned to hand-made requests (wire sheet, section 14).

Each recorded request is sent again in a similar situation, with the ids, epochs and topics of this broker in
place of the recorded ones. The test compares the codes of both answers at every position.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeGuard
from uuid import UUID

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.conftest import Stage
from tests.conformance.harness import Client, Pending
from tests.conformance.messages import message_type, read
from tests.conformance.share_member import GROUP, RELEASE, ShareMember
from tests.protocol.recorded_frames import RecordedFrame, recorded_frames

UNKNOWN_TOPIC_ID = UUID(int=1)
UNKNOWN_TOPIC_NAME: Any = "wire-zzz"
WAITING_MS = 300

Situation = Callable[[Stage], Awaitable[ShareMember]]


async def nobody(stage: Stage) -> ShareMember:
    """A client without a session in a group that reads the topic."""
    return stage.member(2)


async def member(stage: Stage) -> ShareMember:
    """The member, whose epoch is 2 like that of its group."""
    return stage.member()


async def outsider(stage: Stage) -> ShareMember:
    """A client in an unknown group."""
    return ShareMember(stage.lab.client(), [stage.partition], group_id="nowhere")


async def holder(stage: Stage) -> ShareMember:
    """A member with a session and ten records; record 3 is no longer acquired."""
    await stage.produce(10)
    one = stage.member()
    await one.take()
    await one.acknowledge([(3, 3, RELEASE)])
    return one


async def holder_without_renewal(stage: Stage) -> ShareMember:
    await stage.lab.configure_group(GROUP, renew_acknowledge_enable="false")
    return await holder(stage)


async def past_member(stage: Stage) -> ShareMember:
    """The group is empty, and knows a topic."""
    one = await holder(stage)
    await one.heartbeat(-1)
    return one


PROBES: dict[int, Situation] = {
    82: member,
    83: outsider,
    84: nobody,
    85: nobody,
    86: member,
    88: member,
    89: member,
    90: member,
    92: past_member,
    93: outsider,
    95: member,
    96: past_member,
    97: outsider,
    102: outsider,
    103: nobody,
    104: nobody,
    105: nobody,
    106: nobody,
    107: nobody,
    108: holder,
    109: holder,
    110: holder,
    111: holder,
    112: holder,
    113: holder,
    114: holder,
    115: holder,
    117: holder,
    118: holder,
    119: holder,
    122: holder,
    123: nobody,
    124: nobody,
    129: holder_without_renewal,
}
"""By number of the pair.

Not here: 87, 91, 94, 98 to 100, 134 and 135, which concern groups that exist only in the recording; 116, 120
and 121, whose answer is a defect that is not copied; 125 to 128, which continue from 124.
"""

KEPT_EPOCHS = (-1, 0)


def recorded(pair: int, direction: str) -> RecordedFrame:
    return next(one for one in recorded_frames() if one.pair == pair and one.direction == direction)


def _is_array(value: Any) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def adapted(value: Any, stage: Stage, one: ShareMember, api: str) -> Any:
    """The recorded request with this stage's names."""
    if _is_array(value):
        return tuple(adapted(item, stage, one, api) for item in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        old = getattr(value, field.name)
        changes[field.name] = _adapted_field(field.name, old, stage, one, api)
    return dataclasses.replace(value, **changes)


def _adapted_field(name: str, old: Any, stage: Stage, one: ShareMember, api: str) -> Any:
    if name == "group_id" and old:
        return one.group_id
    if name == "groups_names":
        return (one.group_id,)
    if name == "member_id" and old:
        return one.member_id
    if name == "topic_id":
        return old if old == UNKNOWN_TOPIC_ID else stage.partition.topic_id
    if name == "topic_name":
        return old if old == UNKNOWN_TOPIC_NAME else "t"
    if name == "subscribed_topic_names" and old:
        return ("t",)
    if name == "share_session_epoch":
        return _adapted_epoch(old, one)
    return adapted(old, stage, one, api)


def _adapted_epoch(recorded_epoch: int, one: ShareMember) -> int:
    """The next epoch, unless the recorded one was wrong on purpose: then it is kept, or made wrong."""
    if recorded_epoch in KEPT_EPOCHS or one.epoch == 0:
        return recorded_epoch
    return one.epoch + 3 if recorded_epoch == WRONG_EPOCH else one.epoch


WRONG_EPOCH = 5
"""The recorded session expected another epoch."""


def codes(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Every error code in a response, with its position; elements of arrays in any order."""
    if _is_array(value):
        for item in value:
            yield from codes(item, path)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if isinstance(inner, ErrorCode):
                yield f"{path}.{field.name}", inner.value
            else:
                yield from codes(inner, f"{path}.{field.name}")


@pytest.mark.parametrize("pair", PROBES)
async def test_the_recorded_error_codes_are_given(stage: Stage, pair: int) -> None:
    asked, answered = recorded(pair, "request"), recorded(pair, "response")
    api = "".join("_" + c.lower() if c.isupper() else c for c in asked.api).lstrip("_")
    one = await PROBES[pair](stage)
    request = read(message_type(api, asked.version, "request"), asked.body)
    assert isinstance(one.client, Client)
    pending = one.client.send_message(api, asked.version, adapted(request, stage, one, api))
    response = await answer(stage, pending)
    expected = read(message_type(api, asked.version, "response"), answered.body)
    assert sorted(codes(response)) == sorted(codes(expected))


async def answer(stage: Stage, pending: Pending) -> Any:
    """The response, after the wait that the request allows."""
    await stage.lab.advance(WAITING_MS)
    return pending.response()
