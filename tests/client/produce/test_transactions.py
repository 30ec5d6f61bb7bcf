"""Answers of scripted coordinators to ListTransactions."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.cluster.cluster import Cluster
from barnabas.client.errors import BrokerUnavailableError
from barnabas.client.network.address import Address
from barnabas.client.produce.transactions import Transactions
from barnabas.protocol.api import ApiKey
from barnabas.protocol.errors import ErrorCode
from tests.client.scripted_broker import OTHER_PORT, answer, listen_as_only_node
from tests.client.virtual_world import virtually

OPEN = {"transactional_id": "sink-task-0.0", "producer_id": 5, "transaction_state": "Ongoing"}
OTHER = {**OPEN, "transactional_id": "other"}


async def open_ids(**listed: Any) -> list[str]:
    """The open transactions whose id starts with `sink-`, from one broker with this list."""

    def list_transactions(version: int, _: bytes) -> bytes:
        return answer("list_transactions", version, **listed)

    await listen_as_only_node({ApiKey.LIST_TRANSACTIONS: (1, list_transactions)})
    cluster = Cluster([Address("broker", OTHER_PORT)], client_id="test", request_timeout_ms=1_000)
    return await Transactions(cluster).open_ids("sink-")


@virtually
async def test_open_transactions_are_found_by_the_prefix_of_their_id(_: object) -> None:
    assert await open_ids(transaction_states=[OTHER, OPEN]) == ["sink-task-0.0"]


@virtually
async def test_a_loading_coordinator_is_an_error_not_an_empty_list(_: object) -> None:
    loading = ErrorCode.coordinator_load_in_progress
    with pytest.raises(BrokerUnavailableError, match="cannot list its transactions: coordinator_load_in_"):
        await open_ids(error_code=loading, transaction_states=[])
