"""The rules for the differences between Apache Kafka 4.3.1 and 4.4.0, for a comparison with the older one."""

from __future__ import annotations

from typing import Final

from tests.differential.predicates import are_times
from tests.differential.rule import Rule

OLDER_KAFKA: Final = (
    Rule(
        "versions that Kafka 4.4 added",
        tuple(f"api_versions: api_keys{{{key}}}.max_version" for key in (18, 28, 42)),
        "the version below",
        "the version of Kafka 4.4",
        "KIP-1242, KIP-1319, KIP-1331",
    ),
    Rule(
        "levels of metadata.version",
        tuple(f"api_versions: {kind}_features{{metadata.version}}.*" for kind in ("supported", "finalized")),
        "30",
        "33",
        "the level of Kafka 4.4",
    ),
    Rule(
        "settings that Kafka 4.4 added",
        ("describe_configs: *configs{remote.copy.lag.*}", "create_topics: *configs{remote.copy.lag.*}"),
        "missing",
        "returned with a topic's settings",
        "Kafka 4.4 has them",
    ),
    Rule(
        "epochs of consumer groups",
        (
            "consumer_group_heartbeat: member_epoch",
            "consumer_group_describe: groups*.group_epoch",
            "consumer_group_describe: groups*.assignment_epoch",
            "consumer_group_describe: groups*.member_epoch",
        ),
        "unchanged when another assignor is preferred, or when the last member leaves",
        "one higher",
        "as in Kafka 4.4",
        are_times,
        ends_history=True,
    ),
)
"""The differences that only Apache Kafka 4.3.1 has; in them Barnabas equals 4.4.0."""
