"""The Helm chart, rendered as Helm does, and checked like the other manifests. No cluster is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tenure.cli.main import cli
from tenure.version import __version__
from tests.deploy.charts import CHART, ChartRefused, lint, render
from tests.deploy.test_deploy import LONGEST_STOP, ROOT, instructions, of_kind, probes
from tests.docs.test_blocks import understand

Documents = list[dict[str, Any]]

EVERYTHING = {
    "database": {"owner": {"dsn": "postgresql://owner@db/shop"}, "worker": {"dsn": "postgresql://worker@db/shop"}},
    "env": [{"name": "TENURE_LOG_FORMAT", "value": "json"}],
    "envFrom": [{"configMapRef": {"name": "shop"}}],
    "imagePullSecrets": [{"name": "registry"}],
    "pools": {
        "workers": {},
        "media": {
            "queues": ["media", "it's"],
            "capabilities": ["gpu"],
            "concurrency": 2,
            "metricsPort": 0,
            "nodeSelector": {"gpu": "yes"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "autoscaling": {"enabled": True},
        },
    },
    "web": {
        "replicas": 2,
        "minAvailable": 1,
        "allowedHosts": ["intern.example.com"],
        "trustedProxies": ["10.0.0.1"],
        "readOnly": True,
        "ingress": {"enabled": True, "className": "nginx", "host": "jobs.example.com", "tlsSecret": "jobs-tls"},
    },
}


@pytest.fixture(scope="session")
def plain() -> Documents:
    return render({})


@pytest.fixture(scope="session")
def full() -> Documents:
    return render(EVERYTHING)


@pytest.fixture(params=["plain", "full"])
def documents(request: pytest.FixtureRequest) -> Documents:
    return request.getfixturevalue(request.param)


def kinds(documents: Documents, kind: str) -> Documents:
    return [one for one in documents if one["kind"] == kind]


def named(documents: Documents, kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in kinds(documents, kind) if one["metadata"]["name"] == name]
    return found


def pods(documents: Documents) -> Documents:
    """The pods of Jobs, Deployments and of `helm test`."""
    return [one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"] for one in documents if has_pod(one)]


def has_pod(document: dict[str, Any]) -> bool:
    return document["kind"] in ("Job", "Deployment", "Pod")


def container(document: dict[str, Any]) -> dict[str, Any]:
    [found] = (document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"])["containers"]
    return found


def secret_of(document: dict[str, Any]) -> str:
    [dsn] = [given for given in container(document)["env"] if given["name"] == "TENURE_DSN"]
    return dsn["valueFrom"]["secretKeyRef"]["name"]


def test_helm_finds_no_fault_with_it():
    lint()


def test_names_are_valid_and_each_is_there_once(documents):
    names = [(one["kind"], one["metadata"]["name"]) for one in documents]
    assert len(set(names)) == len(names)
    assert all(one["apiVersion"] and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", one["metadata"]["name"]) for one in documents)


def test_every_command_is_one_of_ours_with_options_that_exist(documents):
    ran = [container(one)["args"] for one in documents if has_pod(one)]
    assert {words[0] for words in ran} == {"migrate", "worker", "web", "doctor"}
    for words in ran:
        understand(cli, words)


def test_deployments_budgets_and_services_select_the_pods_of_their_own_part(documents):
    labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in kinds(documents, "Deployment")}
    for one in kinds(documents, "Deployment") + kinds(documents, "PodDisruptionBudget"):
        selected = one["spec"]["selector"]["matchLabels"].items()
        assert [name for name, of_pod in labels.items() if selected <= of_pod.items()] == [one["metadata"]["name"]]
    for service in kinds(documents, "Service"):
        selected = service["spec"]["selector"].items()
        assert [name for name, of_pod in labels.items() if selected <= of_pod.items()] == [service["metadata"]["name"]]


def test_pods_run_without_rights(documents):
    for pod in pods(documents):
        [only] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert str(pod["securityContext"]["runAsUser"]) == dict(instructions())["USER"]
        assert pod["automountServiceAccountToken"] is False
        assert only["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_only_migrations_have_the_account_of_the_owner(plain, full):
    for documents, owner, worker in (
        (plain, "tenure-owner", "tenure-worker"),
        (full, "shop-tenure-owner", "shop-tenure-worker"),
    ):
        for one in filter(has_pod, documents):
            assert secret_of(one) == (owner if one["kind"] == "Job" else worker)
    assert kinds(plain, "Secret") == []
    assert {one["metadata"]["name"] for one in kinds(full, "Secret")} == {"shop-tenure-owner", "shop-tenure-worker"}


def test_migrations_are_hooks_around_the_rollout_and_their_secret_is_there_before(full):
    hooks = {one["metadata"]["name"]: one["metadata"]["annotations"]["helm.sh/hook"] for one in kinds(full, "Job")}
    assert hooks == {
        "shop-tenure-migrate-pre": "pre-install,pre-upgrade",
        "shop-tenure-migrate-post": "post-install,post-upgrade",
    }
    secret = named(full, "Secret", "shop-tenure-owner")["metadata"]["annotations"]
    assert secret["helm.sh/hook"] == hooks["shop-tenure-migrate-pre"]
    job = named(full, "Job", "shop-tenure-migrate-pre")["metadata"]["annotations"]
    assert int(secret["helm.sh/hook-weight"]) < int(job["helm.sh/hook-weight"])
    # A service account of the chart does not exist yet when the first hook runs.
    assert "serviceAccountName" not in named(full, "Job", "shop-tenure-migrate-pre")["spec"]["template"]["spec"]


def test_migrations_can_be_left_to_another_tool():
    assert kinds(render({"migrate": {"pre": False, "post": False}}), "Job") == []


def test_workers_are_probed_as_those_of_the_manifest(documents):
    of_manifest = container(of_kind("Deployment"))
    for one in kinds(documents, "Deployment"):
        found = container(one)
        if found["args"][0] == "worker":
            for name in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert found[name] == of_manifest[name]
                assert found[name]["exec"]["command"] == probes()[name]
            assert {mount["mountPath"] for mount in found["volumeMounts"]} == {"/run/tenure", "/tmp"}
            assert one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > LONGEST_STOP


def test_the_web_server_is_probed_by_routes_that_need_no_token(documents):
    web = container(named(documents, "Deployment", "shop-tenure-web"))
    paths = {name: web[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    # Without PostgreSQL it is not ready, but need not be restarted.
    assert paths == {"startupProbe": "/_api/healthz", "livenessProbe": "/_api/healthz", "readinessProbe": "/_api/readyz"}
    assert web["ports"][0]["containerPort"] == int(web["args"][web["args"].index("--port") + 1])


def test_the_web_server_accepts_the_names_by_which_it_is_reached(full):
    words = container(named(full, "Deployment", "shop-tenure-web"))["args"]
    hosts = [words[place + 1] for place, word in enumerate(words) if word == "--allowed-host"]
    assert hosts == [
        "shop-tenure-web",
        "shop-tenure-web.jobs",
        "shop-tenure-web.jobs.svc",
        "intern.example.com",
        "jobs.example.com",
    ]
    [ingress] = kinds(full, "Ingress")
    [rule] = ingress["spec"]["rules"]
    assert rule["host"] == "jobs.example.com"
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert named(full, "Service", backend["name"])["spec"]["ports"][0]["name"] == backend["port"]["name"]


def test_each_pool_has_its_own_queues_and_the_defaults_where_it_says_nothing(full):
    media, workers = (container(named(full, "Deployment", f"shop-tenure-{name}"))["args"] for name in ("media", "workers"))
    assert media[media.index("--queues") + 1] == "media,it's"
    assert media[media.index("--capabilities") + 1] == "gpu"
    assert media[media.index("--concurrency") + 1] == "2"
    assert "--metrics-port" not in media
    assert "--queues" not in workers
    assert workers[workers.index("--concurrency") + 1] == "10"
    assert workers[workers.index("--metrics-port") + 1] == "0.0.0.0:9100"
    assert named(full, "Deployment", "shop-tenure-media")["spec"]["template"]["spec"]["nodeSelector"] == {"gpu": "yes"}


def test_the_default_pool_can_be_removed():
    deployments = kinds(render({"pools": {"workers": None, "media": {}}, "web": {"enabled": False}}), "Deployment")
    assert [one["metadata"]["name"] for one in deployments] == ["shop-tenure-media"]


def test_keda_scales_a_pool_by_a_query_that_postgresql_answers(full, sql: Callable[..., list[tuple[Any, ...]]]):
    [scaled] = kinds(full, "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"]["name"] == "shop-tenure-media"
    assert "replicas" not in named(full, "Deployment", "shop-tenure-media")["spec"]
    assert named(full, "Deployment", "shop-tenure-workers")["spec"]["replicas"] == 2
    [trigger] = scaled["spec"]["triggers"]
    assert trigger["metadata"]["targetQueryValue"] == "4"  # two processes with two jobs each
    assert trigger["authenticationRef"]["name"] == kinds(full, "TriggerAuthentication")[0]["metadata"]["name"]
    sql("""select tenure.enqueue('[{"kind": "a", "queue": "media"}, {"kind": "a", "queue": "it''s"}, {"kind": "a"}]')""")
    assert sql(trigger["metadata"]["query"].replace("%", "%%")) == [(2,)]
    [everything] = kinds(render({"poolDefaults": {"autoscaling": {"enabled": True}}}), "ScaledObject")
    assert sql(everything["spec"]["triggers"][0]["metadata"]["query"]) == [(3,)]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"pools": {"web": {}}}, "pools"),
        ({"pools": {"workers": None}}, "pools"),
        ({"pools": {"media": {"queue": "media"}}}, "queue"),
        ({"app": "jobs"}, "app"),
        ({"database": {"worker": {"existingSecret": ""}}}, "existingSecret"),
    ],
)
def test_mistakes_in_the_values_are_refused(values, told):
    with pytest.raises(ChartRefused, match=told):
        render(values)


def test_the_defaults_follow_the_schema_and_the_chart_has_our_version():
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text()), schema)
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__.partition(".dev")[0]


def test_values_that_the_page_sets_exist():
    page = (ROOT / "docs" / "operations" / "deploy.md").read_text("utf-8")
    names = set(re.findall(r"--set ([\w.]+)=", page)) - {"pools.media.queues", "pools.media.concurrency"}
    values = yaml.safe_load((Path(CHART) / "values.yaml").read_text())
    for name in names:
        found = values
        for part in name.split("."):
            assert part in found, name
            found = found[part]
