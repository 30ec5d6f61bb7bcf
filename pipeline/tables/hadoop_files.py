"""Files on any Hadoop filesystem, through the driver's JVM.

Spark writes its data through Hadoop's filesystems, with the credentials and settings of the session. This
uses the same filesystems, so users configure them once; PyArrow's would need a second configuration, and
HDFS's native library. It needs a driver with a JVM, which clients of Spark Connect don't have.

It reads and writes only small files, each as one text.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote, urlsplit

from barnabas.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_ATOMIC_RENAME: Final = frozenset({"s3", "s3a", "s3n", "gs", "oss", "cosn", "wasb", "wasbs", "swift"})
"""Object stores: their rename copies object by object."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file or directory. `uri` is absolute and percent-encoded, as Hadoop's `Path.toUri` has it."""

    uri: str
    is_directory: bool
    size_bytes: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last part, decoded."""
        return unquote(self.uri.rstrip("/").rpartition("/")[2])


class HadoopFiles:
    """The files below one directory. Paths are relative to it; '' is the directory itself."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        """Raises `PipelineError` if the session has no JVM, or Hadoop knows no such filesystem."""
        self._jvm: Any = _jvm_of(spark)
        gateway: Any = spark.sparkContext._gateway  # pyright: ignore[reportPrivateUsage]
        self._java_array: Any = gateway.new_array
        path = self._jvm.org.apache.hadoop.fs.Path(root)
        session: Any = spark._jsparkSession  # pyright: ignore[reportPrivateUsage]  there is no other way
        configuration = session.sessionState().newHadoopConf()
        try:
            self._fs: Any = path.getFileSystem(configuration)
            self._root: Any = self._fs.makeQualified(path)
            self._context: Any = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
                self._root.toUri(), configuration
            )
        except _java_error() as error:
            raise PipelineError(f"{root}: {_reason(error)}") from error
        self.root_uri: Final[str] = _uri(self._root)
        self.scheme: Final[str] = urlsplit(self.root_uri).scheme

    def uri(self, path: str) -> str:
        """Absolute and percent-encoded."""
        return _uri(self._path(path))

    def location(self, path: str) -> str:
        """Absolute and not encoded, for Spark."""
        return str(self._path(path).toString())

    def location_of(self, uri: str) -> str:
        """The location of a file by its URI, for Spark."""
        return str(self._path_of(uri).toString())

    def local(self, path: str) -> Path:
        """The path for Python, on a local filesystem."""
        return Path(str(self._path(path).toUri().getPath()))

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(self._path(path)))

    def entries(self, path: str, pattern: str = "*") -> list[FileEntry]:
        """The entries of a directory with names that match Hadoop's glob pattern, by name; none if the
        directory does not exist.
        """
        if not self.exists(path):
            return []
        matching = self._jvm.org.apache.hadoop.fs.GlobFilter(pattern)
        return sorted(
            map(_entry, self._fs.listStatus(self._path(path), matching)), key=lambda entry: entry.uri
        )

    def files(self, path: str) -> Iterator[FileEntry]:
        """All files below a directory."""
        if not self.exists(path):
            return
        found = self._fs.listFiles(self._path(path), True)
        while found.hasNext():
            yield _entry(found.next())

    def read_text(self, path: str) -> str:
        """The content of a file. Raises FileNotFoundError."""
        if not self.exists(path):
            raise FileNotFoundError(self.uri(path))
        stream = self._fs.open(self._path(path))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """Writes or replaces a file. A reader may see a part of it until this returns."""
        stream = self._fs.create(self._path(path), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def create_text(self, path: str, text: str) -> bool:
        """Writes a file in one step; returns False and changes nothing if it exists."""
        temporary = f"{path.rpartition('/')[0]}/.{uuid.uuid4().hex}.tmp"
        self.write_text(temporary, text)
        try:
            return self._link(temporary, path) if self.scheme == "file" else self.rename(temporary, path)
        finally:
            self.delete(temporary)

    def rename(self, source: str, target: str) -> bool:
        """Moves a file or directory in one step; returns False if the target exists."""
        self._fs.mkdirs(self._path(target).getParent())
        nothing = self._java_array(self._jvm.org.apache.hadoop.fs.Options.Rename, 0)
        try:
            self._context.rename(self._path(source), self._path(target), nothing)
        except _java_error() as error:
            if self.exists(target) and self.exists(source):
                return False
            raise PipelineError(f"{self.uri(source)} cannot be moved: {_reason(error)}") from error
        return True

    def delete(self, path: str) -> None:
        """Removes a file, or a directory with its content; does nothing if there is none."""
        self._fs.delete(self._path(path), True)

    def delete_uri(self, uri: str) -> None:
        """Like `delete`, by URI."""
        self._fs.delete(self._path_of(uri), True)

    def _link(self, source: str, target: str) -> bool:
        """Hadoop's local filesystem looks before it renames, which is two steps; a link is one."""
        try:
            os.link(self.local(source), self.local(target))
        except FileExistsError:
            return False
        return True

    def _path_of(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(uri))

    def _path(self, path: str) -> Any:
        """The path from its parts: a parser would take a name with a colon for a scheme."""
        return self._jvm.org.apache.hadoop.fs.Path(self._root, f"./{path}") if path else self._root


def with_scheme(uri: str, schemes: Mapping[str, str]) -> str:
    """The URI with another library's name for its scheme."""
    scheme, separator, rest = uri.partition("://")
    return f"{schemes.get(scheme, scheme)}{separator}{rest}"


def _entry(status: Any) -> FileEntry:
    return FileEntry(
        _uri(status.getPath()),
        bool(status.isDirectory()),
        int(status.getLen()),
        int(status.getModificationTime()),
    )


def _uri(path: Any) -> str:
    """Local paths with three slashes, as Spark's own log has them."""
    text = str(path.toUri().toASCIIString())
    return text.replace("file:/", "file:///", 1) if not text.startswith("file://") else text


def _jvm_of(spark: SparkSession) -> Any:
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise PipelineError("Only a driver with a JVM can write tables; Spark Connect has no JVM here.")
    return jvm


def _java_error() -> type[Exception]:
    protocol: Any = import_module("py4j.protocol")
    return cast("type[Exception]", protocol.Py4JJavaError)


def _reason(error: Any) -> str:
    return str(error.java_exception.getMessage())
