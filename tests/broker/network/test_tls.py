"""Listeners with TLS, with real sockets and keys: key stores, client certificates, and their replacement."""

from __future__ import annotations

import asyncio
import os
import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from barnabas.broker.config.errors import ConfigError
from barnabas.broker.network.handler import RequestContext
from barnabas.coordinator.metadata.image import MetadataChanges
from barnabas.protocol.metadata_records import ConfigRecord
from barnabas.runtime.response_budget import EncodedBody
from tests.broker.network.certificates import PASSWORD, Authority, chain_of
from tests.broker.network.edge_fakes import PLAIN_API, body, request_frame
from tests.broker.network.test_server import Bench, Client, serve

MISSING_KEYS = ConfigRecord(
    resource_type=4, resource_name="1", name="listener.name.ssl.ssl.keystore.location", value="/nowhere"
)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def pem_settings(path: Path) -> list[str]:
    return ["listeners=SSL://127.0.0.1:0", "ssl.keystore.type=PEM", f"ssl.keystore.location={path}"]


def whoami(context: RequestContext, _: object) -> EncodedBody:
    return body(str(context.principal))


async def connect(bench: Bench, context: ssl.SSLContext) -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.server.listeners[0].port, ssl=context)
    client = Client(reader, writer)
    bench.clients.append(client)
    return client


async def asked(client: Client) -> bytes:
    client.send(request_frame(PLAIN_API, 1))
    return (await client.answer())[1]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_are_answered_in_both_versions_of_tls(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    async with serve({PLAIN_API: whoami}, *pem_settings(authority.write_pem(authority.issue()))) as bench:
        client = await connect(bench, authority.client_context(version=version))
        assert await asked(client) == b"User:ANONYMOUS"


async def test_a_key_store_in_pkcs12_is_read_also_under_its_name_in_older_configurations(
    authority: Authority,
) -> None:
    path = authority.write_pkcs12(authority.issue())
    for kind in ("PKCS12", "JKS"):
        settings = [f"ssl.keystore.type={kind}", f"ssl.keystore.location={path}"]
        listeners = "listeners=SSL://127.0.0.1:0"
        async with serve(None, listeners, *settings, f"ssl.keystore.password={PASSWORD}") as bench:
            assert await asked(await connect(bench, authority.client_context())) == b"plain"


async def test_keys_and_certificates_can_be_given_themselves(authority: Authority) -> None:
    leaf = authority.issue()
    settings = (
        "listeners=SSL://127.0.0.1:0",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.key={authority.encrypted_key(leaf)}",
        f"ssl.keystore.certificate.chain={chain_of(leaf)}",
        f"ssl.key.password={PASSWORD}",
    )
    async with serve(None, *settings) as bench:
        assert await asked(await connect(bench, authority.client_context())) == b"plain"


async def test_each_listener_may_have_its_own_certificate(authority: Authority) -> None:
    own = authority.write_pem(authority.issue("127.0.0.1", common_name="own"), "own.pem")
    settings = pem_settings(authority.write_pem(authority.issue()))[1:]
    listeners = "listeners=SSL://127.0.0.1:0,OUT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    mapped = "listener.security.protocol.map=OUT:SSL"
    async with serve(
        None, listeners, mapped, *settings, f"listener.name.out.ssl.keystore.location={own}"
    ) as bench:
        names: list[str] = []
        for listener in bench.server.listeners[:2]:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", listener.port, ssl=authority.client_context()
            )
            names.append(
                str(dict(x[0] for x in writer.get_extra_info("peercert")["subject"]).get("commonName"))
            )
            writer.close()
        assert names == ["None", "own"]
        plain = await bench.connect(2)
        assert await asked(plain) == b"plain"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (
            ["ssl.keystore.location=/nowhere/a.p12"],
            "/nowhere/a.p12 cannot be read: No such file or directory",
        ),
        ([], "TLS needs ssl.keystore.location, or ssl.keystore.key with ssl.keystore.certificate.chain"),
        (
            ["ssl.keystore.type=PEM", "ssl.keystore.key=x"],
            "ssl.keystore.key and ssl.keystore.certificate.chain must be given together",
        ),
        (["ssl.keystore.location={pipe}"], "{pipe} is no file"),
        (
            ["ssl.keystore.location={readable}"],
            "every user can read {readable}, and so its key; do: chmod o-r",
        ),
        (["ssl.keystore.location={pem}"], "{pem} is PEM; set ssl.keystore.type to PEM"),
        (
            ["ssl.keystore.type=PEM", "ssl.keystore.location={p12}"],
            "is not PEM; set ssl.keystore.type to PKCS12",
        ),
        (
            ["ssl.keystore.location={p12}", "ssl.keystore.password=wrong"],
            "ssl.keystore.password is not its password",
        ),
        (
            ["ssl.keystore.location={jks}"],
            "-importkeystore -srckeystore {jks} -destkeystore {directory}/a.p12 ",
        ),
        (
            ["ssl.keystore.type=PEM", "ssl.keystore.location={trusted}"],
            "ssl.keystore.location has no private key",
        ),
        (["ssl.keystore.type=PEM", "ssl.keystore.location={mixed}"], "key values mismatch"),
        (
            ["ssl.keystore.type=PEM", "ssl.keystore.location={pem}", "ssl.client.auth=required"],
            "ssl.client.auth=required needs ssl.truststore.location or ssl.truststore.certificates",
        ),
        (
            [
                "ssl.keystore.type=PEM",
                "ssl.keystore.location={pem}",
                "ssl.cipher.suites=TLS_AES_128_GCM_SHA256",
            ],
            "leaves out TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256",
        ),
        (
            [
                "ssl.keystore.type=PEM",
                "ssl.keystore.location={pem}",
                "ssl.enabled.protocols=TLSv1.2",
                "ssl.cipher.suites=TLS_NONE_WITH_NULL",
            ],
            "OpenSSL has no cipher suite TLS_NONE_WITH_NULL",
        ),
        (
            ["ssl.keystore.type=PEM", "ssl.keystore.location={pem}", "ssl.principal.mapping.rules=CN"],
            "'CN' is neither DEFAULT nor RULE",
        ),
    ],
)
async def test_keys_that_cannot_be_used_refuse_the_start(
    authority: Authority, settings: list[str], complaint: str
) -> None:
    leaf = authority.issue()
    jks, mixed = authority.directory / "a.jks", authority.directory / "mixed.pem"
    jks.touch(mode=0o600)
    jks.write_bytes(b"\xfe\xed\xfe\xed and so on")
    mixed.touch(mode=0o600)
    pipe, readable = authority.directory / "pipe", authority.directory / "readable.pem"
    os.mkfifo(pipe)
    readable.write_text("")
    readable.chmod(0o604)
    authority.trusted.chmod(0o600)
    mixed.write_text(authority.issue().private_key_pem.bytes().decode() + chain_of(leaf))
    places = {
        "pem": authority.write_pem(leaf),
        "p12": authority.write_pkcs12(leaf),
        "trusted": authority.trusted,
        "directory": authority.directory,
        "jks": jks,
        "mixed": mixed,
        "pipe": pipe,
        "readable": readable,
    }
    with pytest.raises(ConfigError) as refused:
        async with serve(None, "listeners=SSL://127.0.0.1:0", *(one.format(**places) for one in settings)):
            pass
    assert str(refused.value).startswith("Listener SSL: ")
    assert complaint.format(**places) in str(refused.value)


async def test_an_expired_certificate_is_refused_and_one_that_ends_soon_is_warned_of(
    authority: Authority,
) -> None:
    leaf = authority.root.issue_cert("127.0.0.1", not_after=datetime.now(UTC) + timedelta(days=29))
    settings = pem_settings(authority.write_pem(leaf))
    with capture_logs() as logged:
        async with serve(None, *settings) as bench:
            assert not [line for line in logged if line["event"] == "a certificate expires soon"]
            tls = bench.server.tls
            assert tls is not None
            bench.broker.clock.now_ms = round(datetime.now(UTC).timestamp() * 1000)
            tls.begin()
            tls.begin()
            metric = "barnabas_tls_certificate_expiry_timestamp_seconds{listener=SSL}"
            assert 0 < bench.metric(metric) - datetime.now(UTC).timestamp() < 29 * 86_400
    warned = [line for line in logged if line["event"] == "a certificate expires soon"]
    assert [line["listener"] for line in warned] == ["SSL"], "once a day"


class TestClientCertificates:
    @pytest.mark.parametrize(
        ("auth", "rules", "principal"),
        [
            ("required", "DEFAULT", b"User:CN=alice"),
            ("requested", r"RULE:^CN=([^,]+),.*$/$1/U", b"User:ALICE"),
            ("none", "DEFAULT", b"User:ANONYMOUS"),
        ],
    )
    async def test_the_principal_is_in_the_certificate(
        self, authority: Authority, auth: str, rules: str, principal: bytes
    ) -> None:
        settings = (
            *pem_settings(authority.write_pem(authority.issue())),
            f"ssl.client.auth={auth}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={authority.trusted}",
            f"ssl.principal.mapping.rules={rules}",
        )
        alice = authority.issue("alice", common_name="alice")
        async with serve({PLAIN_API: whoami}, *settings) as bench:
            answer = await asked(await connect(bench, authority.client_context(alice)))
            assert answer[: len(principal)] == principal

    async def test_a_client_without_one_is_refused_if_it_is_required(self, authority: Authority) -> None:
        settings = (
            *pem_settings(authority.write_pem(authority.issue())),
            "ssl.client.auth=required",
            f"ssl.truststore.certificates={authority.trusted.read_text()}",
        )
        with capture_logs() as logged:
            async with serve(None, *settings) as bench:
                stranger = Authority(authority.directory).issue("mallory")
                for certificate in (None, stranger):
                    client = await connect(bench, authority.client_context(certificate))
                    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                        await asked(client)
                assert bench.metric("barnabas_tls_handshakes_failed_total") == 2
        reasons = [line["reason"] for line in logged if line["event"] == "TLS handshake failed"]
        assert reasons[0] == "peer did not return a certificate"
        assert reasons[1].startswith("the client's certificate is refused: ")

    async def test_a_name_without_a_rule_is_cut_off(self, authority: Authority) -> None:
        settings = (
            *pem_settings(authority.write_pem(authority.issue())),
            "ssl.client.auth=required",
            f"ssl.truststore.certificates={authority.trusted.read_text()}",
            "ssl.principal.mapping.rules=RULE:^CN=bob$/bob/",
        )
        async with serve(None, *settings) as bench:
            client = await connect(bench, authority.client_context(authority.issue("alice")))
            assert await client.is_closed()


class TestReplacedKeys:
    async def test_changed_files_count_for_new_connections(self, authority: Authority) -> None:
        path = authority.write_pem(authority.issue())
        async with serve(None, *pem_settings(path)) as bench:
            open_before = await connect(bench, authority.client_context())
            other = Authority(authority.directory)
            with capture_logs() as logged:
                path.write_text("broken")
                self._look(bench)
                self._look(bench)
                assert await asked(await connect(bench, authority.client_context())) == b"plain"
                other.write_pem(other.issue())
                self._look(bench)
            assert await asked(await connect(bench, other.client_context())) == b"plain"
            assert await asked(open_before) == b"plain"
            with pytest.raises(ssl.SSLCertVerificationError):
                await connect(bench, authority.client_context())
        events = [line["event"] for line in logged if line["event"].startswith("new keys")]
        assert events == ["new keys cannot be used, the old ones stay", "new keys"]

    async def test_stored_keys_that_have_become_unusable_do_not_stop_the_start(
        self, authority: Authority
    ) -> None:
        with capture_logs() as logged:
            settings = (
                *pem_settings(authority.write_pem(authority.issue())),
                "listener.name.ssl.ssl.keystore.password=",
            )
            async with serve(None, *settings, stored=MISSING_KEYS) as bench:
                assert await asked(await connect(bench, authority.client_context())) == b"plain"
        (line,) = [line for line in logged if line["log_level"] == "error"]
        assert line["event"] == "stored keys cannot be used, those of the configuration are"

    async def test_changed_settings_count_for_new_connections(self, authority: Authority) -> None:
        other = Authority(authority.directory)
        new = other.write_pem(other.issue(), "new.pem")
        async with serve(None, *pem_settings(authority.write_pem(authority.issue()))) as bench:
            for path, trusted in ((str(new), other), ("/nowhere", other), (None, authority)):
                setting = ConfigRecord(
                    resource_type=4,
                    resource_name="1",
                    name="listener.name.ssl.ssl.keystore.location",
                    value=path,
                )
                bench.broker.image.replay(setting, MetadataChanges())
                bench.server.keys_changed()
                assert await asked(await connect(bench, trusted.client_context())) == b"plain"

    def _look(self, bench: Bench) -> None:
        assert bench.server.tls is not None
        bench.server.tls.begin()


class TestDoor:
    async def test_a_client_without_tls_is_closed_with_a_reason(self, authority: Authority) -> None:
        with capture_logs() as logged:
            async with serve(None, *pem_settings(authority.write_pem(authority.issue()))) as bench:
                client = await bench.connect()
                client.send(request_frame(PLAIN_API, 1))
                assert await client.is_closed()
        (reason,) = [line["reason"] for line in logged if line["event"] == "TLS handshake failed"]
        assert reason == "the client does not speak TLS"

    async def test_a_first_message_in_pieces_is_refused(self, authority: Authority) -> None:
        """The server would sign at a step that no turn was waited for."""
        with capture_logs() as logged:
            async with serve(None, *pem_settings(authority.write_pem(authority.issue()))) as bench:
                client = await bench.connect()
                client.send(b"\x16\x03\x01\x00\x04\x01\x00\x01\x00" + b"\x16\x03\x01\x01\x00" + bytes(256))
                assert await client.is_closed()
        (reason,) = [line["reason"] for line in logged if line["event"] == "TLS handshake failed"]
        assert reason == "the first message of the client is in pieces"

    async def test_clients_that_are_silent_after_their_first_message_keep_nobody_out(
        self, authority: Authority
    ) -> None:
        settings = pem_settings(authority.write_pem(authority.issue()))
        context = authority.client_context()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with suppress(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
        hello = outgoing.read()
        async with serve(None, *settings, "ssl.handshakes.max=2") as bench:
            silent = [await bench.connect() for _ in range(2)]
            for client in silent:
                client.send(hello)
                assert await client.reader.read(1) == b"\x16", "it has signed"
            assert await asked(await connect(bench, context)) == b"plain"

    async def test_connections_at_the_door_count_with_the_open_ones(self, authority: Authority) -> None:
        settings = pem_settings(authority.write_pem(authority.issue()))
        async with serve(None, *settings, "max.connections=2") as bench:
            first = await connect(bench, authority.client_context())
            silent = [await bench.connect() for _ in range(2)]
            assert await silent[0].is_closed()
            assert await asked(first) == b"plain"

    async def test_silent_clients_keep_nobody_out(self, authority: Authority) -> None:
        settings = pem_settings(authority.write_pem(authority.issue()))
        async with serve(None, *settings, "ssl.handshakes.max=2") as bench:
            silent = [await bench.connect() for _ in range(2)]
            silent[1].send(b"\x16\x03\x01")
            assert await asked(await connect(bench, authority.client_context())) == b"plain"
            assert await silent[0].is_closed()
            assert bench.metric("barnabas_tls_handshakes") == 1, "the second one waits on"

    async def test_a_client_that_sends_nothing_is_closed_after_a_time(self, authority: Authority) -> None:
        settings = pem_settings(authority.write_pem(authority.issue()))
        async with serve(None, *settings, "ssl.handshake.timeout.ms=20") as bench:
            client = await bench.connect()
            assert await client.is_closed()

    async def test_many_clients_that_come_together_are_all_served(self, authority: Authority) -> None:
        settings = pem_settings(authority.write_pem(authority.issue()))
        limits = ("ssl.handshake.loop.share=0.5", "ssl.handshakes.per.second.max=100000")
        async with serve(None, *settings, *limits) as bench:
            context = authority.client_context()
            clients = await asyncio.gather(*[connect(bench, context) for _ in range(30)])
            assert [await asked(client) for client in clients] == [b"plain"] * 30
