"""The allowed differences between Apache Kafka's answers and Barnabas's: the only list of them.

`make diff` and the tests use it, and docs/differences.md is generated from it. A rule names fields by API and
path, as a pattern of fnmatch: `fetch: responses*.partitions*.high_watermark`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from barnabas.broker.config import tables
from tests.differential.older_kafka import OLDER_KAFKA
from tests.differential.orders import ORDERS
from tests.differential.plain import Plain, is_mapping
from tests.differential.predicates import (
    are_alone,
    are_names,
    are_times,
    is_abortable,
    is_alone,
    is_behind_markers,
    is_counted,
    is_cut_off,
    is_earlier,
    is_left_out,
    is_merged,
    is_negative,
    is_of_rest,
    is_passed_over,
    is_resolved,
    is_throttled,
    is_unknown_member,
    is_unwritten,
)
from tests.differential.rule import Rule

_IDENTITIES: Final = (
    "name",
    "config_name",
    "resource_name",
    "topic_name",
    "topic",
    "topic_id",
    "group_id",
    "member_id",
    "partition_index",
    "partition",
    "index",
    "transactional_id",
    "producer_id",
    "api_key",
    "user",
    "key",
    "partition_id",
    "entity",
)
"""The fields that identify elements of lists."""


_NOT_SERVED: Final = (17, 34, 36, 38, 39, 40, 41, 64, 80, 81, 83, 84, 85, 86, 87, 88, 89, 93, 94)
"""SASL, delegation tokens, several disks, brokers and voters, share state between brokers, streams."""

_OWN: Final = (10_000, 10_001, 10_002)
"""DescribeShareRecords, AlterShareRecords and DescribeShareRecordHistory."""

_OWN_GROUP_SETTINGS: Final = tuple(name for name, setting in tables.GROUP.items() if setting.ours)

_DECISION_5: Final = "[decision 5](decisions/0005-where-kafka-is-not-copied.md)"

RULES: Final = (
    Rule(
        "throttle time",
        ("*: throttle_time",),
        "more than 0 when quotas are exceeded",
        "the same; the exact value depends on the moment",
        "quotas are measured in time",
        are_times,
    ),
    Rule(
        "error messages",
        ("*: *error_message", "*: error_message"),
        "free text, or none",
        "other text, or none",
        "only people read them, and Barnabas's contain more",
    ),
    Rule(
        "addresses",
        (
            "*: cluster_id",
            "*: *brokers*.port",
            "*: *brokers*.host",
            "*: *coordinators*.port",
            "*: *coordinators*.host",
            "*: port",
            "*: host",
        ),
        "its own",
        "its own",
        "they are two brokers",
    ),
    Rule(
        "the machine",
        ("describe_log_dirs: *log_dir", "describe_log_dirs: *_bytes"),
        "its directory, and the bytes of its disk",
        "the same",
        "they are two brokers",
    ),
    Rule(
        "APIs that are not served",
        tuple(f"api_versions: api_keys{{{key}}}" for key in _NOT_SERVED),
        "advertised",
        "missing",
        "[not supported](not-supported.md)",
    ),
    Rule(
        "APIs that Apache Kafka does not have",
        tuple(f"api_versions: api_keys{{{key}}}" for key in _OWN),
        "missing",
        "advertised",
        "[the records of a share group](protocol.md#the-records-of-a-share-group)",
    ),
    Rule(
        "features that Barnabas does not have",
        tuple(
            f"api_versions: {kind}_features{{{name}}}"
            for kind in ("supported", "finalized")
            for name in ("eligible.leader.replicas.version", "kraft.version", "streams.version")
        ),
        "offered",
        "missing",
        "one replica, one voter, and no streams groups",
    ),
    Rule(
        "features that Apache Kafka does not have",
        tuple(
            f"api_versions: {kind}_features{{{name}}}"
            for kind in ("supported", "finalized")
            for name in ("individual.commit", "release.delay", "share.transactional.acknowledgement")
        ),
        "missing",
        "always on",
        "[ranges of offsets](decisions/0022-ranges-beside-the-committed-offset.md), "
        "[retries](decisions/0028-delays-before-retries.md), "
        "[acknowledgements in transactions](decisions/0030-acknowledgements-in-transactions.md)",
    ),
    Rule(
        "settings of groups that Apache Kafka does not have",
        tuple(f"describe_configs: *configs{{{name}}}" for name in _OWN_GROUP_SETTINGS),
        "missing",
        "returned with a group's settings",
        "[settings of groups](settings.md#group-settings)",
    ),
    Rule(
        "the creation of topics for dead letters",
        ("describe_configs: *configs{errors.deadletterqueue.auto.create.topics.enable}.*",),
        "missing topics are not created",
        "missing topics are created",
        "[dead letters](decisions/0024-dead-letters.md)",
    ),
    Rule(
        "the epoch of the features",
        ("api_versions: finalized_features_epoch",),
        "the end of its metadata log",
        "the same",
        "they are two brokers",
    ),
    Rule(
        "current times",
        ("*: *timestamp*", "*: *log_append_time*"),
        "the time of the action",
        "the time of the action",
        "the two brokers act at different times",
        are_times,
    ),
    Rule(
        "epochs of share groups",
        ("share_group_*: *member_epoch", "share_group_*: *group_epoch", "share_group_*: *assignment_epoch"),
        "a new member gets its partitions a second later, in a separate epoch",
        "it gets them in the answer to its first heartbeat, and the epochs differ",
        "[decision 3](decisions/0003-first-heartbeat-assigns.md)",
        are_times,
    ),
    Rule(
        "resolved start offsets",
        (
            "describe_share_group_offsets: *start_offset",
            "describe_share_group_offsets: *lag",
            "describe_share_group_offsets: lag_unwritten",
        ),
        "-1 until the first acknowledgement, and lost in a crash",
        "recorded at the first fetch",
        _DECISION_5,
        is_resolved,
    ),
    Rule(
        "negative lag",
        ("describe_share_group_offsets: *lag",),
        "below 0 if the start was set beyond the end",
        "0",
        "there is no record left to read",
        is_negative,
    ),
    Rule(
        "lag of removed records",
        ("describe_share_group_offsets: lag_unwritten",),
        "records that a fetch finds removed (aborted, below the log's start) count until a record is "
        "acknowledged or released",
        "they do not count",
        f"{_DECISION_5}; during that time the comparison calls the lag `lag_unwritten`",
        is_counted,
    ),
    Rule(
        "coordinator epochs",
        (
            "describe_producers: *coordinator_epoch",
            "*fetch: *records{\x00\x00\x00\x00}.value",
            "*fetch: *records{\x00\x00\x00\x01}.value",
        ),
        "the number of leader changes of the coordinator's partition",
        "the number of starts of the broker",
        "they are two brokers; the epoch is in the markers, too",
    ),
    Rule(
        "the partition of a group's offsets",
        ("describe_transactions: *topics{__consumer_offsets}.partitions*",),
        "from the hash of the group's name",
        "the same",
        "in recorded answers the group had another name",
    ),
    Rule(
        "the next leader of a classic group",
        ("join_group: leader",),
        "the first in the order of a hash table",
        "the longest-standing member of the group",
        "any member is correct",
        are_names,
        ends_history=True,
    ),
    Rule(
        "a tie between protocols",
        ("join_group: protocol_name",),
        "the first in the order of a hash table",
        "the first that a member has named",
        "equal numbers of members want each of them",
        are_names,
        ends_history=True,
    ),
    Rule(
        "classic groups before their first SyncGroup",
        ("describe_groups: groups*.group_state",),
        "Dead, until a record has been written to the same partition of the coordinator's topic",
        "the real state",
        "the group exists",
        is_unwritten,
        ends_history=True,
    ),
    Rule(
        "start offsets of share groups",
        ("describe_share_group_offsets: *start_offset",),
        "that before the last write",
        "that in force, with the same lag except for removed records",
        _DECISION_5,
        is_earlier,
    ),
    Rule(
        "assignment of partitions in a share group",
        ("share_group_*: *assignment", "share_group_*: *assignment.topic_partitions*"),
        "from the hash of the topic's id, and after a second",
        "from the partition's number, at once",
        "[decision 3](decisions/0003-first-heartbeat-assigns.md); the assignor has its own tests",
    ),
    Rule(
        "acquired ranges",
        ("share_fetch: *acquired_records",),
        "one range over several batches",
        "the same range in pieces, with `share.state.store=log`",
        "no range contains the offset of a control record",
        is_merged,
    ),
    Rule(
        "throttled records",
        ("share_fetch: *acquired_records",),
        "a record near its delivery limit bounds the records delivered with it; if that number of the batch "
        "is already acquired, the rest of the batch is delivered as well, with that record",
        "that record waits for the next fetch, and is delivered with few others",
        _DECISION_5,
        is_throttled,
        ends_history=True,
    ),
    Rule(
        "lone markers",
        ("share_fetch: *acquired_records",),
        "a range that contains only the marker of a transaction; near its delivery limit, the marker comes "
        "without the records behind it",
        "none; the marker is archived, and the records behind it do not wait",
        _DECISION_5,
        is_alone,
        ends_history=True,
    ),
    Rule(
        "partitions with lone markers",
        ("share_fetch: responses{*}", "share_fetch: responses*.partitions{*}"),
        "an answer for a partition in which only such markers are acquired; its batches may include those of "
        "aborted transactions between the markers",
        "none",
        _DECISION_5,
        are_alone,
        ends_history=True,
    ),
    Rule(
        "markers before records",
        ("share_fetch: *partitions*.records",),
        "the marker of a transaction, and the batches behind it as far as `MaxBytes` allows",
        "the batches behind it; the marker is archived",
        _DECISION_5,
        is_behind_markers,
        ends_history=True,
    ),
    Rule(
        "partial batches",
        ("share_fetch: *partitions*.records",),
        "the acquired records, and a part of the next batch up to `MaxBytes`",
        "only whole batches",
        "clients skip the part, and get the batch with their next fetch",
        is_cut_off,
    ),
    Rule(
        "batches between acquired records",
        ("share_fetch: *partitions*.records",),
        "all batches from the first acquired record to the last",
        "without those between two acquired records that are more than 32 records apart",
        "the member does not need them",
        is_passed_over,
    ),
    Rule(
        "log start of refused records",
        ("produce: *partition_responses*.log_start_offset",),
        "the log start offset, if the log refused them",
        "-1, as with other errors",
        "it is unrelated to the refused records",
        is_left_out,
    ),
    Rule(
        "greatest timestamp of deleted records",
        tuple(
            f"list_offsets: topics*.partitions*.{name}_of_rest"
            for name in ("timestamp", "offset", "leader_epoch")
        ),
        "ListOffsets by -3 finds a record that DeleteRecords has deleted, until its file is removed",
        "the record with the greatest timestamp among those that are left, or none",
        "no consumer can read from the offset of a deleted record; the comparison gives the fields names of "
        "their own (`offset_of_rest`) where records have been deleted",
        is_of_rest,
    ),
    Rule(
        "settings of streams groups",
        ("describe_configs: *configs{streams.*}", "create_topics: *configs{streams.*}"),
        "returned with a group's settings",
        "missing",
        "streams groups are not served",
    ),
    Rule(
        "offloading of assignors",
        ("describe_configs: *configs{*.assignor.offload.enable}",),
        "a setting of groups, returned if the broker has it",
        "missing",
        "the heartbeat that needs an assignment computes it; the comparison configures Kafka to do the same",
    ),
    Rule(
        "writes outside of a transaction",
        (
            "txn_offset_commit: topics*.partitions*.error_code",
            "produce: responses*.partition_responses*.error_code",
        ),
        "sometimes TRANSACTION_ABORTABLE, with several producers at the same time",
        "INVALID_TXN_STATE for versions that do not know that error",
        "Kafka returns the same to a single producer with such a version",
        is_abortable,
    ),
    Rule(
        "a member epoch without a member id",
        ("offset_fetch: groups*.error_code",),
        "UNKNOWN_SERVER_ERROR",
        "UNKNOWN_MEMBER_ID",
        "it is the client's mistake",
        is_unknown_member,
    ),
    Rule(
        "flush.ms",
        ("*: *configs{flush.ms}.*",),
        "9223372036854775807: the operating system decides",
        "1000, from `log.flush.interval.ms`",
        "Barnabas makes appended records durable after that time ([durability](durability.md))",
    ),
    Rule(
        "min.insync.replicas of the cluster",
        (
            "*: *configs{min.insync.replicas}.config_source",
            "*: *configs{min.insync.replicas}.is_default",
            "*: *configs{min.insync.replicas}.synonyms*",
        ),
        "a dynamic default of all brokers, written at the first start by eligible leader replicas",
        "the default",
        "there is one replica",
    ),
)


def identity(element: Plain) -> str:
    """The identity of an element of a list, as text."""
    if not is_mapping(element):
        return str(element)
    return "/".join(str(element[name]) for name in _IDENTITIES if name in element)


@cache
def _rules_of(api: str, path: str, is_older_kafka: bool) -> tuple[Rule, ...]:
    field = f"{api}: {path}"
    rules = (*RULES, *OLDER_KAFKA) if is_older_kafka else RULES
    return tuple(rule for rule in rules if any(fnmatchcase(field, pattern) for pattern in rule.fields))


def allowing(api: str, path: str, kafka: Plain, ours: Plain, *, is_older_kafka: bool = False) -> Rule | None:
    """The rule that allows this difference; None if there is none. `is_older_kafka`: from Kafka 4.3.1."""
    rules = _rules_of(api, path, is_older_kafka)
    return next((rule for rule in rules if rule.allows(kafka, ours)), None)


@cache
def is_ordered(api: str, path: str) -> bool:
    """Whether the order of a list is meaningful."""
    field = f"{api}: {path}"
    return not any(fnmatchcase(field, pattern) for order in ORDERS for pattern in order.fields)
