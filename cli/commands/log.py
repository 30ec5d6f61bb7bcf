"""`barnabas log`: inspects logs on the disk (`log_tool`)."""

import argparse

from barnabas.cli.log_tool import arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from barnabas.protocol.lean_import import import_kio_without_hypothesis
    from barnabas.runtime.lean_import import import_structlog_without_extras

    import_kio_without_hypothesis()
    import_structlog_without_extras()
    return arguments.run(options)
