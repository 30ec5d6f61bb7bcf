"""ShareFetch responses with many acquired ranges, and with records that are not copied."""

from __future__ import annotations

from uuid import UUID

import pytest

from barnabas.protocol.api import ApiKey
from barnabas.protocol.encode.share_fetch import (
    ShareFetchPartitionResult,
    ShareFetchTopicResult,
    encode_share_fetch_response,
)
from barnabas.protocol.kio_messages import message_class
from tests.protocol.filled_messages import read
from tests.protocol.share_responses import fetch_results

TOPIC_ID = UUID(int=7)


@pytest.mark.parametrize("count", [0, 1, 126, 127, 511, 512, 513, 1024, 2000])
def test_any_number_of_acquired_entries_is_written(count: int) -> None:
    acquired = [(2 * number, 2 * number + 1, number % 5 + 1) for number in range(count)]
    partition = ShareFetchPartitionResult(0, 0, None, 0, None, [], acquired)

    body = b"".join(
        encode_share_fetch_response(2, 0, None, 0, [ShareFetchTopicResult(TOPIC_ID, [partition])])
    )

    response = read(message_class(ApiKey.SHARE_FETCH, 2, "response"), body)
    assert fetch_results(response)[0].partitions[0].acquired == acquired


def test_records_are_passed_through_uncopied() -> None:
    first, second = memoryview(b"first batch"), b"second batch"
    partition = ShareFetchPartitionResult(0, 0, None, 0, None, [first, second], [(0, 9, 1)])

    buffers = encode_share_fetch_response(2, 0, None, 0, [ShareFetchTopicResult(TOPIC_ID, [partition])])

    assert buffers[1] is first
    assert buffers[2] is second
