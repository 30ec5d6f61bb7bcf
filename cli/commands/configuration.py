"""The options of the broker's configuration, and the configuration that they select."""

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig


def add_listen(parser: argparse.ArgumentParser) -> None:
    """Add `--listen`."""
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="the address for clients; port 0 selects a free port (default: 127.0.0.1:9092, or the setting "
        "listeners)",
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add `--data-dir`, `--config` and `--set`."""
    parser.add_argument(
        "--data-dir",
        metavar="PATH",
        help="the directory for topics and their state (default: ./barnabas-data, or the setting log.dirs)",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a file with settings: .properties as in Kafka, or .toml (default: no file)",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        dest="settings",
        action="append",
        default=[],
        help="one setting; wins over file and environment; docs/settings.md has all settings",
    )


def load_configuration(options: argparse.Namespace, listen: str | None) -> "BrokerConfig":
    """The configuration from flags, file and environment. Raises ConfigError."""
    from barnabas.broker.config.errors import ConfigError
    from barnabas.broker.config.listener import ListenerError, parse_address
    from barnabas.broker.config.loading import load_config

    if listen is not None:
        try:
            parse_address(listen)
        except ListenerError as error:
            raise ConfigError(f"--listen: {error}.") from None
    if options.data_dir is not None and not options.data_dir.strip():
        raise ConfigError("--data-dir is empty, and must name a directory.")
    return load_config(options.config, os.environ, _overrides(options, listen))


def _overrides(options: argparse.Namespace, listen: str | None) -> list[str]:
    """The flags as settings; `--set` is last, so it wins."""
    overrides: list[str] = []
    if listen is not None:
        overrides.append(f"listeners=PLAINTEXT://{listen}")
    if options.data_dir is not None:
        overrides.append(f"log.dirs={options.data_dir}")
    return overrides + list(options.settings)
