"""The settings of a share group for the priorities of records. Pure."""

from barnabas.broker.config.setting import SettingType, Value, allows, between, invalid, own_group_setting
from barnabas.share.partition.limits import NO_PRIORITIES

_GUIDE = "priority.md"

HEADER_NAME = "share.priority.header"
WINDOW_RECORDS = "share.priority.window.records"
OVERTAKEN_MAX = "share.priority.overtaken.max"

HEADER_NAME_LENGTH_MAX = 249
"""Characters; as many as in a topic's name."""
WINDOW_RECORDS_MAX = 10_000
"""Each fetch may look at all urgent records of the window."""
OVERTAKEN_LIMIT = 1_000_000
"""As many as can be in flight (`RECORD_LOCKS_MAX`)."""


@allows(f"at most {HEADER_NAME_LENGTH_MAX} characters")
def _header_name(name: str, value: Value) -> None:
    if len(str(value)) > HEADER_NAME_LENGTH_MAX:
        raise invalid(name, value, f"Value must have at most {HEADER_NAME_LENGTH_MAX} characters")


PRIORITY_GROUP_SETTINGS = (
    own_group_setting(
        HEADER_NAME,
        SettingType.STRING,
        NO_PRIORITIES.header_name,
        "The name of the header with a record's priority, one digit: 9 is delivered first, and 0, or a "
        "record without the header, last. Empty: no priorities. A change waits until all locks have ended.",
        _header_name,
        guide=_GUIDE,
    ),
    own_group_setting(
        WINDOW_RECORDS,
        SettingType.INT,
        NO_PRIORITIES.window_records,
        "With share.priority.header: the number of deliverable records among which the most urgent ones are "
        "chosen.",
        between(1, WINDOW_RECORDS_MAX),
        guide=_GUIDE,
    ),
    own_group_setting(
        OVERTAKEN_MAX,
        SettingType.INT,
        NO_PRIORITIES.overtaken_max,
        "With share.priority.header: a record that this number of deliveries has overtaken comes first.",
        between(1, OVERTAKEN_LIMIT),
        guide=_GUIDE,
    ),
)
