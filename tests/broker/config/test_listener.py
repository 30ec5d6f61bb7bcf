"""Listeners from Kafka's settings."""

import pytest

from barnabas.broker.config.listener import Listener, ListenerError, parse_address, parse_listeners


@pytest.mark.parametrize(
    ("listeners", "advertised", "expected"),
    [
        ("PLAINTEXT://127.0.0.1:9092", "", [Listener("PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 9092)]),
        ("PLAINTEXT://:9092", "", [Listener("PLAINTEXT", "", 9092, "localhost", 9092, True)]),
        (
            "PLAINTEXT://0.0.0.0:9092",
            "",
            [Listener("PLAINTEXT", "0.0.0.0", 9092, "localhost", 9092, True)],
        ),
        ("PLAINTEXT://[::]:9092", "", [Listener("PLAINTEXT", "::", 9092, "localhost", 9092, True)]),
        ("plaintext://[::1]:9092", "", [Listener("PLAINTEXT", "::1", 9092, "::1", 9092)]),
        (
            "IN://:19092, OUT://:9092, CONTROLLER://:9093",
            "IN://broker:19092,OUT://localhost:29092",
            [Listener("IN", "", 19092, "broker", 19092), Listener("OUT", "", 9092, "localhost", 29092)],
        ),
    ],
)
def test_listeners_are_read_in_kafkas_notation(
    listeners: str, advertised: str, expected: list[Listener]
) -> None:
    assert list(parse_listeners(listeners, advertised)) == expected


@pytest.mark.parametrize(
    ("listeners", "advertised", "complaint"),
    [
        ("127.0.0.1:9092", "", "which is not NAME://HOST:PORT"),
        ("PLAINTEXT://127.0.0.1", "", "listeners has 'PLAINTEXT://127.0.0.1': '127.0.0.1' is not HOST:PORT"),
        ("PLAINTEXT://127.0.0.1:65536", "", "has the port 65536, but a port is a number from 0 to 65535"),
        ("PLAINTEXT://a..b:9092", "", "has the host 'a..b', which is not a valid name"),
        ("A://:1", "A://a..b:1", "advertised.listeners has 'A://a..b:1': 'a..b:1' has the host 'a..b'"),
        ("A://:1,A://:2", "", "names A twice"),
        ("A://:1", "B://host:1", "names B, which listeners does not"),
        ("A://:1", "A://:1", "gives no host for A"),
        ("A://:1", "A://0.0.0.0:1", "gives 0.0.0.0 for A, to which no client can connect"),
        ("A://:1", "A://[::]:1", "gives :: for A, to which no client can connect"),
        ("CONTROLLER://:9093", "", "no address that clients could use"),
        ("", "", "no address that clients could use"),
    ],
)
def test_settings_that_cannot_be_served_are_refused(listeners: str, advertised: str, complaint: str) -> None:
    with pytest.raises(ListenerError, match=complaint):
        parse_listeners(listeners, advertised)


@pytest.mark.parametrize(
    ("listeners", "mapped", "protocols"),
    [
        ("SSL://:1,IN://:3", {}, ["SSL", "PLAINTEXT"]),
        ("OUT://:1,PLAINTEXT://:2", {"OUT": "ssl"}, ["SSL", "PLAINTEXT"]),
        ("PLAINTEXT://:1", {"PLAINTEXT": "SSL"}, ["SSL"]),
    ],
)
def test_the_protocol_of_a_listener_follows_from_its_name(
    listeners: str, mapped: dict[str, str], protocols: list[str]
) -> None:
    parsed = parse_listeners(listeners, protocol_by_name=mapped)
    assert [listener.protocol for listener in parsed] == protocols


@pytest.mark.parametrize(
    ("mapped", "complaint"),
    [
        ({"OUT": "TLS"}, "gives OUT TLS, which is not PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"IN": "SSL"}, "has no protocol for the listener OUT"),
    ],
)
def test_with_a_map_each_listener_needs_a_protocol(mapped: dict[str, str], complaint: str) -> None:
    with pytest.raises(ListenerError, match=complaint):
        parse_listeners("OUT://:9092", protocol_by_name=mapped)


def test_the_systems_port_is_advertised_unless_another_one_is_set() -> None:
    picked, named = parse_listeners("A://127.0.0.1:0,B://127.0.0.1:0", "A://here:0,B://here:9092")
    assert picked.bound_to(40_000)[2:5] == (40_000, "here", 40_000)
    assert named.bound_to(40_001)[2:5] == (40_001, "here", 9092)


@pytest.mark.parametrize(
    ("listeners", "advertised", "expected"),
    [
        ("A://:9092", "", "192.0.2.7"),
        ("A://0.0.0.0:9092", "", "192.0.2.7"),
        ("A://[::]:9092", "", "192.0.2.7"),
        ("A://:9092", "A://broker:9092", "broker"),
        ("A://127.0.0.1:9092", "", "127.0.0.1"),
    ],
)
def test_only_a_listener_on_all_interfaces_advertises_the_address_of_the_connection(
    listeners: str, advertised: str, expected: str
) -> None:
    (listener,) = parse_listeners(listeners, advertised)
    assert listener.reached_at("192.0.2.7").advertised_host == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        (":9092", ("", 9092)),
        ("[::1]:9092", ("::1", 9092)),
    ],
)
def test_an_address_is_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nowhere", "is not HOST:PORT, such as 127.0.0.1:9092"),
        ("host:65536", "has the port 65536, but a port is a number from 0 to 65535"),
        ("PLAINTEXT://host:1", "is not HOST:PORT, such as 127.0.0.1:9092"),
        ("a:1,b:2", "is not HOST:PORT, such as 127.0.0.1:9092"),
        ("a..b:9092", "has the host 'a..b', which is not a valid name"),
        (f"{'a' * 64}.org:9092", f"has the host '{'a' * 64}.org', which is not a valid name"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ListenerError) as raised:
        parse_address(text)
    assert str(raised.value) == f"{text!r} {reason}"
