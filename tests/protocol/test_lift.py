"""Conversion of messages between versions."""

import datetime
import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta
from kio.static.protocol import Entity

from barnabas.protocol.api import ApiKey
from barnabas.protocol.kio_messages import message_class
from barnabas.protocol.lift import converter
from tests.protocol.filled_messages import as_fields


class Message:
    __slots__ = ()
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class OldItem(Message):
    name: str | None


@dataclass(frozen=True, kw_only=True)
class NewItem(Message):
    name: str


@dataclass(frozen=True, kw_only=True)
class Leader(Message):
    node_id: i32 = field(default=i32(-1))


@dataclass(frozen=True, kw_only=True)
class OtherLeader(Message):
    node_id: i32 = field(default=i32(-1))


@dataclass(frozen=True, kw_only=True)
class Old(Message):
    kept: i32
    dropped: str
    items: tuple[OldItem, ...] | None
    leader: Leader = field(metadata={"tag": 0}, default=Leader())


@dataclass(frozen=True, kw_only=True)
class New(Message):
    kept: i32
    items: tuple[NewItem, ...]
    leader: OtherLeader = field(metadata={"tag": 0}, default=OtherLeader())
    given: i32 = field(default=i32(-1))
    flag: bool
    error: ErrorCode
    number: i32
    text: str
    nullable_text: str | None
    payload: bytes
    topic_id: uuid.UUID | None
    wait: i32Timedelta
    array: tuple[i32, ...]
    item: NewItem


@dataclass(frozen=True, kw_only=True)
class Same(Message):
    kept: i32
    items: tuple[OldItem, ...] | None


OLD = Old(kept=i32(5), dropped="x", items=(OldItem(name="a"), OldItem(name=None)))


def convert(source: type[Entity], target: type[Entity], entity: object) -> Any:
    lift = converter(source, target)
    assert lift is not None
    return lift(entity)


def test_fields_are_copied_by_name() -> None:
    assert convert(Old, New, OLD).kept == 5


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("given", -1),
        ("flag", False),
        ("error", ErrorCode.none),
        ("number", 0),
        ("text", ""),
        ("nullable_text", ""),
        ("payload", b""),
        ("topic_id", None),
        ("wait", datetime.timedelta(0)),
        ("array", ()),
        ("item", NewItem(name="")),
    ],
)
def test_a_missing_field_gets_the_default_of_the_schema(name: str, expected: object) -> None:
    value = getattr(convert(Old, New, OLD), name)

    assert value == expected
    assert type(value) is type(expected)


def test_a_null_in_a_non_nullable_field_becomes_empty() -> None:
    assert convert(Old, New, OLD).items == (NewItem(name="a"), NewItem(name=""))
    assert convert(Old, New, Old(kept=i32(5), dropped="", items=None)).items == ()


def test_tagged_structures_equal_the_targets_default() -> None:
    assert convert(Old, New, OLD).leader == OtherLeader()


def test_a_source_with_all_fields_of_the_target_is_not_converted() -> None:
    assert converter(Old, Old) is None
    assert converter(Old, Same) is None


def test_a_converter_is_compiled_once() -> None:
    assert converter(Old, New) is converter(Old, New)


def test_share_fetch_version_1_gets_acquire_mode_0_and_no_renewal() -> None:
    old, new = (message_class(ApiKey.SHARE_FETCH, version, "request") for version in (1, 2))
    default = {
        "group_id": "g",
        "member_id": "m",
        "share_session_epoch": 0,
        "max_wait": datetime.timedelta(0),
        "min_bytes": 1,
        "max_bytes": 2,
        "max_records": 3,
        "batch_size": 4,
        "topics": (),
        "forgotten_topics_data": (),
    }

    lifted = convert(old, new, old(**default))

    assert as_fields(lifted) == default | {"share_acquire_mode": 0, "is_renew_ack": False}
