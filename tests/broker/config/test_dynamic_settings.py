"""Settings that change while the broker runs, and that are kept after a restart (KIP-226)."""

from collections.abc import AsyncIterator

import pytest

from barnabas.protocol.errors import ErrorCode
from tests.conformance.harness import Lab, open_lab


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with open_lab() as opened:
        yield opened


async def alter(lab: Lab, broker: str, **settings: str | None) -> None:
    """`__` in a setting's name stands for a dot; None unsets it."""
    configs = [
        {
            "name": name.replace("__", "."),
            "config_operation": 1 if value is None else 0,
            "value": value,
        }
        for name, value in settings.items()
    ]
    resource = {"resource_type": 4, "resource_name": broker, "configs": configs}
    response = await lab.admin.ask("incremental_alter_configs", resources=[resource])
    assert response.responses[0].error_code is ErrorCode.none, response


async def test_the_storage_settings_change_in_place(lab: Lab) -> None:
    storage = lab.broker.log_directory.storage
    await alter(
        lab,
        "",
        producer__id__expiration__ms="7",
        log__cleaner__backoff__ms="8",
        log__cleaner__dedupe__buffer__size="2097152",
        log__cleaner__io__buffer__size="4096",
        log__cleaner__io__max__bytes__per__second="9.5",
    )
    changed = (
        storage.producer_id_expiration_ms,
        storage.cleaner_backoff_ms,
        storage.cleaner_dedupe_buffer_bytes,
        storage.cleaner_slice_bytes,
        storage.cleaner_io_bytes_per_second,
    )
    assert changed == (7, 8, 2097152, 2048, 9.5)
    await alter(lab, "", producer__id__expiration__ms=None)
    assert storage.producer_id_expiration_ms == 86_400_000


async def test_a_value_is_kept_after_a_restart(lab: Lab) -> None:
    await alter(lab, "1", producer__id__expiration__ms="7")
    await lab.restart()
    assert lab.broker.log_directory.storage.producer_id_expiration_ms == 7


async def test_this_brokers_value_wins_over_that_of_all(lab: Lab) -> None:
    limits: list[int] = []
    lab.broker.dynamic_settings.bind_server(limits.append, lambda: None)
    await alter(lab, "", max__connections="5")
    await alter(lab, "1", max__connections="3")
    await alter(lab, "1", max__connections=None)
    assert (limits[0], limits[-3:]) == (2**31 - 1, [5, 3, 5])
