"""What may differ between Apache Kafka's answers and this broker's: the one written list.

`make diff` and the tests go by it, and docs/differences.md is made of it. A rule names fields by API and
path, as a pattern of fnmatch: `fetch: responses*.partitions*.high_watermark`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from tests.differential.older_kafka import OLDER_KAFKA
from tests.differential.orders import ORDERS
from tests.differential.plain import Plain, is_mapping
from tests.differential.predicates import (
    are_alone,
    are_names,
    are_times,
    is_abortable,
    is_alone,
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
"""The fields by which elements of lists are told apart."""


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
        "levels of share.version",
        (
            "api_versions: *_features{share.version}.max_version*",
            "api_versions: *_features{share.version}.min_version_level",
        ),
        "0 to 2, and 2 in a new cluster",
        "0 to 1, and 1",
        "level 2 means dead letters, which are not served",
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
        "markers alone",
        ("share_fetch: *acquired_records",),
        "a range that holds only the marker of a transaction",
        "none; the marker is archived",
        "docs/decisions/0005",
        is_alone,
        ends_history=True,
    ),
    Rule(
        "nothing but markers alone",
        ("share_fetch: responses{*}", "share_fetch: responses*.partitions{*}"),
        "an answer for a partition of which only such a marker is acquired",
        "none",
        "docs/decisions/0005",
        are_alone,
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
        "where assignments are computed",
        ("describe_configs: *configs{*.assignor.offload.enable}",),
        "a setting of groups that Kafka shows once its broker has it",
        "not there",
        "an assignment is computed with the heartbeat that needs it; the comparison has Kafka do so as well",
    ),
    Rule(
        "settings of dead letters",
        (
            "describe_configs: *configs{errors.deadletterqueue.*}",
            "create_topics: *configs{errors.deadletterqueue.*}",
        ),
        "shown with a topic's and a group's settings",
        "not there",
        "there are no dead letters",
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


def identity(element: Plain) -> str:
    """What tells an element of a list from the others, as text."""
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
    """Whether the order of a list means something."""
    field = f"{api}: {path}"
    return not any(fnmatchcase(field, pattern) for order in ORDERS for pattern in order.fields)
