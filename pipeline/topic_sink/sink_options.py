"""The options of `kafka-topic` for writing, parsed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options
from barnabas.pipeline.servers import Servers, take_servers
from barnabas.protocol.record_batch import Compression

BATCH_BYTES: Final = 512 * 1024
BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
TRANSACTION_TIMEOUT_MS: Final = 15 * 60 * 1000
"""Kafka's own `transaction.max.timeout.ms`: brokers refuse longer ones, unless their settings allow them."""
TRANSACTIONAL_ID_PREFIX: Final = "barnabas"
PREFIX_LENGTH_MAX: Final = 128


class Once(Enum):
    """The method by which a batch that is written again counts once."""

    AUTO = "auto"
    """By transactions if the brokers have them, otherwise by the header."""
    TRANSACTIONS = "transactions"
    HEADER = "header"
    OFF = "off"
    """None: a batch that is written again is in the topic twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of the sink."""

    servers: Servers
    topic: str | None
    """The topic of all rows; None if the rows have it in a column."""
    once: Once
    compression: Compression
    batch_bytes: int
    transactional_id_prefix: str
    transaction_timeout_ms: int


def parse_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """Raises `OptionError` for a missing, unknown or malformed option."""
    options = Options(given)
    topic = options.text("topic")
    parsed = SinkOptions(
        servers=take_servers(options),
        topic=topic.strip() if topic is not None else None,
        once=Once(options.choice("exactlyOnce", [mode.value for mode in Once], Once.AUTO.value)),
        compression=_take_compression(options),
        batch_bytes=options.integer("batchBytes", BATCH_BYTES, least=1, most=BATCH_BYTES_MAX),
        transactional_id_prefix=_take_prefix(options),
        transaction_timeout_ms=options.integer(
            "transactionTimeoutMs", TRANSACTION_TIMEOUT_MS, least=1_000, most=2**31 - 1
        ),
    )
    options.finish()
    if parsed.topic == "":
        raise OptionError("topic", "is empty; name one, or leave it out if the rows have a column topic")
    return parsed


def _take_compression(options: Options) -> Compression:
    names = [compression.name.lower() for compression in Compression]
    return Compression[options.choice("compression", names, "none").upper()]


def _take_prefix(options: Options) -> str:
    prefix = options.text("transactionalIdPrefix", TRANSACTIONAL_ID_PREFIX) or ""
    if not 0 < len(prefix) <= PREFIX_LENGTH_MAX:
        raise OptionError("transactionalIdPrefix", f"must have 1 to {PREFIX_LENGTH_MAX} characters")
    return prefix
