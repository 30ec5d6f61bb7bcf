"""The options of a share consumer, and the refused values."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from barnabas.client.errors import MisuseError
from barnabas.client.options import Settings, ShareConsumerOptions, settings_of


def test_each_setting_is_an_option_of_the_consumer() -> None:
    names = {field.name: field.type for field in dataclasses.fields(Settings)}
    assert names == {
        name: hint.__forward_arg__ for name, hint in ShareConsumerOptions.__annotations__.items()
    }


@pytest.mark.parametrize(
    "options",
    [
        {"acknowledgement_mode": "maybe"},
        {"acquire_mode": "all"},
        {"unreadable": "ignore"},
        {"max_records": 0},
        {"prefetch_records": -1},
        {"retry_backoff_ms": 200, "retry_backoff_max_ms": 100},
        {"member_id": ""},
        {"member_id": "x" * 37},
        {"rack_id": ""},
    ],
)
def test_an_invalid_value_is_refused_with_the_option_name(options: dict[str, Any]) -> None:
    with pytest.raises(MisuseError) as refused:
        Settings(**options)
    name, value = list(options.items())[-1]
    assert f"{name} is {value!r}; it must be " in str(refused.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max_recrods", "There is no option max_recrods; did you mean max_records?"),
        ("xyz", "There is no option xyz."),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(name: str, message: str) -> None:
    options: Any = {name: 1}
    with pytest.raises(MisuseError) as refused:
        settings_of(options)
    assert str(refused.value) == message
