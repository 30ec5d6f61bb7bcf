"""One setting: the values that each type accepts, and their form in responses."""

import pytest

from barnabas.broker.config.errors import InvalidValueError
from barnabas.broker.config.setting import (
    INT_MAX,
    LONG_MAX,
    Setting,
    SettingType,
    Value,
    at_least,
    between,
    each_one_of,
    one_of,
    render,
)


@pytest.mark.parametrize(
    ("type_", "raw", "value"),
    [
        (SettingType.BOOLEAN, " TRUE ", True),
        (SettingType.BOOLEAN, "false", False),
        (SettingType.INT, "+5", 5),
        (SettingType.INT, " -7 ", -7),
        (SettingType.INT, str(INT_MAX), INT_MAX),
        (SettingType.LONG, str(LONG_MAX), LONG_MAX),
        (SettingType.LONG, "-" + "0" * 5000 + "12", -12),
        (SettingType.LONG, "000", 0),
        (SettingType.LONG, str(-LONG_MAX - 1), -LONG_MAX - 1),
        (SettingType.DOUBLE, "0.5", 0.5),
        (SettingType.STRING, " a b ", "a b"),
        (SettingType.LIST, "a , b,c", ("a", "b", "c")),
        (SettingType.LIST, "", ()),
    ],
)
def test_a_value_is_parsed_as_kafka_parses_it(type_: SettingType, raw: str, value: Value) -> None:
    assert Setting("s", type_, None, "doc").parse(raw) == value


@pytest.mark.parametrize(
    ("type_", "raw", "reason"),
    [
        (SettingType.BOOLEAN, "maybe", "Expected value to be either true or false"),
        (SettingType.INT, str(INT_MAX + 1), "Not a number of type INT"),
        (SettingType.INT, "1_000", "Not a number of type INT"),
        (SettingType.INT, "٣", "Not a number of type INT"),
        (SettingType.INT, "1" * 5000, "Not a number of type INT"),
        (SettingType.LONG, "1" * 20, "Not a number of type LONG"),
        (SettingType.LONG, "", "Not a number of type LONG"),
        (SettingType.LONG, "1.5", "Not a number of type LONG"),
        (SettingType.DOUBLE, "x", "Not a number of type DOUBLE"),
        (SettingType.DOUBLE, "1_0", "Not a number of type DOUBLE"),
        (SettingType.DOUBLE, "NaN", "Not a number of type DOUBLE"),
    ],
)
def test_a_value_of_another_type_is_refused_in_kafkas_words(
    type_: SettingType, raw: str, reason: str
) -> None:
    with pytest.raises(InvalidValueError) as raised:
        Setting("s", type_, None, "doc").parse(raw)
    assert str(raised.value) == f"Invalid value {raw} for configuration s: {reason}"


def test_bounds_name_the_bound() -> None:
    with pytest.raises(InvalidValueError, match="Value must be at least 3"):
        Setting("s", SettingType.INT, None, "doc", at_least(3)).parse("2")
    with pytest.raises(InvalidValueError, match="Value must be at least 0"):
        Setting("s", SettingType.INT, None, "doc", between(0, 3)).parse("-1")
    with pytest.raises(InvalidValueError, match="Value must be no more than 3"):
        Setting("s", SettingType.INT, None, "doc", between(0, 3)).parse("4")


def test_choices_are_listed() -> None:
    with pytest.raises(InvalidValueError, match="String must be one of: a, b"):
        Setting("s", SettingType.STRING, None, "doc", one_of("a", "b")).parse("A")
    with pytest.raises(
        InvalidValueError, match="Invalid value c for configuration s: String must be one of: a, b"
    ):
        Setting("s", SettingType.LIST, None, "doc", each_one_of("a", "b")).parse("a,c")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), (True, "true"), (False, "false"), (5, "5"), (0.5, "0.5"), (("a", "b"), "a,b"), ((), "")],
)
def test_values_are_written_as_kafka_writes_them(value: Value, text: str | None) -> None:
    assert render(value) == text
