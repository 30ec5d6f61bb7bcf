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
from tests.differential.predicates import (
    are_names,
    are_times,
    is_abortable,
    is_counted,
    is_cut_off,
    is_earlier,
    is_left_out,
    is_merged,
    is_negative,
    is_passed_over,
    is_resolved,
    is_throttled,
    is_unknown_member,
    is_unwritten,
)

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


_NOT_SERVED: Final = (17, 29, 30, 31, 34, 36, 38, 39, 40, 41, 64, 80, 81, 83, 84, 85, 86, 87, 88, 89, 93, 94)
"""SASL, ACLs, delegation tokens, several disks, brokers and voters, share state between brokers, streams."""

RULES: Final = (
    Rule(
        "throttle time",
        ("*: throttle_time",),
        "more than 0 when quotas are exceeded",
        "the same; how much more depends on the moment",
        "quotas are measured in time",
        are_times,
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
        are_times,
    ),
    Rule(
        "epochs of share groups",
        ("share_group_*: *member_epoch", "share_group_*: *group_epoch", "share_group_*: *assignment_epoch"),
        "a new member gets its partitions a second later, in an epoch of their own",
        "it has them in its first heartbeat's answer, and the epochs differ",
        "docs/decisions/0003",
        are_times,
    ),
    Rule(
        "start offsets that were resolved",
        (
            "describe_share_group_offsets: *start_offset",
            "describe_share_group_offsets: *lag",
            "describe_share_group_offsets: lag_unwritten",
        ),
        "-1 until the first acknowledgement, and lost in a crash",
        "recorded at the first fetch",
        "docs/decisions/0005",
        is_resolved,
    ),
    Rule(
        "negative lag",
        ("describe_share_group_offsets: *lag",),
        "below 0 where the start was set beyond the end",
        "0",
        "nothing is left to read",
        is_negative,
    ),
    Rule(
        "lag of what is gone",
        ("describe_share_group_offsets: lag_unwritten",),
        "what a fetch finds to be gone (aborted, below the log's start) counts until something is "
        "acknowledged or released",
        "it doesn't",
        "docs/decisions/0005; the comparison calls the lag so between the two",
        is_counted,
    ),
    Rule(
        "coordinator epochs",
        (
            "describe_producers: *coordinator_epoch",
            "*fetch: *records{\x00\x00\x00\x00}.value",
            "*fetch: *records{\x00\x00\x00\x01}.value",
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
        are_names,
        ends_history=True,
    ),
    Rule(
        "a tie between protocols",
        ("join_group: protocol_name",),
        "the first in the order of a hash table",
        "the first that a member has named",
        "as many members want the one as the other",
        are_names,
        ends_history=True,
    ),
    Rule(
        "classic groups that nobody has synchronised",
        ("describe_groups: groups*.group_state",),
        "Dead, until anything has been written to the same partition of the coordinator's topic",
        "what it is",
        "the group is there",
        is_unwritten,
        ends_history=True,
    ),
    Rule(
        "start offsets of share groups",
        ("describe_share_group_offsets: *start_offset",),
        "the one before the last write",
        "the one in force, with the same lag but for what is gone",
        "docs/decisions/0005",
        is_earlier,
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
        is_merged,
    ),
    Rule(
        "throttled records",
        ("share_fetch: *acquired_records",),
        "once as many records of a batch are acquired as may go out with one near its delivery limit, the "
        "rest of the batch goes out with them, that one as well",
        "that one waits for the next fetch, and goes out in small company",
        "docs/decisions/0005",
        is_throttled,
        ends_history=True,
    ),
    Rule(
        "batches that are cut short",
        ("share_fetch: *partitions*.records",),
        "behind the acquired records comes what `MaxBytes` leaves room for of the next batch",
        "whole batches alone",
        "clients pass over the part, and get the batch with their next fetch",
        is_cut_off,
    ),
    Rule(
        "batches that are passed over",
        ("share_fetch: *partitions*.records",),
        "all batches from the first acquired record to the last",
        "without those between two acquired records with more than 32 others between them",
        "nobody needs them",
        is_passed_over,
    ),
    Rule(
        "log start of refused records",
        ("produce: *partition_responses*.log_start_offset",),
        "where the log begins, if it was the log that refused them",
        "-1, as with other errors",
        "it says nothing about what was refused",
        is_left_out,
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
        is_abortable,
    ),
    Rule(
        "offsets of nobody in an epoch",
        ("offset_fetch: groups*.error_code",),
        "UNKNOWN_SERVER_ERROR for a member epoch without a member id",
        "UNKNOWN_MEMBER_ID",
        "it is the client's mistake",
        is_unknown_member,
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
