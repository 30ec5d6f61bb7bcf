"""docker/compose.yml, the Dockerfiles and the files that they use, without building an image."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from barnabas.__main__ import command_parser
from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.config.loading import load_config
from barnabas.broker.config.sources import DEFAULTS_VARIABLE
from tests.clients.broker_process import BrokerProcess, reserved_port, started
from tests.clients.installation import installed_barnabas
from tests.clients.test_readme import blocks
from tests.containers.buildah import BASES, PROJECT
from tests.containers.compose_file import interpolate, read_services, read_yaml
from tests.folders import FOLDERS

DOCKER = PROJECT / "docker"
COMPOSE = DOCKER / "compose.yml"
DOCKERFILES = sorted(DOCKER.rglob("Dockerfile"))
DASHBOARD = DOCKER / "grafana" / "dashboards" / "barnabas.json"
SERVICES = read_services(COMPOSE.read_text(encoding="utf-8"), DOCKER, {})
FIELDS: dict[str, Any] = read_yaml(COMPOSE.read_text(encoding="utf-8"))["services"]
METRIC = re.compile(r"\b(?:barnabas|kafka|process)_\w+")


def yaml(path: Path) -> Any:
    return read_yaml(path.read_text(encoding="utf-8"))


def check_compose_file(file: Path) -> subprocess.CompletedProcess[str]:
    """Compare with the schema that check-jsonschema ships."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def broker_config(environment: dict[str, str]) -> BrokerConfig:
    """The configuration of a broker in the image."""
    return load_config(None, {DEFAULTS_VARIABLE: str(DOCKER / "defaults.properties"), **environment}, [])


def test_the_compose_file_is_valid_by_the_schema_of_the_specification() -> None:
    checked = check_compose_file(COMPOSE)
    assert checked.returncode == 0, checked.stdout


def test_the_schema_refuses_a_misspelt_key(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yml"
    wrong.write_text(COMPOSE.read_text(encoding="utf-8").replace("depends_on", "depend_on"), encoding="utf-8")
    assert check_compose_file(wrong).returncode == 1


def test_the_compose_file_for_integration_tests_is_valid(tmp_path: Path) -> None:
    (text,) = blocks(PROJECT / "docs" / "containers.md", "yaml")
    shown = tmp_path / "compose.yml"
    shown.write_text(text, encoding="utf-8")
    checked = check_compose_file(shown)
    assert checked.returncode == 0, checked.stdout
    services = read_yaml(interpolate(text, {"KAFKA_PORT": "29092"}))["services"]
    assert services["broker"]["ports"] == ["127.0.0.1:29092:9092"]
    config = broker_config(services["broker"]["environment"])
    assert [one.port for one in config.listeners] == [19092, 9092]
    assert [one.advertised_port for one in config.listeners] == [19092, 29092]
    options = command_parser().parse_args(services["topics"]["command"])
    assert (options.topic, options.partitions, options.if_missing) == ("orders", 3, True)
    options = command_parser().parse_args(services["group"]["command"])
    assert (options.name, options.settings) == ("workers", [("share.auto.offset.reset", "earliest")])
    assert services["tests"]["depends_on"].keys() == {"topics", "group"}
    assert {one["pull_policy"] for one in services.values() if one.get("image") == "barnabas"} == {"never"}


def test_variables_have_their_value_or_their_default() -> None:
    text = "a${X:-1}b${Y:-2}c"
    assert interpolate(text, {"X": "9", "Y": ""}) == "a9b2c"


def test_the_broker_of_the_image_listens_on_all_interfaces_with_http_and_without_a_warning() -> None:
    config = broker_config({})
    assert [listener.address for listener in config.listeners] == ["0.0.0.0:9092"]
    assert config.http is not None
    assert (config.http.address, config.http.token) == ("0.0.0.0:8080", None)
    assert config.log_directory == "/var/lib/barnabas/data"
    assert config.warnings == ()


def test_clients_inside_and_outside_of_the_network_get_their_own_address() -> None:
    config = broker_config(dict(SERVICES["broker"].environment))
    inside, outside = config.listeners
    assert (inside.port, inside.advertised_host, inside.advertised_port) == (19092, "broker", 19092)
    assert (outside.port, outside.advertised_host, outside.advertised_port) == (9092, "localhost", 9092)
    assert config.warnings == ()
    assert "127.0.0.1:${KAFKA_PORT:-9092}:9092" in FIELDS["broker"]["ports"]
    clients = [service.environment["BOOTSTRAP_SERVERS"] for service in SERVICES.values()
               if "BOOTSTRAP_SERVERS" in service.environment]  # fmt: skip
    assert clients == ["broker:19092"] * 4


def test_the_advertised_port_follows_the_published_one() -> None:
    services = read_services(COMPOSE.read_text(encoding="utf-8"), DOCKER, {"KAFKA_PORT": "29092"})
    _, outside = broker_config(dict(services["broker"].environment)).listeners
    assert (outside.port, outside.advertised_port) == (9092, 29092)


@pytest.mark.parametrize("name", FIELDS)
def test_ports_are_published_to_this_machine_only(name: str) -> None:
    assert all(port.startswith("127.0.0.1:") for port in FIELDS[name].get("ports", ()))


def test_the_broker_needs_no_privilege_and_writes_to_its_volume_only() -> None:
    broker = FIELDS["broker"]
    assert broker["read_only"] is True
    assert broker["cap_drop"] == ["ALL"]
    assert broker["security_opt"] == ["no-new-privileges:true"]
    assert SERVICES["broker"].volumes == {"data": "/var/lib/barnabas/data"}


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_no_image_runs_as_root(dockerfile: Path) -> None:
    users = re.findall(r"^USER (\S+)$", dockerfile.read_text(encoding="utf-8"), re.MULTILINE)
    assert users
    assert int(users[-1]) > 0


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_every_base_image_is_an_argument_with_a_stand_in(dockerfile: Path) -> None:
    text = dockerfile.read_text(encoding="utf-8")
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
    stages = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert stages == [f"${{{name}}}" for name in defaults]
    assert set(defaults.values()) <= BASES.keys()


def test_the_build_gets_every_folder_of_the_package() -> None:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert {f"!{folder}" for folder in FOLDERS} <= set(lines)


def test_the_build_gets_the_target_of_every_link_in_the_package() -> None:
    lines = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    inside = [PROJECT / line.removeprefix("!") for line in lines if line.startswith("!")]
    links = [path for folder in FOLDERS for path in (PROJECT / folder).rglob("*") if path.is_symlink()]
    targets = [link.resolve() for link in links if "node_modules" not in link.parts]
    assert targets
    assert [one for one in targets if not any(one.is_relative_to(place) for place in inside)] == []


@pytest.mark.parametrize("name", SERVICES)
def test_every_mounted_file_exists(name: str) -> None:
    sources = [Path(bind.partition(":")[0]) for bind in SERVICES[name].binds]
    assert [path for path in sources if not path.exists()] == []


def test_prometheus_scrapes_the_broker_by_a_name_that_the_broker_allows() -> None:
    [job] = yaml(DOCKER / "prometheus" / "prometheus.yml")["scrape_configs"]
    [target] = job["static_configs"][0]["targets"]
    host, _, port = target.partition(":")
    config = broker_config(dict(SERVICES["broker"].environment))
    assert config.http is not None
    assert host in config.http.allowed_hosts
    assert int(port) == config.http.port


def test_grafana_finds_its_data_source_and_its_dashboard() -> None:
    provisioning = DOCKER / "grafana" / "provisioning"
    [source] = yaml(provisioning / "datasources" / "prometheus.yml")["datasources"]
    [provider] = yaml(provisioning / "dashboards" / "barnabas.yml")["providers"]
    assert source["url"] == "http://prometheus:9090"
    assert any(bind.endswith(f":{provider['options']['path']}:ro") for bind in SERVICES["grafana"].binds)
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    uids = {target["datasource"]["uid"] for panel in panels for target in (panel, *panel["targets"])}
    assert uids == {source["uid"]}


def test_panels_have_their_own_ids_and_places() -> None:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len({panel["id"] for panel in panels}) == len(places) == len(panels)
    assert all(panel["description"] and panel["title"] for panel in panels)


@pytest.mark.barnabas
def test_the_broker_serves_every_metric_of_the_dashboard(tmp_path: Path) -> None:
    port = reserved_port()
    settings = {"http.listener": str(port)}
    with (
        started(BrokerProcess(installed_barnabas(), tmp_path / "data", settings)),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        served = answer.read().decode()
    families = set(re.findall(r"^# TYPE (\w+) ", served, re.MULTILINE))
    named = {name.removesuffix("_bucket") for name in METRIC.findall(DASHBOARD.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert named - families == set()
