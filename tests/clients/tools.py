"""Main classes of Kafka's command line tools, and how to run one in a process of its own."""

import subprocess

from confluent_kafka import TopicPartition

from tests.clients.cluster import Cluster, confluent_admin
from tests.clients.java_build import java_classpath, require
from tests.clients.share_probe import patient

TOPICS = "org.apache.kafka.tools.TopicCommand"
GROUPS = "org.apache.kafka.tools.GroupsCommand"
GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
VERIFIABLE_SHARE_CONSUMER = "org.apache.kafka.tools.VerifiableShareConsumer"
CONFIGS = "kafka.admin.ConfigCommand"
METADATA_SHELL = "org.apache.kafka.shell.MetadataShell"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"


def run_tool(main_class: str, *arguments: object) -> str:
    """The output of one of Kafka's programs, run in a process of its own because it may end its whole
    process.
    """
    given = patient(main_class, [str(argument) for argument in arguments])
    command = [require("java"), "-cp", java_classpath(), main_class, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def print_partition(bootstrap: str, topic: str, formatter: str) -> str:
    """What kafka-console-consumer prints of the present records of partition 0, with a formatter."""
    cluster = Cluster(bootstrap)
    latest = {TopicPartition(topic, 0): confluent_admin.OffsetSpec.latest()}
    (end,) = cluster.admin.list_offsets(latest).values()
    return run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", 0, "--offset", "earliest"),
        *("--formatter", formatter, "--max-messages", end.result().offset),
    )
