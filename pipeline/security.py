"""Security of the formats: options with Kafka's own names behind `kafka.`, as Spark's connector takes them.

    .option("kafka.security.protocol", "SASL_SSL")
    .option("kafka.sasl.mechanism", "SCRAM-SHA-512")
    .option("kafka.sasl.username", "spark")
    .option("kafka.sasl.password", password)
    .option("kafka.ssl.ca.location", "/etc/kafka/ca.pem")

Files are read where the query is planned, on the driver; executors get what was in them, and need no copies.
Spark itself redacts options whose names speak of a password. What the settings mean: docs/asyncio-client.md.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.errors import SecurityOptionError
from barnabas.client.security import Security, parse_security
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options

PREFIX: Final = "kafka."


def take_security(options: Options) -> Security:
    """Takes the options with the prefix. Raises `OptionError` for one that is unknown or malformed.

    The answer can be pickled. It holds the secrets, and does not show them.
    """
    try:
        return parse_security(options.prefixed(PREFIX))
    except SecurityOptionError as error:
        raise OptionError(PREFIX + error.option, error.reason) from error
