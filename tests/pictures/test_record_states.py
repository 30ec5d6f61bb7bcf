"""The picture of the states of a record is the one that the share-partition draws."""

from __future__ import annotations

from barnabas.protocol.record_inspection import DescribedState as State
from tests.pictures.record_states import PICTURE, changes, svg


def test_the_picture_is_up_to_date() -> None:
    remedy = "run python -m tests.pictures.record_states, and look at the difference"
    assert PICTURE.read_text(encoding="utf-8") == svg(), remedy


def test_a_record_at_the_delivery_limit_is_archived_instead_of_released() -> None:
    assert changes()[State.ACQUIRED, State.AVAILABLE] == ["release", "lock expires", "consumer leaves"]
    assert changes()[State.ACQUIRED, State.ARCHIVED] == [
        "reject",
        "release, at the delivery limit",
        "lock expires, at the delivery limit",
        "consumer leaves, at the delivery limit",
    ]
