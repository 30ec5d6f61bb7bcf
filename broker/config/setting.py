"""One configuration setting: its name, type, default, bounds and description.

Names, types and error texts are those of Apache Kafka's `ConfigDef`, so that DescribeConfigs,
IncrementalAlterConfigs and CreateTopics answer as its tools expect. `tables.py` has all settings. Pure.
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from enum import IntEnum, StrEnum
from functools import partial

from barnabas.broker.config.errors import InvalidValueError

Value = bool | int | float | str | tuple[str, ...] | None
Check = Callable[[str, Value], None]
"""Called with a setting's name and its parsed value; raises `InvalidValueError`."""

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
ARRAY_BYTES_MAX = INT_MAX - 8
"""The largest array of bytes in Java, which bounds a record there."""

_PLAIN_DOUBLE_MIN, _PLAIN_DOUBLE_MAX = 1e-3, 1e7

_WHOLE_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
"""Sign and digits. A number with more digits is no LONG, and Python's `int` refuses thousands of digits."""
_LIST_SEPARATOR = re.compile(r"\s*,\s*")


class SettingType(IntEnum):
    """The data types of a setting, by their ids in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class Scope(StrEnum):
    """The kind of resource that a setting belongs to, as error texts name it."""

    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings.

    Fields:
        default: the value when none is given; None is "not set".
        doc: the effect, in full sentences. DescribeConfigs returns it, and the tables of the documentation
            have it (`tests/reference`), so it is the only description of the setting. Values are in single
            quotes.
        check: refuses impossible values of the right type.
        dynamic: whether IncrementalAlterConfigs may change it while the broker runs.
        per_listener: whether each listener may have its own value (`listener.name.<listener>.<setting>`).
        broker_synonyms: for a topic or group setting, the broker settings that are its default, the
            strongest first, each with the factor that converts its unit into this setting's (for example
            hours into milliseconds).
        aliases: other names for items of a list, each with the item that it stands for.
        ours: True for a setting that only Barnabas has.
        guide: the page of docs that tells more, such as `delays.md`; empty for none.
    """

    name: str
    type: SettingType
    default: Value
    doc: str
    check: Check | None = None
    _: KW_ONLY
    scope: Scope = Scope.BROKER
    dynamic: bool = False
    per_listener: bool = False
    broker_synonyms: tuple[tuple[str, int], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    ours: bool = False
    guide: str = ""

    @property
    def is_secret(self) -> bool:
        """Whether no answer and no log line may contain its value."""
        return self.type is SettingType.PASSWORD

    @property
    def allowed(self) -> str:
        """The values that the check accepts, as text; empty if there is no check."""
        return self.check.text if isinstance(self.check, AllowedValues) else ""

    def parse(self, raw: str) -> Value:
        """The value written as `raw`; raises `InvalidValueError` with Kafka's text."""
        value = _PARSERS[self.type](self.name, raw)
        if isinstance(value, tuple):
            aliases = dict(self.aliases)
            value = tuple(aliases.get(item, item) for item in value)
        if self.check is not None:
            self.check(self.name, value)
        return value


def own_group_setting(
    name: str, type_: SettingType, default: Value, doc: str, check: Check | None = None, *, guide: str = ""
) -> Setting:
    """A setting that Apache Kafka does not know, and that any group can set at any time."""
    return Setting(name, type_, default, doc, check, scope=Scope.GROUP, dynamic=True, ours=True, guide=guide)


def render(value: Value) -> str | None:
    """`value` as Kafka writes it in a response; None stays None."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case float():
            return _java_double(value)
        case _:
            return str(value)


def _java_double(value: float) -> str:
    """As Java writes it: with an exponent (`1.0E7`) from ten million up and below a thousandth."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or _PLAIN_DOUBLE_MIN <= abs(value) < _PLAIN_DOUBLE_MAX:
        return repr(value)
    from decimal import Decimal  # few values need an exponent

    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    power = len(digits) + int(exponent) - 1
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{power}"


def integer(value: Value) -> int:
    """The value of a setting of type INT or LONG that is set."""
    assert isinstance(value, int), "the setting is no whole number, or not set"
    return value


def decimal(value: Value) -> float:
    """The value of a setting of type DOUBLE that is set."""
    assert isinstance(value, float), "the setting is no decimal number, or not set"
    return value


def invalid(name: str, value: object, reason: str) -> InvalidValueError:
    return InvalidValueError(f"Invalid value {value} for configuration {name}: {reason}")


# --- parsing --------------------------------------------------------------------------------------


def _parse_boolean(name: str, raw: str) -> Value:
    match raw.strip().lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise invalid(name, raw, "Expected value to be either true or false")


def _whole_number(name: str, raw: str, type_name: str, largest: int) -> int:
    match = _WHOLE_NUMBER.fullmatch(raw.strip())
    if match is not None and -largest - 1 <= (value := int(match[1] + match[2])) <= largest:
        return value
    raise invalid(name, raw, f"Not a number of type {type_name}")


def _parse_int(name: str, raw: str) -> Value:
    return _whole_number(name, raw, "INT", INT_MAX)


def _parse_long(name: str, raw: str) -> Value:
    return _whole_number(name, raw, "LONG", LONG_MAX)


def _parse_double(name: str, raw: str) -> Value:
    """Refuses NaN, which Java accepts: it passes no bound, and no timer can wait for it."""
    try:
        value = math.nan if "_" in raw else float(raw)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise invalid(name, raw, "Not a number of type DOUBLE")
    return value


def _parse_string(_name: str, raw: str) -> Value:
    return raw.strip()


def _parse_password(_name: str, raw: str) -> Value:
    """Unchanged, as in Kafka."""
    return raw


def _parse_list(_name: str, raw: str) -> Value:
    text = raw.strip()
    return tuple(dict.fromkeys(_LIST_SEPARATOR.split(text))) if text else ()


_PARSERS: dict[SettingType, Callable[[str, str], Value]] = {
    SettingType.BOOLEAN: _parse_boolean,
    SettingType.STRING: _parse_string,
    SettingType.INT: _parse_int,
    SettingType.LONG: _parse_long,
    SettingType.DOUBLE: _parse_double,
    SettingType.LIST: _parse_list,
    SettingType.PASSWORD: _parse_password,
}


# --- checks ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """A check that can name the values that it accepts, for the reference of all settings."""

    text: str
    """Such as `at least 1`; with Markdown."""
    check: Check

    def __call__(self, name: str, value: Value) -> None:
        self.check(name, value)


def allows(text: str) -> Callable[[Check], AllowedValues]:
    """Decorates a check with the text of the values that it accepts."""
    return partial(AllowedValues, text)


def _number(value: Value) -> float:
    assert isinstance(value, int | float), "the setting has a bound, but is no number"
    return value


def quoted(choices: Iterable[str]) -> str:
    """The choices for a text with Markdown."""
    return ", ".join(f"`{choice}`" for choice in choices)


def at_least(smallest: float) -> AllowedValues:
    @allows(f"at least {smallest}")
    def check(name: str, value: Value) -> None:
        if value is not None and _number(value) < smallest:
            raise invalid(name, value, f"Value must be at least {smallest}")

    return check


def between(smallest: float, largest: float) -> AllowedValues:
    lower = at_least(smallest)

    @allows(f"{smallest} to {largest}")
    def check(name: str, value: Value) -> None:
        lower(name, value)
        if value is not None and _number(value) > largest:
            raise invalid(name, value, f"Value must be no more than {largest}")

    return check


def one_of(*choices: str) -> AllowedValues:
    @allows(f"one of {quoted(choices)}")
    def check(name: str, value: Value) -> None:
        if value not in choices:
            raise invalid(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def each_one_of(*choices: str) -> AllowedValues:
    single = one_of(*choices)

    @allows(f"any of {quoted(choices)}")
    def check(name: str, value: Value) -> None:
        assert isinstance(value, tuple), "the setting has a check for lists, but is no list"
        if "" in value:
            raise InvalidValueError(f"Configuration '{name}' values must not be empty.")
        for item in value:
            single(name, item)

    return check
