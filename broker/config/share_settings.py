"""The settings of share groups: the broker's own, their lower and upper bounds, and those of one group.

They are those of KIP-932 ("Configuration") with the names of Apache Kafka 4.3, of KIP-1240 (limits per group)
and KIP-1263 (assignment interval). A group's value and the broker's own must be within the bounds. Pure.
"""

import re
from datetime import timedelta

from barnabas.broker.config.bounded_setting import BoundedSetting, timing_settings
from barnabas.broker.config.kafka_names import ASSIGNOR_CLASSES
from barnabas.broker.config.setting import (
    Check,
    Scope,
    Setting,
    SettingType,
    Value,
    allows,
    at_least,
    between,
    invalid,
    one_of,
    own_group_setting,
    quoted,
)
from barnabas.coordinator.assignor import load, simple
from barnabas.share.fetch.share_group_config import AutoOffsetReset
from barnabas.share.partition.limits import LOCK_DURATION_MIN_MS
from barnabas.share.partition.waits import DELAY_MS_MAX, WAIT_MS_MAX

RECORD_LOCKS_MAX = 1_000_000
"""Far above Kafka's 10,000, because a Spark micro-batch holds all its records at once."""

_RETRY_MULTIPLIER_MAX = 100
"""The greatest growth of the delay from one delivery to the next."""

DELAYED_RECORDS_MAX = 1_000_000
"""The most delayed records of a partition: they take some 300 MB of memory."""

KEY_RUN_MAX = 1_000
"""The most records of one key that can be in flight together."""

SHARE_ASSIGNORS = (simple.NAME, load.NAME)

_BOOLEAN, _STRING, _LIST = SettingType.BOOLEAN, SettingType.STRING, SettingType.LIST
_INT, _LONG, _DOUBLE = SettingType.INT, SettingType.LONG, SettingType.DOUBLE
_ORDERING, _RETRIES, _DELAYS = "ordering.md", "retries.md", "delays.md"

SHARE_BOUNDED_SETTINGS = (
    *timing_settings("share"),
    BoundedSetting(
        "share",
        "delivery.count.limit",
        default=5,
        least=2,
        greatest=10,
        doc="The most deliveries of a record. After that it is archived, and the log has a warning.",
        check=between(2, 10),
        least_check=between(2, 5),
        greatest_check=between(5, 25),
        group_check=at_least(2),
    ),
    BoundedSetting(
        "share",
        "record.lock.duration.ms",
        default=30_000,
        least=15_000,
        greatest=60_000,
        doc="How long a delivered record stays locked to its member, unless the member renews the lock. A "
        "member can ask for another duration.",
        check=between(LOCK_DURATION_MIN_MS, 3_600_000),
        least_check=between(LOCK_DURATION_MIN_MS, 30_000),
        greatest_check=between(30_000, 3_600_000),
        group_check=at_least(LOCK_DURATION_MIN_MS),
        guide="asyncio-client.md#options",
    ),
    BoundedSetting(
        "share",
        "partition.max.record.locks",
        default=2000,
        least=100,
        greatest=4000,
        doc="The most records of a partition from the group's start offset to its last delivered record.",
        check=between(100, RECORD_LOCKS_MAX),
        least_check=between(100, 2000),
        greatest_check=between(2000, RECORD_LOCKS_MAX),
        group_check=at_least(100),
    ),
)
"""The numbers that the broker bounds and that each group can set."""


@allows(f"exactly one of {quoted(SHARE_ASSIGNORS)}")
def _check_assignors(name: str, value: Value) -> None:
    assert isinstance(value, tuple)
    if len(value) != 1 or value[0] not in SHARE_ASSIGNORS:
        names = " or ".join(f"'{assignor}'" for assignor in SHARE_ASSIGNORS)
        reason = f"It must be {names}, because there is no other assignor"
        raise invalid(name, ",".join(value), reason)


def _share(name: str, default: int, doc: str, check: Check) -> Setting:
    return Setting(f"group.share.{name}", _INT, default, doc, check)


SHARE_SETTINGS = (
    _share("max.size", 200, "The most members of one share group.", between(1, 1000)),
    Setting(
        "group.share.max.groups",
        _INT,
        10_000,
        "The most share groups, including those without members. A further one cannot be joined.",
        at_least(1),
        ours=True,
    ),
    Setting(
        "group.share.empty.retention.ms",
        _LONG,
        -1,
        "How long a share group without members is kept before it is deleted with its state. -1: for ever. "
        "The time begins again with each start of the broker.",
        at_least(-1),
        ours=True,
    ),
    _share(
        "max.share.sessions",
        2000,
        "The most share sessions. A fetch that needs a further one waits for its maximum wait time, and is "
        "then refused.",
        at_least(1),
    ),
    _share(
        "initialize.retry.interval.ms",
        30_000,
        "The delay before a share-partition is initialised again after its state could not be written.",
        at_least(1),
    ),
    Setting(
        "group.share.assignors",
        _LIST,
        (simple.NAME,),
        "The assignor of groups without their own share.assignor.name. The class of an assignor in Kafka "
        "counts as its name.",
        _check_assignors,
        aliases=ASSIGNOR_CLASSES,
    ),
    *(setting for bounded in SHARE_BOUNDED_SETTINGS for setting in bounded.broker_settings()),
)


# --- a group's own --------------------------------------------------------------------------------

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=[-+\d])(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_BY_DURATION = "by_duration:"


def duration_ms(text: str) -> int | None:
    """The milliseconds of an ISO 8601 duration PnDTnHnMn.nS as Java reads it; None for any other text."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return None
    parts = {unit: match[unit] for unit in ("days", "hours", "minutes", "seconds") if match[unit]}
    if not parts:
        return None
    try:
        total = timedelta(**{unit: float(number.replace(",", ".")) for unit, number in parts.items()})
    except OverflowError:
        return None
    milliseconds = total // timedelta(milliseconds=1)
    return -milliseconds if match["sign"] == "-" else milliseconds


def auto_offset_reset(text: str) -> AutoOffsetReset | None:
    """The parsed `share.auto.offset.reset`; None for an invalid text."""
    if text in ("latest", "earliest"):
        return AutoOffsetReset(text)
    milliseconds = duration_ms(text.removeprefix(_BY_DURATION)) if text.startswith(_BY_DURATION) else None
    if milliseconds is None or milliseconds < 0:
        return None
    return AutoOffsetReset("by_duration", milliseconds)


@allows("`earliest`, `latest`, or `by_duration:` and a duration such as `PT1H`")
def _auto_offset_reset_check(name: str, value: Value) -> None:
    if auto_offset_reset(str(value)) is None:
        raise invalid(
            name,
            value,
            f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', "
            "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


SHARE_GROUP_SETTINGS = (
    *(bounded.group_setting() for bounded in SHARE_BOUNDED_SETTINGS),
    Setting(
        "share.auto.offset.reset",
        _STRING,
        "latest",
        "The start of the group on a partition that it has not read: 'latest', 'earliest', or "
        "'by_duration:PnDTnHnMn.nS' for the records of this last time, such as 'by_duration:PT1H'. Both "
        "'latest' and 'earliest' mean offset 0 while the partition has never held a record.",
        _auto_offset_reset_check,
        scope=Scope.GROUP,
        dynamic=True,
    ),
    Setting(
        "share.assignor.name",
        _STRING,
        None,
        "'simple': partitions are spread evenly. 'load': more members read the partitions with the longest "
        "backlogs.",
        one_of(*SHARE_ASSIGNORS),
        scope=Scope.GROUP,
        dynamic=True,
        broker_synonyms=(("group.share.assignors", 1),),
        ours=True,
        guide="running.md#share-groups-with-uneven-partitions",
    ),
    Setting(
        "share.isolation.level",
        _STRING,
        "read_uncommitted",
        "Whether records of aborted or open transactions are delivered ('read_uncommitted'), or kept from "
        "the members ('read_committed').",
        one_of("read_committed", "read_uncommitted"),
        scope=Scope.GROUP,
        dynamic=True,
    ),
    Setting(
        "share.renew.acknowledge.enable",
        _BOOLEAN,
        True,
        "Whether members may renew the lock of a record.",
        scope=Scope.GROUP,
        dynamic=True,
    ),
    own_group_setting(
        "share.record.limit.force",
        _BOOLEAN,
        False,
        "Whether a fetch never acquires more records than it asks for, as with KIP-1206, also if its client "
        "cannot ask for that. It needs more requests for the same records.",
        guide="from-other-queues.md#make-a-queue",
    ),
    own_group_setting(
        "share.order",
        _STRING,
        "none",
        "'key': records of one key are delivered in the order of their offsets, and not two at a time. A "
        "change waits until all locks have ended.",
        one_of("none", "key"),
        guide=_ORDERING,
    ),
    own_group_setting(
        "share.order.key.in.flight.max",
        _INT,
        1,
        "With share.order=key: the most records of one key that are delivered together, to one member.",
        between(1, KEY_RUN_MAX),
        guide=_ORDERING,
    ),
    own_group_setting(
        "share.retry.backoff.ms",
        _LONG,
        0,
        "The delay before a record is delivered again, after its first delivery has failed. It grows with "
        "each delivery. 0: no delay.",
        between(0, DELAY_MS_MAX),
        guide=_RETRIES,
    ),
    own_group_setting(
        "share.retry.backoff.max.ms",
        _LONG,
        60_000,
        "The longest delay of a record, whether by share.retry.backoff.ms or at the request of a consumer.",
        between(0, DELAY_MS_MAX),
        guide=_RETRIES,
    ),
    own_group_setting(
        "share.retry.backoff.multiplier",
        _DOUBLE,
        2.0,
        "The factor by which the delay grows with each delivery.",
        between(1, _RETRY_MULTIPLIER_MAX),
        guide=_RETRIES,
    ),
    own_group_setting(
        "share.retry.backoff.jitter",
        _DOUBLE,
        0.2,
        "Each delay is shortened by a random part of it, at most this part, so that records which failed "
        "together do not all come back together.",
        between(0, 1),
        guide=_RETRIES,
    ),
    own_group_setting(
        "share.delivery.delay.ms",
        _LONG,
        0,
        "The age from which on new records are delivered. Reading stops at the first younger one. 0: no "
        "delay.",
        between(0, WAIT_MS_MAX),
        guide=_DELAYS,
    ),
    own_group_setting(
        "share.delay.header",
        _STRING,
        "",
        "The name of the record header with a delay of its own for the record, in milliseconds as digits. "
        "Empty: no header is read.",
        guide=_DELAYS,
    ),
    own_group_setting(
        "share.delayed.records.max",
        _INT,
        10_000,
        "The most records of a partition that wait because of share.delay.header. Reading stops at a further "
        "one.",
        between(1, DELAYED_RECORDS_MAX),
        guide=_DELAYS,
    ),
    own_group_setting(
        "share.record.ttl.ms",
        _LONG,
        0,
        "The age from which on a record is archived, unless a member holds it. 0: records do not expire.",
        at_least(0),
        guide=_DELAYS,
    ),
)
