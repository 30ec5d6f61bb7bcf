"""The settings that protect listeners, which each listener may have for itself (`listener.name.<name>.`).

Names and defaults are Kafka's. Pure.
"""

from dataclasses import replace
from functools import partial

from barnabas.broker.config.setting import Setting, SettingType, at_least, between, each_one_of, one_of

_STRING, _LIST, _PASSWORD = SettingType.STRING, SettingType.LIST, SettingType.PASSWORD
_INT, _LONG, _DOUBLE = SettingType.INT, SettingType.LONG, SettingType.DOUBLE

_row = partial(Setting, per_listener=True)
_reloaded = partial(_row, dynamic=True)

TLS_SETTINGS = (
    _reloaded(
        "ssl.keystore.type",
        _STRING,
        "JKS",
        "The format of the key store: PEM or PKCS12. With JKS, the default, it is read as PKCS12, which is "
        "what keytool writes; the old format JKS is refused with the command that converts it.",
        one_of("JKS", "PKCS12", "PEM"),
        guide="security.md",
    ),
    _reloaded(
        "ssl.keystore.location",
        _STRING,
        None,
        "The file with the listener's key and its certificates. A changed file is used for new connections.",
    ),
    _reloaded("ssl.keystore.password", _PASSWORD, None, "The password of a key store in the format PKCS12."),
    _reloaded("ssl.key.password", _PASSWORD, None, "The password of the key in a key store in PEM."),
    _reloaded(
        "ssl.keystore.key",
        _PASSWORD,
        None,
        "The key itself in PEM (PKCS#8), instead of a file.",
    ),
    _reloaded(
        "ssl.keystore.certificate.chain",
        _PASSWORD,
        None,
        "The certificates themselves in PEM, the listener's own first, instead of a file.",
    ),
    _reloaded(
        "ssl.truststore.type",
        _STRING,
        "JKS",
        "The format of the trust store, as that of the key store.",
        one_of("JKS", "PKCS12", "PEM"),
    ),
    _reloaded(
        "ssl.truststore.location",
        _STRING,
        None,
        "The file with the authorities that sign the clients' certificates.",
    ),
    _reloaded("ssl.truststore.password", _PASSWORD, None, "The password of a trust store in PKCS12."),
    _reloaded(
        "ssl.truststore.certificates",
        _PASSWORD,
        None,
        "The certificates of these authorities themselves in PEM, instead of a file.",
    ),
    _row(
        "ssl.client.auth",
        _STRING,
        "none",
        "Whether clients prove who they are by a certificate: required, requested (it may be missing, and is "
        "checked otherwise), or none.",
        one_of("required", "requested", "none"),
        guide="security.md",
    ),
    _row(
        "ssl.principal.mapping.rules",
        _STRING,
        "DEFAULT",
        "How the name of a client's certificate becomes that of its principal: rules such as "
        "'RULE:^CN=([^,]+),.*$/$1/L', separated by commas, the first that matches, and DEFAULT for the whole "
        "name.",
        guide="security.md",
    ),
    _row(
        "ssl.enabled.protocols",
        _LIST,
        ("TLSv1.2", "TLSv1.3"),
        "The versions of TLS. Older ones are not served, because they are insecure.",
        each_one_of("TLSv1.2", "TLSv1.3"),
    ),
    _row(
        "ssl.cipher.suites",
        _LIST,
        (),
        "The cipher suites by their names in Java. Empty: those of OpenSSL.",
    ),
)

HANDSHAKE_SETTINGS = (
    Setting(
        "ssl.handshake.timeout.ms",
        _INT,
        10_000,
        "How long a connection may take for the first message of its handshake, and again for the rest.",
        at_least(1),
        ours=True,
        guide="security.md",
    ),
    Setting(
        "ssl.handshake.loop.share",
        _DOUBLE,
        0.25,
        "The part of the broker's time that all handshakes together may take. Further connections wait.",
        between(0.01, 1),
        ours=True,
    ),
    Setting(
        "ssl.handshakes.per.second.max",
        _INT,
        1000,
        "The most handshakes that begin in a second. Further connections wait.",
        at_least(1),
        ours=True,
    ),
    Setting(
        "ssl.handshakes.max",
        _INT,
        1000,
        "The most connections whose handshake has not ended. Beyond it, the one that has been silent for "
        "longest is closed.",
        at_least(1),
        ours=True,
    ),
)

SASL_SETTINGS = (
    _row(
        "sasl.enabled.mechanisms",
        _LIST,
        ("GSSAPI",),
        "The mechanisms by which clients of a listener with SASL authenticate: 'PLAIN', 'SCRAM-SHA-256', "
        "'SCRAM-SHA-512'. Such a listener needs a value: GSSAPI, the default, is not supported.",
        guide="security.md",
    ),
    _row(
        "sasl.jaas.config",
        _PASSWORD,
        None,
        "For PLAIN, the users and their passwords, as 'listener.name.<listener>.plain.sasl.jaas.config'. "
        "Users with SCRAM credentials can use PLAIN without it.",
        guide="security.md",
    ),
    _row(
        "sasl.server.max.receive.size",
        _INT,
        512 * 1024,
        "The largest request in bytes before its client has authenticated.",
        at_least(1),
    ),
    _row(
        "connections.max.reauth.ms",
        _LONG,
        0,
        "How long a client stays authenticated; then it must authenticate again, or its connection is "
        "closed. 0: for ever.",
        at_least(0),
        guide="security.md",
    ),
    Setting(
        "sasl.initial.users",
        _PASSWORD,
        None,
        "Users that have a password from the start on, as NAME:PASSWORD, separated by commas, for tests and "
        "containers. They can use each mechanism.",
        ours=True,
        guide="security.md",
    ),
    Setting(
        "connection.failed.authentication.delay.ms",
        _INT,
        100,
        "How long the answer to a failed authentication waits.",
        at_least(0),
    ),
    Setting(
        "connection.authentication.timeout.ms",
        _INT,
        30_000,
        "How long a client of a listener with SASL may take to authenticate.",
        at_least(1),
        ours=True,
    ),
)

SECURITY_SETTINGS = (*TLS_SETTINGS, *HANDSHAKE_SETTINGS, *SASL_SETTINGS)

TLS_NAMES = frozenset(setting.name for setting in (*TLS_SETTINGS, *HANDSHAKE_SETTINGS))
SASL_NAMES = frozenset(setting.name for setting in SASL_SETTINGS)

_BY_NAME = {setting.name: setting for setting in SECURITY_SETTINGS if setting.per_listener}
_BY_MECHANISM = frozenset({"sasl.jaas.config", "connections.max.reauth.ms"})
_MECHANISMS = ("plain.", "scram-sha-256.", "scram-sha-512.")
_PREFIX = "listener.name."


def listener_setting_name(listener: str, name: str) -> str:
    """The name of a listener's own value for a setting."""
    return f"{_PREFIX}{listener.lower()}.{name}"


def find_listener_setting(name: str) -> Setting | None:
    """The setting that `listener.name.<listener>.<name>` gives to one listener; None for another name."""
    if not name.startswith(_PREFIX):
        return None
    _, _, own = name.removeprefix(_PREFIX).partition(".")
    for mechanism in _MECHANISMS:
        without = own.removeprefix(mechanism)
        if without in _BY_MECHANISM:
            own = without
    setting = _BY_NAME.get(own)
    return None if setting is None else replace(setting, name=name, default=None)
