"""A letter is read from the headers that a broker writes (KIP-1191)."""

from __future__ import annotations

import pytest

from barnabas.cli.dead_letters.letter import NotALetter, parse_letter
from tests.cli.dead_letters.letters import LETTER, OWN_HEADERS, WRITTEN_MS, letter_record


def test_the_headers_of_apache_kafka_make_a_letter() -> None:
    assert parse_letter(1, letter_record()) == LETTER


def test_a_copy_has_key_or_value() -> None:
    found = [
        parse_letter(1, letter_record(key=key, value=value))
        for key, value in ((None, None), (b"", None), (None, b""))
    ]
    assert [not isinstance(one, NotALetter) and one.has_copy for one in found] == [False, True, True]


def test_headers_beside_the_brokers_own_are_those_of_the_source_record() -> None:
    source = (("trace", b"t"), ("__dlq.errors.group", b"of an earlier letter"), ("empty", None))
    found = parse_letter(1, letter_record(headers=(*OWN_HEADERS, *source)))
    assert found == LETTER._replace(headers=source)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("__dlq.errors.topic", None, "it has no header __dlq.errors.topic"),
        ("__dlq.errors.message", None, "it has no header __dlq.errors.message"),
        ("__dlq.errors.group", b"\xff", "its header __dlq.errors.group is not UTF-8"),
        ("__dlq.errors.offset", b"-1", "its header __dlq.errors.offset is '-1', which is not a number"),
        ("__dlq.errors.partition", b"", "its header __dlq.errors.partition is '', which is not a number"),
        ("__dlq.errors.offset", "²".encode(), "its header __dlq.errors.offset is '²', which is not a number"),
    ],
)
def test_a_record_without_these_headers_is_no_letter(name: str, value: bytes | None, reason: str) -> None:
    headers = [(one, value if one == name else given) for one, given in OWN_HEADERS]
    assert parse_letter(1, letter_record(headers=tuple(headers))) == NotALetter(1, 40, WRITTEN_MS, reason)


def test_an_ordinary_record_is_no_letter() -> None:
    assert isinstance(parse_letter(0, letter_record(value=b"v", headers=())), NotALetter)
