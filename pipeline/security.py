"""Security of the formats: options with Kafka's own names behind `kafka.`, as in Spark's connector.

    .option("kafka.security.protocol", "SASL_SSL")
    .option("kafka.sasl.mechanism", "SCRAM-SHA-512")
    .option("kafka.sasl.username", "spark")
    .option("kafka.sasl.password", password)
    .option("kafka.ssl.ca.location", "/etc/kafka/ca.pem")

The driver reads the files when it plans the query; executors get their content and need no copies. Spark
itself redacts options with `password` in their names. docs/asyncio-client.md explains the settings.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.errors import SecurityOptionError
from barnabas.client.network.security import Security, parse_security
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options

PREFIX: Final = "kafka."


def take_security(options: Options) -> Security:
    """Takes the options with the prefix. Raises `OptionError` for an unknown or malformed one.

    The result can be pickled. It holds the secrets; its representation does not show them.
    """
    try:
        return parse_security(options.prefixed(PREFIX))
    except SecurityOptionError as error:
        raise OptionError(PREFIX + error.option, error.reason) from error
