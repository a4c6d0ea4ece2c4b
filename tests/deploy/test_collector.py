"""The collector's configuration: generated from the adapter's own keys, its processors in place and in order, its pattern exact."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from dragoman.telemetry import CONTENT_KEYS, names

DEPLOY = Path(__file__).parents[2] / "deploy"
FILTERS = ["filter/langfuse_disabled", "filter/langfuse_genai_only", "transform/langfuse_content"]


def script(path: str) -> ModuleType:
    """A script of the deploy folder, as a module."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), DEPLOY / f"{path}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((DEPLOY / "otelcol" / "config.yaml").read_text(encoding="utf-8"))
    return parsed


def pipelines(config: dict[str, Any]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = config["service"]["pipelines"]
    return found


def statements(config: dict[str, Any]) -> list[re.Match[str]]:
    """The strip statements: which attributes, which pattern, where."""
    parsed = [
        re.fullmatch(r'delete_matching_keys\((?P<path>[a-z.]+), "(?P<pattern>[^"]+)"\) where (?P<where>.+)', statement)
        for statement in config["processors"]["transform/langfuse_content"]["trace_statements"]
    ]
    assert all(parsed)
    return [found for found in parsed if found is not None]


def test_the_file_is_what_the_generator_writes() -> None:
    assert (DEPLOY / "otelcol" / "config.yaml").read_text(encoding="utf-8") == script("otelcol/generate").collector_config()


def test_there_are_these_pipelines(config: dict[str, Any]) -> None:
    assert {name: pipe["exporters"] for name, pipe in pipelines(config).items()} == {
        "traces/lgtm": ["otlp_http/tempo"],
        "traces/grafana_cloud": ["otlp_http/grafana_cloud"],
        "traces/langfuse": ["otlp_http/langfuse"],
        "metrics": ["otlp_http/metrics"],
    }


def test_the_langfuse_branch_filters_and_strips_in_order_and_before_it_batches(config: dict[str, Any]) -> None:
    assert pipelines(config)["traces/langfuse"]["processors"] == ["memory_limiter", *FILTERS, "batch"]


@pytest.mark.parametrize("name", ["traces/lgtm", "traces/grafana_cloud", "metrics"])
def test_no_other_branch_filters_or_strips(config: dict[str, Any], name: str) -> None:
    assert not set(FILTERS) & set(pipelines(config)[name]["processors"])


def test_everything_that_is_defined_is_used_and_the_other_way_round(config: dict[str, Any]) -> None:
    """The collector's own validation does not notice a processor that no pipeline uses."""
    for kind in ("receivers", "processors", "exporters"):
        assert {name for pipe in pipelines(config).values() for name in pipe[kind]} == set(config[kind])


@pytest.mark.parametrize("name", FILTERS)
def test_errors_stop_the_batch(config: dict[str, Any], name: str) -> None:
    assert config["processors"][name]["error_mode"] == "propagate"


def test_the_filters_ask_for_these_attributes(config: dict[str, Any]) -> None:
    disabled, genai_only = (config["processors"][name]["trace_conditions"] for name in FILTERS[:2])
    assert disabled == [f'span.attributes["{names.TENANT_LANGFUSE}"] == false']
    assert genai_only == [f'span.attributes["{names.OPERATION}"] == nil']


def test_content_is_stripped_unless_the_tenant_said_true(config: dict[str, Any]) -> None:
    assert {(found["path"], found["where"]) for found in statements(config)} == {
        ("span.attributes", f'span.attributes["{names.TENANT_CONTENT}"] != true'),
        ("spanevent.attributes", f'span.attributes["{names.TENANT_CONTENT}"] != true'),
    }


def every_key() -> set[str]:
    """Every attribute that the adapter can write: all the strings of its one module of names."""
    return {value for value in vars(names).values() if isinstance(value, str) and re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", value)}


def test_the_pattern_matches_exactly_the_content_keys(config: dict[str, Any]) -> None:
    [pattern] = [found["pattern"] for found in statements(config) if found["path"] == "span.attributes"]
    assert {key for key in every_key() if re.search(pattern, key)} == set(CONTENT_KEYS)
    assert not re.search(pattern, "gen_aiXinputXmessages")


def test_the_pattern_of_events_matches_exactly_what_may_quote(config: dict[str, Any]) -> None:
    [pattern] = [found["pattern"] for found in statements(config) if found["path"] == "spanevent.attributes"]
    assert {key for key in every_key() if re.search(pattern, key)} == {"exception.message", "exception.stacktrace"}


def test_what_the_filters_ask_for_is_never_stripped(config: dict[str, Any]) -> None:
    asked = {names.OPERATION, names.TENANT_ID, names.TENANT_CONTENT, names.TENANT_LANGFUSE}
    assert not [key for key in asked for found in statements(config) if re.search(found["pattern"], key)]


def test_langfuse_is_spoken_to_as_it_wants(config: dict[str, Any]) -> None:
    exporter = config["exporters"]["otlp_http/langfuse"]
    assert exporter["endpoint"].endswith("/api/public/otel")
    assert exporter["headers"]["x-langfuse-ingestion-version"] == "4"
    assert exporter["headers"]["authorization"].startswith("Basic ${env:")


def test_no_secret_stands_in_the_file() -> None:
    text = (DEPLOY / "otelcol" / "config.yaml").read_text(encoding="utf-8")
    assert not re.search(r"authorization: \"Basic (?!\$\{env:)", text)


def test_the_overlay_replaces_only_the_grafana_cloud_branch(config: dict[str, Any]) -> None:
    overlay = yaml.safe_load((DEPLOY / "otelcol" / "without-grafana-cloud.yaml").read_text(encoding="utf-8"))
    assert overlay["service"]["pipelines"] == {"traces/grafana_cloud": {"exporters": ["nop"]}}
    assert set(overlay["exporters"]) == {"nop", "otlp_http/grafana_cloud"}
    assert set(overlay) == {"exporters", "service"}


# ---- the compose file


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return parsed


def test_every_image_tag_is_a_variable_without_a_default(compose: dict[str, Any]) -> None:
    images = [service["image"] for service in compose["services"].values()]
    assert [image for image in images if not re.fullmatch(r"[a-z0-9/-]+:\$\{[A-Z]+_TAG:\?[^}]+\}", image)] == []


def test_every_variable_of_the_compose_file_is_in_the_example_and_empty() -> None:
    used = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    lines = (DEPLOY / ".env.example").read_text(encoding="utf-8").splitlines()
    assert {line for line in lines if line and not line.startswith("#")} == {f"{name}=" for name in used}


def test_no_port_is_open_to_others(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_every_file_that_is_mounted_is_there(compose: dict[str, Any]) -> None:
    mounted = [volume.split(":")[0] for service in compose["services"].values() for volume in service.get("volumes", ())]
    assert [path for path in mounted if path.startswith("./") and not (DEPLOY / path).exists()] == []
    assert {path for path in mounted if not path.startswith("./")} == set(compose["volumes"])
