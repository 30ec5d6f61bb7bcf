"""Security as options of a format."""

from __future__ import annotations

import pickle

import pytest

from barnabas.client.network.security import PLAINTEXT, Security
from barnabas.pipeline.errors import OptionError
from barnabas.pipeline.options import Options
from barnabas.pipeline.security import take_security

GIVEN = {
    "servers": "127.0.0.1:9092",
    "kafka.security.protocol": "SASL_PLAINTEXT",
    "Kafka.SASL.Mechanism": "PLAIN",
    "kafka.sasl.username": "spark",
    "kafka.sasl.password": "do not tell",
}


def test_options_behind_the_prefix_are_kafkas() -> None:
    options = Options(GIVEN)
    security = take_security(options)
    assert security == Security(
        protocol="SASL_PLAINTEXT",
        mechanism="PLAIN",
        username="spark",
        password="do not tell",
    )
    assert pickle.loads(pickle.dumps(security)) == security
    options.required("servers", "127.0.0.1:9092")
    options.finish()


def test_without_options_nothing_is_encrypted() -> None:
    assert take_security(Options({})) == PLAINTEXT


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kafka.security.protocol": "TLS"}, "kafka.security.protocol: 'TLS' is not PLAINTEXT or "),
        (
            {"kafka.sasl.pasword": "x"},
            "kafka.sasl.pasword: there is no such setting; did you mean sasl.pass",
        ),
        ({"kafka.fetch.max.bytes": "1"}, "kafka.fetch.max.bytes: there is no such setting; "),
    ],
)
def test_an_error_names_the_option_and_no_secret(changed: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError) as refused:
        take_security(Options({**GIVEN, **changed}))
    assert str(refused.value).startswith(message)
    assert "do not tell" not in str(refused.value)
