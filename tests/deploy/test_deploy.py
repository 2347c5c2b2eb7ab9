"""The files of deploy/, as far as they can be checked without an engine: see deploy/README.md for what this leaves out."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from psycopg.conninfo import make_conninfo

from tenure.cli.main import cli
from tenure.manager.health import ready_file
from tenure.manager.process import AFTER_GRACE
from tenure.settings import Settings
from tenure.worker_settings import WorkerSettings
from tests.cli.started import started
from tests.cli.test_cli import tenure
from tests.docs.pages import blocks_of
from tests.docs.test_blocks import understand
from tests.processes import run_process
from tests.store.clean import bare_dsn
from tests.store.test_role_upgrades import server, shop

__all__ = ["bare_dsn", "server", "shop"]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
LONGEST_STOP = WorkerSettings().grace_seconds + AFTER_GRACE


def documents() -> list[dict]:
    return [one for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]


def all_of_kind(kind: str) -> list[dict]:
    return [one for one in documents() if one["kind"] == kind]


def of_kind(kind: str) -> dict:
    [found] = all_of_kind(kind)
    return found


def pods() -> list[dict]:
    """Of the jobs and the deployment."""
    return [one["spec"]["template"]["spec"] for one in documents() if one["kind"] in ("Job", "Deployment")]


def probes() -> dict[str, list[str]]:
    """The command of each, those of the image included."""
    [container] = of_kind("Deployment")["spec"]["template"]["spec"]["containers"]
    found = {name: probe["exec"]["command"] for name, probe in container.items() if name.endswith("Probe")}
    return {"HEALTHCHECK": json.loads(dict(instructions())["HEALTHCHECK"].partition("CMD ")[2]), **found}


def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile, with continued lines as one."""
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def unit(file: Path) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str
    parser.read_string(file.read_text())
    return parser["Service"]


def commands() -> list[list[str]]:
    """Every call of ours in these files, without the word `tenure`."""
    given = dict(instructions())
    found = [json.loads(given["CMD"])]
    found += [service["command"] for service in compose()["services"].values() if "command" in service]
    found += [shlex.split(unit(file)["ExecStart"])[1:] for file in UNITS]
    return found + [container["args"] for pod in pods() for container in pod["containers"]]


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_is_one_of_ours_with_options_that_exist(words):
    understand(cli, words)


@pytest.mark.parametrize("document", documents(), ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_every_document_of_kubernetes_has_what_each_needs(document):
    assert document["apiVersion"]
    assert re.fullmatch(r"[a-z0-9-]+", document["metadata"]["name"])
    assert document.get("spec") or document.get("stringData")


def test_the_deployment_selects_its_own_pods_and_so_does_the_budget():
    deployment, budget = of_kind("Deployment")["spec"], of_kind("PodDisruptionBudget")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert budget["selector"]["matchLabels"].items() <= labels.items()


def test_pods_are_probed_by_the_files_that_the_worker_keeps_on_a_volume_that_is_mounted():
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    file = container["args"][container["args"].index("--health-file") + 1]
    probed = {name: command[-1].split()[1] for name, command in probes().items()}
    alive = dict.fromkeys(("HEALTHCHECK", "startupProbe", "livenessProbe"), file)
    assert probed == {**alive, "readinessProbe": str(ready_file(Path(file)))}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert any(file.startswith(path) for path in mounts.values())
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("name", probes())
def test_a_probe_distinguishes_fresh_old_and_missing_files_without_starting_python(name, tmp_path):
    file = tmp_path / "health"
    command = [re.sub(r"/run/tenure/\S+", str(file), word) for word in probes()[name]]
    assert not any("python" in word or "tenure health" in word for word in probes()[name])

    def probe() -> int:
        return subprocess.run(command, capture_output=True, check=False, timeout=10).returncode

    assert probe() != 0
    file.touch()
    assert probe() == 0
    os.utime(file, (time.time() - 120, time.time() - 120))
    assert probe() != 0


def test_pods_have_longer_to_stop_than_running_jobs_have():
    assert of_kind("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > LONGEST_STOP
    assert int(compose()["services"]["workers"]["stop_grace_period"].removesuffix("s")) > LONGEST_STOP
    for file in UNITS:
        assert float(unit(file)["TimeoutStopSec"]) > LONGEST_STOP


def test_pods_run_without_rights():
    assert len(pods()) == 3
    for pod in pods():
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not container["securityContext"]["allowPrivilegeEscalation"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert dict(instructions())["USER"] == str(pod["securityContext"]["runAsUser"])


def test_workers_do_not_have_the_account_that_migrates():
    secrets = {}
    for one in (*all_of_kind("Job"), of_kind("Deployment")):
        [container] = one["spec"]["template"]["spec"]["containers"]
        [dsn] = [given for given in container["env"] if given["name"] == "TENURE_DSN"]
        secrets.setdefault(dsn["valueFrom"]["secretKeyRef"]["name"], []).append(one["kind"])
    assert secrets == {"tenure-owner": ["Job", "Job"], "tenure-worker": ["Deployment"]}
    services = compose()["services"]
    assert services["migrate"]["environment"]["TENURE_DSN"] != services["workers"]["environment"]["TENURE_DSN"]


def test_both_phases_of_a_migration_have_a_job():
    phases = [one["spec"]["template"]["spec"]["containers"][0]["args"][:3] for one in all_of_kind("Job")]
    assert sorted(phases) == [["migrate", "--phase", "post"], ["migrate", "--phase", "pre"]]


def test_keda_asks_for_every_queue_of_the_app():
    [trigger] = of_kind("ScaledObject")["spec"]["triggers"]
    script = "from jobs import app; print(*sorted({kind.queue for kind in app.kinds.values()}))"
    ran = run_process([sys.executable, "-c", script], cwd=DEPLOY / "app", check=True, timeout=60)
    assert re.findall(r"backlog\('(\w+)'", trigger["metadata"]["query"]) == ran.stdout.split()


@pytest.mark.slow
async def test_the_accounts_of_compose_can_migrate_and_run_workers(server, shop, tmp_path):
    """`shop` is the superuser that the image of PostgreSQL makes; here another one."""
    server.sql("drop role shop_worker")
    server.sql(compose()["configs"]["accounts"]["content"])
    owner, worker = shop, make_conninfo(shop, user="shop_worker")
    for _ in range(2):
        assert tenure(*compose()["services"]["migrate"]["command"], "--dsn", owner).returncode == 0
    with started(DEPLOY / "app", *compose()["services"]["workers"]["command"], TENURE_DSN=worker) as workers:
        assert workers.says("ready: ", within=60), workers.said
        enqueued = tenure("enqueue", "hello", "--app", "jobs:app", "--wait", "60s", cwd=DEPLOY / "app", TENURE_DSN=worker)
        assert enqueued.stdout.startswith('"hello world'), enqueued.stderr
        workers.signal(signal.SIGTERM)
        assert workers.ends(within=40) == 0


def test_keda_scales_the_deployment_by_a_query_that_postgresql_answers(sql):
    scaled = of_kind("ScaledObject")["spec"]
    assert scaled["scaleTargetRef"]["name"] == of_kind("Deployment")["metadata"]["name"]
    [trigger] = scaled["triggers"]
    assert trigger["type"] == "postgresql"
    assert trigger["authenticationRef"]["name"] == of_kind("TriggerAuthentication")["metadata"]["name"]
    [secret] = of_kind("TriggerAuthentication")["spec"]["secretTargetRef"]
    assert secret["name"] == of_kind("Secret")["metadata"]["name"]
    assert secret["key"] in of_kind("Secret")["stringData"]
    assert float(trigger["metadata"]["targetQueryValue"]) > 0
    sql("""select tenure.enqueue('[{"kind": "hello"}, {"kind": "hello"}, {"kind": "resize", "queue": "media"}]')""")
    assert sql(trigger["metadata"]["query"].replace("%", "%%")) == [(3,)]


def test_the_services_of_compose_wait_for_what_is_there():
    given = compose()
    for service in given["services"].values():
        assert "image" in service or (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in given["services"][needed]
        for mount in service.get("volumes", []):
            assert mount.partition(":")[0] in given["volumes"]
        for config in service.get("configs", []):
            assert config["source"] in given["configs"]


def test_the_image_is_built_of_files_that_exist_and_runs_without_rights():
    given = instructions()
    names = [name for name, _ in given]
    assert set(names) <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    for name, rest in given:
        if name == "COPY" and "--from=" not in rest:
            *sources, _ = [word for word in rest.split() if not word.startswith("--")]
            assert [source for source in sources if not (ROOT / source).exists()] == []
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert dict(given)["USER"] not in ("0", "root")
    settings = dict(word.split("=", 1) for word in dict(given)["ENV"].split())
    assert Settings.load(environ=settings, folder=DEPLOY).workers.health_file is not None


def test_the_small_app_can_be_loaded_and_its_settings_are_accepted():
    assert set(Settings.load(folder=DEPLOY / "app", environ={}).pools) == {"media"}
    script = "from jobs import app; print(sorted(app.kinds))"
    ran = run_process([sys.executable, "-c", script], cwd=DEPLOY / "app", check=True, timeout=60)
    assert ran.stdout == "['hello', 'resize']\n"


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_the_units_say_what_the_supervisor_relies_on(file):
    service = unit(file)
    told = {name: service[name] for name in ("Type", "NotifyAccess", "KillMode", "ExecReload")}
    assert told == {"Type": "notify", "NotifyAccess": "main", "KillMode": "mixed", "ExecReload": "/bin/kill -HUP $MAINPID"}
    assert float(service["WatchdogSec"]) > 0
    assert service["EnvironmentFile"].startswith("/"), "with a leading - the unit would start without its database"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_systemd_finds_no_fault_with_the_units(file, tmp_path):
    """With a program that is there in place of the one on the user's machine."""
    name = file.name.replace("@", "@media")
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={sys.executable}", file.read_text(), flags=re.MULTILINE)
    (tmp_path / name).write_text(text.replace("User=shop\n", ""))
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(tmp_path / name)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, [line for line in ran.stderr.splitlines() if name in line]) == (0, []), ran.stderr


def test_what_the_page_shows_of_the_unit_is_in_the_unit():
    page = (ROOT / "docs" / "operations" / "deploy.md").read_text()
    shown = re.search(r"^```\n(\[Service\]\n.*?)^```$", page, re.MULTILINE | re.DOTALL)[1].splitlines()
    assert set(shown) <= set((DEPLOY / "systemd" / "tenure.service").read_text().splitlines())


def test_the_queries_of_the_page_are_answered(sql):
    for block in blocks_of("docs/operations/deploy.md", "sql"):
        for statement in block.lines:
            assert sql(statement) == [(0,)]


# Prometheus and Grafana

METRIC = re.compile(r"\b(?:tenure_\w+|workers_total)\b")
SUFFIXES = ("_bucket", "_sum", "_count")


def exposed() -> set[str]:
    """The names of all metrics that the web server and the supervisors have."""
    sources = [ROOT / "src" / "tenure" / name for name in ("web/metrics.py", "observe/prometheus.py")]
    return {name for source in sources for name in re.findall(r'"((?:tenure_\w+|workers_total))"', source.read_text("utf-8"))}


def used_in(text: str) -> set[str]:
    names = {name for name in METRIC.findall(text) if name not in ("tenure_worker", "tenure_web")}
    return {next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end)), name) for name in names}


def test_alert_rules_use_metrics_that_exist():
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert used_in(rule["expr"]) <= exposed(), rule["alert"]
        assert rule["annotations"].keys() == {"summary", "remedy"}
        for command in re.findall(r"`(tenure [^`]+)`", rule["annotations"]["remedy"]):
            assert shlex.split(command)[1] in cli.list_commands(None)


def test_the_dashboard_uses_metrics_that_exist_and_shows_all_of_the_workers():
    text = (DEPLOY / "grafana" / "tenure.json").read_text()
    dashboard = json.loads(text)
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert len(expressions) >= len(panels) > 15
    used = set().union(*map(used_in, expressions))
    assert used <= exposed()
    assert {name for name in exposed() if name.startswith("tenure_worker_")} - used == {
        "tenure_worker_info",
        "tenure_worker_slots",
    }


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts.test.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ],
)
def test_promtool_accepts_rules_and_configuration(arguments):
    ran = run_process(["promtool", *arguments], cwd=DEPLOY / "prometheus", timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_the_expressions_of_the_dashboard_are_valid(tmp_path):
    dashboard = json.loads((DEPLOY / "grafana" / "tenure.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    plain = [text.replace("$__rate_interval", "5m").replace("$queue", ".*") for text in expressions]
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(plain)]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    ran = run_process(["promtool", "check", "rules", "rules.yml"], cwd=tmp_path, timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
