"""The files of an import: copies or links logs, and renames Kafka's internal topics. Each function returns
after its changes are durable.
"""

from __future__ import annotations

import os
import shutil
from itertools import pairwise
from pathlib import Path

from barnabas.cli.kafka_import.kafka_directory import SET_ASIDE_SUFFIX
from barnabas.coordinator.metadata.topic_names import METADATA_TOPIC, is_internal
from barnabas.storage.directory.directory_kind import BOOTSTRAP_FILE
from barnabas.storage.segments.segment import LOG_SUFFIX, SHARE_INDEX_SUFFIX
from barnabas.storage.topic_partition import parse_directory_name


def copy_partition(source: Path, target: Path, linked_below: int) -> None:
    """Copies one log into a new directory.

    Segments that end at or below the offset `linked_below` are durable and final, and are linked if possible.
    """
    target.mkdir()
    files = sorted(path for path in source.iterdir() if path.is_file())
    base_offsets = sorted(int(path.stem) for path in files if path.suffix == LOG_SUFFIX)
    ends = dict(pairwise(base_offsets))
    for file in files:
        copy = target / file.name
        is_final = file.suffix == LOG_SUFFIX and ends.get(int(file.stem), linked_below + 1) <= linked_below
        if is_final and _linked(file, copy):
            continue
        shutil.copyfile(file, copy)
        sync(copy)
    add_share_indexes(target)


def _linked(source: Path, target: Path) -> bool:
    """Whether the link was created. It cannot be between two filesystems."""
    try:
        target.hardlink_to(source)
    except OSError:
        return False
    return True


def add_share_indexes(directory: Path) -> None:
    """Adds empty share indexes: Kafka's logs have no share state, and need not be read to find that out."""
    for segment in directory.glob(f"*{LOG_SUFFIX}"):
        segment.with_suffix(SHARE_INDEX_SUFFIX).touch()
    sync(directory)


def set_aside(path: Path) -> None:
    """Renames Kafka's internal topics, and removes their replacements from an interrupted import."""
    for entry in sorted(path.iterdir()):
        key = parse_directory_name(entry.name)
        is_kafkas = entry.name == BOOTSTRAP_FILE or (
            key is not None and (is_internal(key.topic) or key.topic == METADATA_TOPIC)
        )
        if not is_kafkas:
            continue
        aside = path / f"{entry.name}{SET_ASIDE_SUFFIX}"
        if not aside.exists():
            entry.rename(aside)
        elif entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    sync(path)


def sync(path: Path) -> None:
    """Makes a file's content, or a directory's names, durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
