"""A client's requests, decoded by the broker's decoders, which have tests of their own against kio."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.api import ApiKey
from barnabas.protocol.client.share_requests import (
    encode_share_acknowledge_request,
    encode_share_fetch_request,
)
from barnabas.protocol.decode.acknowledgements import AckBatch, AckPartition, AckTopic
from barnabas.protocol.decode.acknowledging_transaction import AcknowledgingTransaction
from barnabas.protocol.decode.share_acknowledge import ShareAcknowledgeBody, decode_share_acknowledge
from barnabas.protocol.decode.share_fetch import ShareFetchBody, decode_share_fetch
from barnabas.protocol.extended.release_delays import ReleaseDelay
from barnabas.protocol.identity import ProducerIdentity
from tests.protocol.acknowledgement_requests import INT32S, INT64S, NAMES
from tests.protocol.recorded_frames import RecordedFrame, served_frames

BATCHES = st.lists(
    st.builds(AckBatch, INT64S, INT64S, st.binary(max_size=3) | st.binary(min_size=130, max_size=140)),
    max_size=4,
)
DELAYS = st.lists(st.builds(ReleaseDelay, INT64S, INT64S, INT32S), max_size=3).map(tuple)
TOPICS = st.lists(
    st.builds(AckTopic, st.uuids(), st.lists(st.builds(AckPartition, INT32S, BATCHES, DELAYS), max_size=3)),
    max_size=3,
)
_Body = TypeVar("_Body", ShareFetchBody, ShareAcknowledgeBody)
TRANSACTIONS = st.builds(
    AcknowledgingTransaction,
    st.text(max_size=140),
    st.builds(ProducerIdentity, INT64S, st.integers(-(2**15), 2**15 - 1)),
)
FORGOTTEN = st.lists(st.tuples(st.uuids(), st.lists(INT32S, max_size=3)), max_size=3)


@given(
    st.builds(
        ShareFetchBody,
        *(NAMES, NAMES, INT32S, INT32S, INT32S, INT32S, INT32S, INT32S),
        st.integers(-128, 127),
        st.booleans(),
        TOPICS,
        FORGOTTEN,
        st.booleans(),
        st.none() | INT32S,
        st.booleans(),
        st.booleans(),
        st.just(b""),
    )
)
def test_a_fetch_survives_encoding_and_decoding(body: ShareFetchBody) -> None:
    assert _without_encoding(decode_share_fetch(2, encode_share_fetch_request(2, body), 0)) == body
    older = body._replace(share_acquire_mode=0, is_renew_ack=False)
    assert _without_encoding(decode_share_fetch(1, encode_share_fetch_request(1, body), 0)) == older


@given(
    st.builds(
        ShareAcknowledgeBody,
        *(NAMES, NAMES, INT32S, st.booleans(), TOPICS, st.just(b"")),
        st.none() | TRANSACTIONS,
    )
)
def test_an_acknowledgement_survives_encoding_and_decoding(body: ShareAcknowledgeBody) -> None:
    assert (
        _without_encoding(decode_share_acknowledge(2, encode_share_acknowledge_request(2, body), 0)) == body
    )
    older = body._replace(is_renew_ack=False)
    assert (
        _without_encoding(decode_share_acknowledge(1, encode_share_acknowledge_request(1, body), 0)) == older
    )


def _without_encoding(body: _Body) -> _Body:
    return body._replace(encoded_topics=b"")


def _recorded(key: ApiKey) -> list[Any]:
    return [pytest.param(frame, id=frame.title) for frame in served_frames("request", key)]


@pytest.mark.parametrize("recorded", _recorded(ApiKey.SHARE_FETCH))
def test_fetches_equal_those_of_kafkas_clients(recorded: RecordedFrame) -> None:
    body = decode_share_fetch(recorded.version, recorded.body, 0)
    assert encode_share_fetch_request(recorded.version, body) == recorded.body


@pytest.mark.parametrize("recorded", _recorded(ApiKey.SHARE_ACKNOWLEDGE))
def test_acknowledgements_equal_those_of_kafkas_clients(recorded: RecordedFrame) -> None:
    body = decode_share_acknowledge(recorded.version, recorded.body, 0)
    assert encode_share_acknowledge_request(recorded.version, body) == recorded.body
