"""The options of a read: their values, and one clear error for each wrong one."""

from __future__ import annotations

import pytest

from barnabas.client.cluster.topics import Isolation
from barnabas.client.network.address import Address
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.topic_source.topic_options import parse_topic_options

NEEDED = {"servers": "localhost:9092", "topics": "orders"}


def test_missing_options_have_defaults() -> None:
    options = parse_topic_options(NEEDED)
    assert options.servers.addresses == (Address("localhost", 9092),)
    assert (options.topics, options.pattern) == (("orders",), None)
    assert options.isolation is Isolation.READ_UNCOMMITTED
    assert (options.fails_on_data_loss, options.has_pushdown, options.partitions_min) == (True, True, 1)
    assert options.offsets_per_trigger_max is None


def test_offsets_are_given_by_topic_and_partition() -> None:
    options = parse_topic_options({**NEEDED, "STARTINGOFFSETS": '{"orders": {"0": 23, "1": -2}}'})
    assert options.starting_offsets == {"orders": {0: 23, 1: -2}}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"servers": ""}, "servers: is needed"),
        ({"servers": "host:port"}, "servers: 'host:port' is not the address of a broker"),
        ({"topicsPattern": "o.*"}, "topics: give either topics"),
        ({"topics": "orders,,returns"}, "topics: 'orders,,returns' is not names with commas"),
        (
            {"isolation": "serializable"},
            "isolation: 'serializable' is not read_uncommitted or read_committed",
        ),
        ({"startingOffsets": "newest"}, "startingOffsets: 'newest' is not earliest, latest or such as"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "startingOffsets: "),
        ({"startingOffsets": "[1]"}, "startingOffsets: "),
        ({"endingOffsets": "latest", "endingTimestamp": "1"}, "endingTimestamp: endingOffsets is given too"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger: '0' is not a whole number from 1"),
        ({"minPartitions": "many"}, "minPartitions: 'many' is not a whole number"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss: 'perhaps' is not true or false"),
        ({"columns": "key,size"}, "columns: there is no column 'size'"),
        ({"startOffsets": "latest"}, "startoffsets: there is no such option; did you mean startingOffsets"),
        ({"kafka.security.protocl": "SSL"}, "kafka.security.protocl"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_it(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as error:
        parse_topic_options({**NEEDED, **given})
    assert str(error.value).startswith(message)


def test_a_malformed_pattern_is_refused() -> None:
    with pytest.raises(OptionError, match="topicsPattern: '\\(' is no regular expression"):
        parse_topic_options({"servers": "localhost", "topicsPattern": "("})


@pytest.mark.parametrize(
    ("given", "refuse", "message"),
    [
        ({"endingOffsets": "latest"}, "refuse_batch_only", "endingOffsets: is for batch reads"),
        ({"endingTimestamp": "5"}, "refuse_batch_only", "endingTimestamp: is for batch reads"),
        ({"startingOffsets": "latest"}, "refuse_stream_only", "startingOffsets: latest is for streams"),
        ({"maxOffsetsPerTrigger": "5"}, "refuse_stream_only", "maxOffsetsPerTrigger: is for streams"),
    ],
)
def test_some_options_are_for_batches_or_streams_alone(
    given: dict[str, str], refuse: str, message: str
) -> None:
    options = parse_topic_options({**NEEDED, **given})
    with pytest.raises(OptionError, match=message):
        getattr(options, refuse)()
