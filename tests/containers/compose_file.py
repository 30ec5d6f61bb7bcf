"""Reads docker/compose.yml: the parts of a service that `chroot_compose.py` obeys. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ruamel.yaml import YAML

_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")


class Service(NamedTuple):
    """One service; paths are absolute."""

    name: str
    image: str
    context: Path | None
    """None if the image is not built from the project."""
    dockerfile: Path | None
    entrypoint: Sequence[str] | None
    """None for the image's own."""
    arguments: Sequence[str] | None
    """`command` of the file: replaces the image's arguments."""
    environment: Mapping[str, str]
    binds: Sequence[str]
    """`/host/path:/path:ro`."""
    volumes: Mapping[str, str]
    """The path in the container, by the name of the volume."""
    dropped_capabilities: Sequence[str]
    healthy_first: Sequence[str]
    """The services that must be healthy before this one starts."""


def read_services(text: str, folder: Path, environ: Mapping[str, str]) -> Mapping[str, Service]:
    """The services by name. `folder` is that of the file; `environ` has values for its `${NAME:-DEFAULT}`."""
    document = read_yaml(interpolate(text, environ))
    return {name: _service(name, fields, folder) for name, fields in document["services"].items()}


def read_yaml(text: str) -> Any:
    loader = YAML(typ="safe", pure=True)
    return loader.load(text)  # pyright: ignore[reportUnknownMemberType] # its parameter has no type


def interpolate(text: str, environ: Mapping[str, str]) -> str:
    """Replaces `${NAME:-DEFAULT}` as compose does."""
    return _VARIABLE.sub(lambda match: environ.get(match[1]) or match[2], text)


def _service(name: str, fields: Mapping[str, Any], folder: Path) -> Service:
    context, dockerfile = _build(fields.get("build"), folder)
    mounts = [mount.partition(":") for mount in fields.get("volumes", ())]
    return Service(
        name,
        fields.get("image", f"barnabas-{name}"),
        context,
        dockerfile,
        fields.get("entrypoint"),
        fields.get("command"),
        {key: str(value) for key, value in fields.get("environment", {}).items()},
        [f"{(folder / source).resolve()}:{target}" for source, _, target in mounts if source.startswith(".")],
        {source: target for source, _, target in mounts if not source.startswith(".")},
        fields.get("cap_drop", ()),
        _healthy_first(fields.get("depends_on", ())),
    )


def _healthy_first(needs: Mapping[str, Mapping[str, str]] | Sequence[str]) -> Sequence[str]:
    if not isinstance(needs, Mapping):
        return ()  # these must have been started, no more
    return [name for name, need in needs.items() if need["condition"] == "service_healthy"]


def _build(build: str | Mapping[str, str] | None, folder: Path) -> tuple[Path | None, Path | None]:
    """The context and the Dockerfile."""
    if build is None:
        return None, None
    if isinstance(build, str):
        context = (folder / build).resolve()
        return context, context / "Dockerfile"
    context = (folder / build["context"]).resolve()
    return context, context / build["dockerfile"]
