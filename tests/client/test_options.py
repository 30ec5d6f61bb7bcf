"""The options of a share consumer, and the refused values."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from barnabas.client.consume.consumer_options import (
    ConsumerOptions,
    ConsumerSettings,
    consumer_settings_of,
)
from barnabas.client.errors import MisuseError
from barnabas.client.produce.producer_options import (
    ProducerOptions,
    ProducerSettings,
    producer_settings_of,
)
from barnabas.client.share.options import Settings, ShareConsumerOptions, settings_of


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        (Settings, ShareConsumerOptions),
        (ConsumerSettings, ConsumerOptions),
        (ProducerSettings, ProducerOptions),
    ],
)
def test_each_setting_is_an_option_of_the_client(settings: Any, options: Any) -> None:
    names = {field.name: field.type for field in dataclasses.fields(settings)}
    assert names == {name: hint.__forward_arg__ for name, hint in options.__annotations__.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"auto_offset_reset": "middle"},
        {"isolation_level": "serializable"},
        {"max_partition_bytes": 0},
        {"prefetch_bytes": 0},
        {"auto_commit_interval_ms": 0},
        {"max_poll_interval_ms": 0},
        {"group_instance_id": ""},
        {"server_assignor": ""},
    ],
)
def test_an_impossible_value_of_a_consumer_is_refused_with_its_name(options: Any) -> None:
    with pytest.raises(MisuseError, match=f"The option {next(iter(options))} is"):
        consumer_settings_of(options)


@pytest.mark.parametrize(
    "options",
    [
        {"compression": "rar"},
        {"linger_ms": -1},
        {"batch_bytes": 0},
        {"buffer_bytes": 0},
        {"transactional_id": ""},
    ],
)
def test_an_impossible_value_of_a_producer_is_refused_with_its_name(options: Any) -> None:
    with pytest.raises(MisuseError, match=f"The option {next(iter(options))} is"):
        producer_settings_of(options)


def test_a_misspelt_option_is_refused_with_the_nearest_name() -> None:
    misspelt: Any = {"linger": 5}
    with pytest.raises(MisuseError, match="no option linger; did you mean linger_ms"):
        producer_settings_of(misspelt)


@pytest.mark.parametrize(
    "options",
    [
        {"acknowledgement_mode": "maybe"},
        {"acquire_mode": "all"},
        {"stop_timeout_ms": -1},
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
