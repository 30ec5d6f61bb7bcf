"""Security settings: their results, the refused ones, and the secrecy of passwords and keys."""

from __future__ import annotations

import pickle
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from barnabas.client.errors import MisuseError, SecurityOptionError
from barnabas.client.network.security import PEM_BYTES_MAX, PLAINTEXT, Security, parse_security
from barnabas.client.network.tls import tls_context

SECRET = "do not tell"
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": SECRET,
}


def pem(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def ca_text(authority: trustme.CA) -> str:
    return authority.cert_pem.bytes().decode()


def test_without_settings_nothing_is_encrypted() -> None:
    assert parse_security({}) == PLAINTEXT
    assert not PLAINTEXT.uses_tls
    assert not PLAINTEXT.uses_sasl


def test_words_are_accepted_in_any_case() -> None:
    security = parse_security({**SASL, "security.protocol": "sasl_ssl", "sasl.mechanism": "scram-sha-256"})
    assert (security.protocol, security.mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert security.uses_tls
    assert security.uses_sasl


def test_files_are_read_once(tmp_path: Path, authority: trustme.CA) -> None:
    path = pem(tmp_path, "ca.pem", ca_text(authority))
    security = parse_security({"security.protocol": "SSL", "ssl.ca.location": path})
    Path(path).unlink()
    arrived: Security = pickle.loads(pickle.dumps(security))
    assert arrived == security
    assert tls_context(arrived).check_hostname


@pytest.mark.parametrize("algorithm", ["none", ""])
def test_the_host_name_is_ignored_only_on_request(algorithm: str) -> None:
    given = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": algorithm}
    context = tls_context(parse_security(given))
    assert not context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"


def test_secrets_are_not_shown() -> None:
    given = Security(
        password=SECRET, key_pem=SECRET, key_password=SECRET, certificate_pem=SECRET, ca_pem=SECRET
    )
    assert SECRET not in f"{given} {given!r}"


@pytest.mark.parametrize(
    ("settings", "option", "reason"),
    [
        ({"security.protocl": "SSL"}, "security.protocl", "did you mean security.protocol?"),
        ({"x": "y"}, "x", "there is no such setting; the settings are security.protocol, "),
        ({"security.protocol": "TLS"}, "security.protocol", "'TLS' is not PLAINTEXT or SSL or SASL_PLAIN"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism", "'GSSAPI' is not PLAIN or SCRAM-SHA-256"),
        ({**SASL, "sasl.username": ""}, "sasl.username", "is needed with security.protocol SASL_PLAINTEXT"),
        ({**SASL, "sasl.password": "a\0b"}, "sasl.password", "has a null character in it"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism", "is needed with security.protocol SASL_SSL"),
        ({"sasl.password": SECRET}, "sasl.password", "has an effect only with security.protocol SASL_"),
        ({"security.protocol": "SSL", "sasl.username": "a"}, "sasl.username", "has an effect only with"),
        (
            {**SASL, "ssl.key.password": SECRET},
            "ssl.key.password",
            "only with security.protocol SSL or",
        ),
        (
            {"security.protocol": "SSL", "ssl.key.password": SECRET},
            "ssl.certificate.location",
            "is needed with ssl.key.password",
        ),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/nowhere/ca.pem"},
            "ssl.ca.location",
            "/nowhere/ca.pem cannot be read: No such file or directory",
        ),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "off"},
            "ssl.endpoint.identification.algorithm",
            "'off' is not https or none",
        ),
    ],
)
def test_an_invalid_setting_is_refused_with_its_name(
    settings: dict[str, str], option: str, reason: str
) -> None:
    with pytest.raises(SecurityOptionError) as refused:
        parse_security(settings)
    assert isinstance(refused.value, MisuseError)
    assert refused.value.option == option
    assert str(refused.value).startswith(f"{option}: ")
    assert reason in refused.value.reason
    assert SECRET not in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize("text", ["no certificate", "-----BEGIN \n" + "x" * PEM_BYTES_MAX])
def test_a_file_of_another_format_is_refused(tmp_path: Path, text: str) -> None:
    given = {"security.protocol": "SSL", "ssl.ca.location": pem(tmp_path, "ca.pem", text)}
    with pytest.raises(SecurityOptionError, match=r"ssl\.ca\.location: .*ca\.pem is not in PEM format"):
        parse_security(given)


def test_a_file_without_certificates_is_refused_with_its_setting(
    tmp_path: Path, authority: trustme.CA
) -> None:
    key = authority.issue_cert("x").private_key_pem.bytes().decode()
    given = {"security.protocol": "SSL", "ssl.ca.location": pem(tmp_path, "ca.pem", key)}
    with pytest.raises(SecurityOptionError, match=r"ssl\.ca\.location: holds no certificates"):
        tls_context(parse_security(given))


@pytest.mark.parametrize("location", ["ssl.certificate.location", "ssl.key.location"])
def test_a_key_that_does_not_fit_its_certificate_is_refused(
    tmp_path: Path, authority: trustme.CA, location: str
) -> None:
    issued, other = authority.issue_cert("x"), authority.issue_cert("y")
    texts = {
        "ssl.certificate.location": issued.cert_chain_pems[0].bytes().decode(),
        "ssl.key.location": issued.private_key_pem.bytes().decode(),
    }
    texts[location] = (
        other.private_key_pem.bytes() if location == "ssl.key.location" else other.cert_chain_pems[0].bytes()
    ).decode()
    paths = {name: pem(tmp_path, f"{name}.pem", text) for name, text in texts.items()}
    with pytest.raises(SecurityOptionError, match=r"ssl\.certificate\.location: certificate and key cannot"):
        tls_context(parse_security({"security.protocol": "SSL", **paths}))


def shown_certificate(context: ssl.SSLContext, server_context: ssl.SSLContext) -> bytes | None:
    """The certificate that a client shows to the server `x`, which asks for one, in DER."""
    server_context.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname="x")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return server.getpeercert(binary_form=True)


def test_certificate_and_key_may_be_in_one_file(tmp_path: Path, authority: trustme.CA) -> None:
    issued = authority.issue_cert("x")
    path = pem(tmp_path, "both.pem", issued.private_key_and_cert_chain_pem.bytes().decode())
    ca_path = pem(tmp_path, "ca.pem", ca_text(authority))
    settings = {"security.protocol": "SSL", "ssl.ca.location": ca_path, "ssl.certificate.location": path}
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca_path)
    server_context.load_cert_chain(path)
    shown = shown_certificate(tls_context(parse_security(settings)), server_context)
    assert shown == ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


def test_comments_in_a_file_of_certificates_may_be_in_any_language(
    tmp_path: Path, authority: trustme.CA
) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(f"# Főtanúsítvány\n{ca_text(authority)}", encoding="utf-8")
    security = parse_security({"security.protocol": "SSL", "ssl.ca.location": str(path)})
    assert len(tls_context(security).get_ca_certs()) == 1
