"""A configuration with authentication, access rules or TLS is refused; Kafka's defaults are accepted."""

from pathlib import Path

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.errors import ConfigError
from barnabas.broker.config.loading import load_config

KAFKAS_DEFAULTS = """
authorizer.class.name=
connections.max.reauth.ms=0
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=GSSAPI
sasl.mechanism.inter.broker.protocol=GSSAPI
security.inter.broker.protocol=PLAINTEXT
ssl.client.auth=none
ssl.keystore.type=JKS
ssl.protocol=TLSv1.3
ssl.truststore.location=
"""
END = "Remove these settings, and make sure that only trusted clients reach the port."


def refusal(*settings: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as raised:
        load_config(None, environ or {}, settings)
    return str(raised.value)


@pytest.mark.parametrize(
    ("setting", "protection"),
    [
        ("authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "access rules"),
        ("super.users=User:admin", "access rules"),
        ("allow.everyone.if.no.acl.found=false", "access rules"),
        ("sasl.kerberos.service.name=kafka", "authentication"),
        ("listener.name.plaintext.oauthbearer.sasl.server.callback.handler.class=x", "authentication"),
        ("sasl.oauthbearer.jwks.endpoint.url=https://id.example/keys", "authentication"),
        ("delegation.token.secret.key=s3cret", "authentication"),
        ("security.inter.broker.protocol=SASL_SSL", "TLS"),
    ],
)
def test_a_setting_that_asks_for_protection_is_refused(setting: str, protection: str) -> None:
    name = setting.partition("=")[0]
    assert refusal(setting) == (
        f"The configuration asks for protection that this broker does not have: {name} ({protection}). {END}"
    )


def test_all_such_settings_are_named_at_once_and_secrets_are_not() -> None:
    told = refusal(
        "sasl.kerberos.service.name=s3cret", "super.users=User:a", "delegation.token.secret.key=s3cret"
    )
    for name in ("delegation.token.secret.key", "sasl.kerberos.service.name", "super.users"):
        assert f"{name} (" in told
    assert "s3cret" not in told


@pytest.mark.parametrize("prefix", ["KAFKA", "BARNABAS"])
def test_a_variable_that_asks_for_protection_is_named(prefix: str) -> None:
    variable = f"{prefix}_AUTHORIZER_CLASS_NAME"
    assert f"{variable} (access rules)" in refusal(environ={variable: "StandardAuthorizer"})


def test_settings_of_tls_and_sasl_without_a_listener_for_them_give_a_warning() -> None:
    given = ["ssl.client.auth=required", "sasl.jaas.config=s3cret", "listener.name.x.ssl.keystore.type=PEM"]
    assert load_config(None, {}, given).warnings == (
        (
            "These settings protect no listener, and have no effect: listener.name.x.ssl.keystore.type, "
            "sasl.jaas.config, ssl.client.auth."
        ),
    )


def test_a_file_with_kafkas_defaults_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(KAFKAS_DEFAULTS)
    assert len(load_config(str(path), {}, []).warnings) == 1


@pytest.mark.parametrize(
    "settings",
    [
        ["allow.everyone.if.no.acl.found=true"],
        ["listener.name.controller.ssl.client.auth=required"],
        ["controller.listener.names=RAFT", "listener.name.raft.sasl.enabled.mechanisms=PLAIN"],
    ],
)
def test_settings_that_protect_no_port_of_this_broker_are_accepted(settings: list[str]) -> None:
    assert load_config(None, {}, settings).listeners == BrokerConfig({}).listeners
