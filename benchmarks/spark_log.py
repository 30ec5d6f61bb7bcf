"""`python -m benchmarks.spark_log`: the speed of the format kafka-log, alone and in Spark.

The log is written into a temporary directory (`TMPDIR`) and read from the page cache, so only the reader is
measured. "alone" is the reader's own generator in this process, one slice after the other, as a task runs it;
in Spark, rows go to the JVM and on to the sink `noop`. Figures are medians of `REPEATS` runs; those in CPU
time are also valid on a busy machine. Memory is the growth of a process while it reads one slice.
"""

import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import NamedTuple

from barnabas.pipeline.filters import Kept
from barnabas.pipeline.log_source.log_options import parse_log_options
from barnabas.pipeline.log_source.planning import plan
from barnabas.pipeline.log_source.slice_reader import LogTask, read_log_slice
from barnabas.protocol.record_batch import Compression, patched_prefix, read_header
from barnabas.protocol.records import Record, encode_records
from barnabas.storage.format.offset_index import OffsetIndex

REPEATS = 5
SEGMENT_BYTES = 128 << 20
SEGMENT_COUNT = 4
INDEX_INTERVAL_BYTES = 4096
ALONE = ("a CPU second", "1 process", "2 processes", "ratio", "MB memory")
DATA_COLUMNS = "key,value,topic,partition,offset,timestamp,timestampType"

_PREFIX_BYTES = 16


class Shape(NamedTuple):
    """The batches of a log."""

    name: str
    record_count: int
    value_bytes: int
    compression: Compression = Compression.NONE


SHAPES = (
    Shape("1 KB records, 16 a batch", 16, 1_000),
    Shape("100 B records, 100 a batch", 100, 100),
    Shape("100 B records, 9,000 a batch", 9_000, 100),
    Shape("1 KB records, 16 a batch, lz4", 16, 1_000, Compression.LZ4),
    Shape("1 KB records, 16 a batch, zstd", 16, 1_000, Compression.ZSTD),
)


def main() -> None:
    """Prints the figures."""
    print("the reader alone, MB/s of log".ljust(32), *(name.rjust(11) for name in ALONE), flush=True)
    for shape in SHAPES:
        with written_log(shape) as directory:
            _print_alone(shape, directory)
    with written_log(SHAPES[0]) as directory:
        for cores in (1, 2):
            print(_in_spark(directory, cores), flush=True)


@contextmanager
def written_log(shape: Shape) -> Generator[Path]:
    """A data directory with a partition of this shape, `SEGMENT_COUNT` segments large."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        folder = directory / "t-0"
        folder.mkdir()
        (directory / "meta.properties").write_text("version=1\n")
        base_offset = 0
        for _ in range(SEGMENT_COUNT):
            base_offset = _write_segment(folder, shape, base_offset)
        yield directory


def _write_segment(folder: Path, shape: Shape, base_offset: int) -> int:
    """Writes one batch repeatedly; no checksum covers its base offset.

    Returns the offset after the segment.
    """
    batch = _batch(shape)
    header = read_header(batch)
    index, entries, since = OffsetIndex(base_offset), bytearray(), 0
    offset = base_offset
    with (folder / f"{base_offset:020d}.log").open("wb") as log:
        for position in range(0, SEGMENT_BYTES, len(batch)):
            log.write(patched_prefix(header, offset, 0))
            log.write(memoryview(batch)[_PREFIX_BYTES:])
            if since > INDEX_INTERVAL_BYTES:
                entries += index.append(offset + header.last_offset_delta, position)
                since = 0
            since += len(batch)
            offset += shape.record_count
    (folder / f"{base_offset:020d}.index").write_bytes(entries)
    return offset


def _batch(shape: Shape) -> bytes:
    """Half of each value is random, so that a codec compresses it to about half its size."""
    now_ms = time.time_ns() // 1_000_000
    random_bytes = shape.value_bytes // 2
    records = [
        Record(number, now_ms, b"%08d" % number, os.urandom(random_bytes) + bytes(random_bytes))
        for number in range(shape.record_count)
    ]
    return encode_records(records, compression=shape.compression)


def _print_alone(shape: Shape, directory: Path) -> None:
    tasks = _tasks(directory)
    size_mb = sum(task.piece.size_bytes for task in tasks) / 1e6
    (one, busy), (two, _) = (_median_seconds(tasks, processes) for processes in (1, 2))
    figures = (size_mb / busy, size_mb / one, size_mb / two, one / two, _memory_bytes(tasks[0]) / 1e6)
    print(shape.name.ljust(32), *(_figure(each).rjust(11) for each in figures), flush=True)


def _figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _tasks(directory: Path) -> list[LogTask]:
    return plan(parse_log_options({"path": str(directory), "columns": DATA_COLUMNS}), Kept())


def _median_seconds(tasks: list[LogTask], process_count: int) -> tuple[float, float]:
    """For reading all slices with `process_count` processes: (wall time, total CPU time)."""
    with ProcessPoolExecutor(process_count, mp_context=_spawn()) as pool:
        list(pool.map(read_whole, tasks))
        runs: list[tuple[float, float]] = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            busy = sum(pool.map(read_whole, tasks))
            runs.append((time.perf_counter() - started, busy))
        return statistics.median(wall for wall, _ in runs), statistics.median(busy for _, busy in runs)


def read_whole(task: LogTask) -> float:
    """Reads a slice to its end. Returns the CPU time in seconds."""
    started = time.process_time()
    for _ in read_log_slice(task):
        pass
    return time.process_time() - started


def _memory_bytes(task: LogTask) -> int:
    with ProcessPoolExecutor(1, mp_context=_spawn()) as pool:
        return pool.submit(grown_bytes, task).result()


def grown_bytes(task: LogTask) -> int:
    """The growth of this process while it reads the slice."""
    before = _peak_bytes()
    read_whole(task)
    return _peak_bytes() - before


def _peak_bytes() -> int:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) * 1024


def _spawn() -> SpawnContext:
    return multiprocessing.get_context("spawn")


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _in_spark(directory: Path, cores: int) -> str:
    """A line of figures. Spark runs in its own process, with this number of cores."""
    with ProcessPoolExecutor(1, mp_context=_spawn()) as pool:
        figures = pool.submit(spark_figures, str(directory), cores).result()
    return f"in Spark, local[{cores}]: " + ", ".join(f"{name} {speed:,.0f} MB/s" for name, speed in figures)


def spark_figures(directory: str, cores: int) -> list[tuple[str, float]]:
    """(name, MB/s) of reads by a session with this number of cores."""
    from pyspark.sql import SparkSession

    from barnabas.pipeline import register

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "1g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    register(spark)
    size_bytes = sum(path.stat().st_size for path in Path(directory).glob("*/*.log"))

    def speed(columns: str) -> float:
        frame = spark.read.format("kafka-log").option("columns", columns).load(directory)

        def work() -> None:
            frame.write.format("noop").mode("overwrite").save()

        work()
        return size_bytes / statistics.median(_seconds(work) for _ in range(REPEATS)) / 1e6

    figures = [("all columns", speed(DATA_COLUMNS)), ("offsets alone", speed("offset"))]
    spark.stop()
    return figures


if __name__ == "__main__":
    main()
