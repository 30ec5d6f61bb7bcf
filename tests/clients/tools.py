"""Main classes of Kafka's command line tools, and how to run one in a process of its own."""

import subprocess

from tests.clients.java_build import java_classpath, require

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
    command = [require("java"), "-cp", java_classpath(), main_class, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
