"""What may differ between Apache Kafka's answers and this broker's: the one written list.

`make diff` and the tests go by it, and docs/differences.md is made of it. A rule names fields by API and
path, as a pattern of fnmatch: `fetch: responses*.partitions*.high_watermark`.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from typing import Final, NamedTuple

from tests.differential.plain import Plain, is_mapping

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
"""The fields by which elements of lists are told apart."""


def _any(_kafka: Plain, _ours: Plain) -> bool:
    return True


class Rule(NamedTuple):
    """One allowed difference."""

    name: str
    fields: tuple[str, ...]
    """`api: path`; what tells an element of a list from others is in braces, as in `configs{flush.ms}`."""
    kafka: str
    ours: str
    why: str
    allows: Callable[[Plain, Plain], bool] = _any
    """Which pairs of values it is about, Kafka's first."""
    ends_history: bool = False
    """What comes after it follows from it, so that the rest of the history is left out."""


class Order(NamedTuple):
    """A list whose order means nothing."""

    fields: tuple[str, ...]
    why: str


def _are_times(kafka: Plain, ours: Plain) -> bool:
    return isinstance(kafka, int) and isinstance(ours, int) and kafka > 0 and ours > 0


def _is_merged(kafka: Plain, ours: Plain) -> bool:
    """Whether they are the same ranges once neighbours with equal counts are one."""
    return _merged(kafka) == _merged(ours)


def _merged(acquired: list[Plain]) -> list[list[int]]:
    merged: list[list[int]] = []
    for one in acquired:
        first, last, count = one["first_offset"], one["last_offset"], one["delivery_count"]
        if merged and merged[-1][1] + 1 == first and merged[-1][2] == count:
            merged[-1][1] = last
        else:
            merged.append([first, last, count])
    return merged


def _are_names(kafka: Plain, ours: Plain) -> bool:
    return isinstance(kafka, str) and isinstance(ours, str) and kafka != "" and ours != ""


def _is_resolved(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka == -1 and ours >= 0
    return is_so


def _is_negative(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka < 0 and ours == 0
    return is_so


def _is_earlier(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = 0 <= kafka < ours
    return is_so


def _is_cut_off(kafka: Plain, ours: Plain) -> bool:
    """Whether what Kafka has besides is a part of one more batch."""
    return len(kafka) == len(ours) + 1 and "cut_after_bytes" in kafka[-1] and kafka[:-1] == ours


def _is_unwritten(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka == "Dead" and ours in ("PreparingRebalance", "CompletingRebalance")
    return is_so


def _is_left_out(kafka: Plain, ours: Plain) -> bool:
    is_so: bool = kafka >= 0 and ours == -1
    return is_so


def _is_abortable(kafka: Plain, ours: Plain) -> bool:
    return (kafka, ours) == ("transaction_abortable", "invalid_txn_state")


def _is_unknown_member(kafka: Plain, ours: Plain) -> bool:
    return (kafka, ours) == ("unknown_server_error", "unknown_member_id")


_NOT_SERVED: Final = (17, 29, 30, 31, 34, 36, 38, 39, 40, 41, 64, 80, 81, 83, 84, 85, 86, 87, 88, 89)
"""SASL, ACLs, delegation tokens, several disks, brokers and voters, share state between brokers, streams."""

RULES: Final = (
    Rule(
        "throttle time",
        ("*: throttle_time",),
        "more than 0 when quotas are exceeded",
        "the same; how much more depends on the moment",
        "quotas are measured in time",
        _are_times,
    ),
    Rule(
        "error messages",
        ("*: *error_message", "*: error_message"),
        "free text, or none",
        "other text, or none",
        "no client reads them; people do, and ours say more",
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
        "not there",
        "docs/not-supported.md",
    ),
    Rule(
        "features that are not there",
        tuple(
            f"api_versions: {kind}_features{{{name}}}"
            for kind in ("supported", "finalized")
            for name in ("eligible.leader.replicas.version", "kraft.version", "streams.version")
        ),
        "offered",
        "not there",
        "one replica, one voter, and no streams groups",
    ),
    Rule(
        "the epoch of the features",
        ("api_versions: finalized_features_epoch",),
        "the end of its metadata log",
        "the same",
        "they are two brokers",
    ),
    Rule(
        "times of now",
        ("*: *timestamp*", "*: *log_append_time*"),
        "when the broker did it",
        "when the broker did it",
        "the clock goes on",
        _are_times,
    ),
    Rule(
        "epochs of share groups",
        ("share_group_*: *member_epoch", "share_group_*: *group_epoch", "share_group_*: *assignment_epoch"),
        "a new member gets its partitions a second later, in an epoch of their own",
        "it has them in its first heartbeat's answer, and the epochs differ",
        "docs/decisions/0003",
        _are_times,
    ),
    Rule(
        "start offsets that were resolved",
        ("describe_share_group_offsets: *start_offset", "describe_share_group_offsets: *lag"),
        "-1 until the first acknowledgement, and lost in a crash",
        "recorded at the first fetch",
        "docs/decisions/0005",
        _is_resolved,
    ),
    Rule(
        "negative lag",
        ("describe_share_group_offsets: *lag",),
        "below 0 where the start was set beyond the end",
        "0",
        "nothing is left to read",
        _is_negative,
    ),
    Rule(
        "coordinator epochs",
        (
            "describe_producers: *coordinator_epoch",
            "fetch: *records{\x00\x00\x00\x00}.value",
            "fetch: *records{\x00\x00\x00\x01}.value",
        ),
        "how often the coordinator's partition has changed its leader",
        "how often the broker has started",
        "they are two brokers; it is in the markers, too",
    ),
    Rule(
        "where a group's offsets are",
        ("describe_transactions: *topics{__consumer_offsets}.partitions*",),
        "by the hash of the group's name",
        "the same",
        "in recorded answers the group had another name",
    ),
    Rule(
        "the next leader of a classic group",
        ("join_group: leader",),
        "the first in the order of a hash table",
        "the one that has been in the group longest",
        "any member will do",
        _are_names,
        ends_history=True,
    ),
    Rule(
        "a tie between protocols",
        ("join_group: protocol_name",),
        "the first in the order of a hash table",
        "the first that a member has named",
        "as many members want the one as the other",
        _are_names,
        ends_history=True,
    ),
    Rule(
        "classic groups that nobody has synchronised",
        ("describe_groups: groups*.group_state",),
        "Dead, until anything has been written to the same partition of the coordinator's topic",
        "what it is",
        "the group is there",
        _is_unwritten,
        ends_history=True,
    ),
    Rule(
        "start offsets of share groups",
        ("describe_share_group_offsets: *start_offset",),
        "the one before the last write",
        "the one in force, with the same lag",
        "docs/decisions/0005",
        _is_earlier,
    ),
    Rule(
        "who gets which partition of a share group",
        ("share_group_*: *assignment", "share_group_*: *assignment.topic_partitions*"),
        "by the hash of the topic's id, and after a second",
        "by the partition's number, at once",
        "docs/decisions/0003; the assignor's own cases are in its tests",
    ),
    Rule(
        "acquired ranges",
        ("share_fetch: *acquired_records",),
        "one range over several batches",
        "the same in pieces, with `share.state.store=log`",
        "no range names an offset that the broker's own records take up",
        _is_merged,
    ),
    Rule(
        "batches that are cut short",
        ("share_fetch: *partitions*.records",),
        "behind the acquired records comes what `MaxBytes` leaves room for of the next batch",
        "whole batches alone",
        "clients pass over the part, and get the batch with their next fetch",
        _is_cut_off,
    ),
    Rule(
        "log start of refused records",
        ("produce: *partition_responses*.log_start_offset",),
        "where the log begins, if it was the log that refused them",
        "-1, as with other errors",
        "it says nothing about what was refused",
        _is_left_out,
    ),
    Rule(
        "settings of streams groups",
        ("describe_configs: *configs{streams.*}", "create_topics: *configs{streams.*}"),
        "shown with a group's settings",
        "not there",
        "streams groups are not served",
    ),
    Rule(
        "writes outside of a transaction",
        (
            "txn_offset_commit: topics*.partitions*.error_code",
            "produce: responses*.partition_responses*.error_code",
        ),
        "TRANSACTION_ABORTABLE now and then, when it is asked of several producers at once",
        "INVALID_TXN_STATE for versions that know no better",
        "it is what Kafka tells such a client when it is alone",
        _is_abortable,
    ),
    Rule(
        "offsets of nobody in an epoch",
        ("offset_fetch: groups*.error_code",),
        "UNKNOWN_SERVER_ERROR for a member epoch without a member id",
        "UNKNOWN_MEMBER_ID",
        "it is the client's mistake",
        _is_unknown_member,
    ),
    Rule(
        "the broker's own topics",
        ("create_topics: topics{__consumer_offsets*}.*",),
        "TOPIC_ALREADY_EXISTS, or it is created",
        "INVALID_REQUEST",
        "docs/decisions/0005",
    ),
    Rule(
        "flush.ms",
        ("*: *configs{flush.ms}.*",),
        "9223372036854775807: the operating system decides",
        "1000, from `log.flush.interval.ms`",
        "here the broker makes what was appended durable in time (docs/durability.md)",
    ),
    Rule(
        "min.insync.replicas of the cluster",
        (
            "*: *configs{min.insync.replicas}.config_source",
            "*: *configs{min.insync.replicas}.is_default",
            "*: *configs{min.insync.replicas}.synonyms*",
        ),
        "a dynamic default of all brokers: eligible leader replicas have written it at the first start",
        "the default",
        "there is one replica",
    ),
)

ORDERS: Final = (
    Order(
        (
            "list_offsets: topics",
            "list_offsets: topics*.partitions",
            "offset_commit: topics",
            "offset_commit: topics*.partitions",
            "offset_delete: topics",
            "offset_delete: topics*.partitions",
            "offset_fetch: *topics",
            "offset_fetch: *partitions",
            "offset_fetch: groups",
            "describe_groups: groups",
            "describe_groups: groups*.members",
            "join_group: members",
            "delete_groups: results",
            "leave_group: members",
            "add_partitions_to_txn: results_by_topic_v3_and_below",
            "add_partitions_to_txn: *results_by_partition",
            "add_partitions_to_txn: *topic_results",
            "add_partitions_to_txn: results_by_transaction",
            "list_transactions: transaction_states",
            "describe_transactions: transaction_states",
            "describe_transactions: transaction_states*.topics",
            "describe_transactions: transaction_states*.partitions",
            "describe_producers: topics",
            "describe_producers: topics*.partitions",
            "describe_producers: topics*.active_producers",
            "txn_offset_commit: topics",
            "txn_offset_commit: topics*.partitions",
            "consumer_group_heartbeat: assignment.topic_partitions",
            "consumer_group_heartbeat: assignment.topic_partitions*.partitions",
            "consumer_group_describe: groups",
            "consumer_group_describe: *members",
            "consumer_group_describe: *topic_partitions",
            "consumer_group_describe: *partitions",
            "consumer_group_describe: *subscribed_topic_names",
            "describe_user_scram_credentials: results",
            "alter_user_scram_credentials: results",
            "describe_client_quotas: entries",
            "describe_client_quotas: entries*.values",
            "api_versions: api_keys",
            "api_versions: *_features",
            "elect_leaders: replica_election_results",
            "elect_leaders: replica_election_results*.partition_result",
            "alter_partition_reassignments: responses",
            "describe_log_dirs: results*.topics",
            "metadata: topics",
            "metadata: topics*.partitions",
            "describe_configs: results",
            "describe_configs: results*.configs",
            "describe_configs: results*.configs*.synonyms",
            "create_topics: topics",
            "create_topics: topics*.configs",
            "create_partitions: results",
            "delete_topics: responses",
            "incremental_alter_configs: responses",
            "alter_configs: responses",
            "share_group_describe: groups",
            "share_group_describe: groups*.members",
            "share_group_describe: *subscribed_topic_names",
            "describe_share_group_offsets: groups*.topics",
            "describe_share_group_offsets: groups*.topics*.partitions",
            "delete_share_group_offsets: responses",
            "alter_share_group_offsets: responses",
            "share_group_heartbeat: assignment.topic_partitions",
            "share_fetch: responses",
            "share_fetch: responses*.partitions",
            "share_acknowledge: responses",
            "share_acknowledge: responses*.partitions",
        ),
        "Kafka puts errors first, or answers in the order of a hash table; here it is the request's",
    ),
)


def identity(element: Plain) -> str:
    """What tells an element of a list from the others, as text."""
    if not is_mapping(element):
        return str(element)
    return "/".join(str(element[name]) for name in _IDENTITIES if name in element)


@cache
def _rules_of(api: str, path: str) -> tuple[Rule, ...]:
    field = f"{api}: {path}"
    return tuple(rule for rule in RULES if any(fnmatchcase(field, pattern) for pattern in rule.fields))


def allowing(api: str, path: str, kafka: Plain, ours: Plain) -> Rule | None:
    """The rule that allows this difference; None if there is none."""
    return next((rule for rule in _rules_of(api, path) if rule.allows(kafka, ours)), None)


@cache
def is_ordered(api: str, path: str) -> bool:
    """Whether the order of a list means something."""
    field = f"{api}: {path}"
    return not any(fnmatchcase(field, pattern) for order in ORDERS for pattern in order.fields)
