"""What stands in deploy/ as far as it can be checked without an engine: see deploy/README.md for what this leaves out."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tenure.cli.main import cli
from tenure.manager.process import AFTER_GRACE
from tenure.settings import Settings, WorkerSettings
from tests.docs.pages import blocks_of
from tests.docs.test_blocks import understand

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
LONGEST_STOP = WorkerSettings().grace_seconds + AFTER_GRACE


def documents() -> list[dict]:
    return [one for file in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in yaml.safe_load_all(file.read_text())]


def of_kind(kind: str) -> dict:
    [found] = [one for one in documents() if one["kind"] == kind]
    return found


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
    found = [json.loads(given["CMD"]), json.loads(given["HEALTHCHECK"].partition("CMD ")[2])[1:]]
    found.append(compose()["services"]["workers"]["command"])
    found += [shlex.split(unit(file)["ExecStart"])[1:] for file in UNITS]
    for pod in (of_kind("Job"), of_kind("Deployment")):
        [container] = pod["spec"]["template"]["spec"]["containers"]
        found.append(container["args"])
        found += [probe["exec"]["command"][1:] for name, probe in container.items() if name.endswith("Probe")]
    return found


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


def test_pods_are_probed_by_the_file_that_the_worker_keeps_on_a_volume_that_is_mounted():
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    file = container["args"][container["args"].index("--health-file") + 1]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert file in container[probe]["exec"]["command"]
        assert container[probe]["exec"]["command"][0] == "tenure"
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert any(file.startswith(path) for path in mounts.values())
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}


def test_pods_have_longer_to_stop_than_running_jobs_have():
    assert of_kind("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > LONGEST_STOP
    assert int(compose()["services"]["workers"]["stop_grace_period"].removesuffix("s")) > LONGEST_STOP
    for file in UNITS:
        assert float(unit(file)["TimeoutStopSec"]) > LONGEST_STOP


def test_pods_run_without_rights():
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert dict(instructions())["USER"] == str(pod["securityContext"]["runAsUser"])


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
    sql("""select tenure.enqueue('[{"kind": "hello"}, {"kind": "hello"}]')""")
    assert sql(trigger["metadata"]["query"].replace("%", "%%")) == [(2,)]


def test_the_services_of_compose_wait_for_what_is_there():
    given = compose()
    for service in given["services"].values():
        assert "image" in service or (ROOT / "deploy" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in given["services"][needed]
        for mount in service.get("volumes", []):
            assert mount.partition(":")[0] in given["volumes"]


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
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=DEPLOY / "app", capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "['hello', 'resize']\n"


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.name)
def test_the_units_say_what_the_supervisor_relies_on(file):
    service = unit(file)
    told = {name: service[name] for name in ("Type", "NotifyAccess", "KillMode", "ExecReload")}
    assert told == {"Type": "notify", "NotifyAccess": "main", "KillMode": "mixed", "ExecReload": "/bin/kill -HUP $MAINPID"}
    assert float(service["WatchdogSec"]) > 0


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


def test_what_the_page_shows_of_the_unit_stands_in_it():
    page = (ROOT / "docs" / "operations" / "deploy.md").read_text()
    shown = re.search(r"^```\n(\[Service\]\n.*?)^```$", page, re.MULTILINE | re.DOTALL)[1].splitlines()
    assert set(shown) <= set((DEPLOY / "systemd" / "tenure.service").read_text().splitlines())


def test_the_queries_of_the_page_are_answered(sql):
    for block in blocks_of("docs/operations/deploy.md", "sql"):
        for statement in block.lines:
            assert sql(statement) == [(0,)]
