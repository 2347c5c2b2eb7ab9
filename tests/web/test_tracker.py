"""The tracker for pages, `clients/js`: node's tests on a real server, its types, its package, and how it is served."""

from __future__ import annotations

import json
import re
import shutil
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

from tenure.version import __version__
from tests.cli.test_cli import tenure
from tests.npm import ROOT, TRACKER, TYPES, node, packages, project, run
from tests.web.serving import Serving

pytestmark = pytest.mark.slow

TYPESCRIPT = Path(__file__).parent / "typescript"


@pytest.mark.timeout(280)
def test_the_tracker_follows_jobs_of_a_real_server(dsn):
    """34 tests: start, progress, errors, cancel, tokens, and lost, silent, refused and killed connections."""
    flags = ["--experimental-websocket", "--no-warnings", "--test", "--test-reporter=spec"]
    env = {"TENURE_TEST_PYTHON": sys.executable, "TENURE_TEST_DSN": dsn}
    shown = run([node(), *flags, "test/tracker.test.js"], TRACKER, timeout=270, **env)
    assert re.search(r"fail 0\b", shown), shown
    assert int(re.search(r"pass (\d+)", shown)[1]) >= 30, shown


def test_the_types_and_the_generated_types_are_right(tmp_path):
    """Of all that the tracker exports, and of a module of `tenure typegen`."""
    folder = project(tmp_path / "page", *TYPES)
    shutil.copytree(TYPESCRIPT, folder, dirs_exist_ok=True)
    made = tenure("typegen", "--app", "kinds:app", "--output", "jobs.ts", cwd=folder)
    assert made.returncode == 0, made.stderr
    run([node(), "node_modules/typescript/bin/tsc"], folder)


def test_the_types_of_a_tracker_that_the_server_serves_are_found_as_the_docs_show(tmp_path):
    page = (ROOT / "docs" / "how-to" / "track-in-a-page.md").read_text()
    paths = json.loads(re.search(r"""`"paths": ({.*?})`""", page)[1])
    [module] = paths
    assert f"tenure typegen --import {module}\n" in page
    folder = project(tmp_path / "page", *TYPES)
    shutil.copy(TYPESCRIPT / "kinds.py", folder)
    made = tenure("typegen", "--app", "kinds:app", "--import", module, "--output", "jobs.ts", cwd=folder)
    assert made.returncode == 0, made.stderr
    config = json.loads((TYPESCRIPT / "tsconfig.json").read_text())
    config["compilerOptions"]["paths"] = paths
    (folder / "tsconfig.json").write_text(json.dumps({**config, "files": ["jobs.ts"]}))
    run([node(), "node_modules/typescript/bin/tsc"], folder)


def test_what_is_exported_has_a_type_and_nothing_else_has(tmp_path):
    script = 'import("./tenure.js").then((module) => console.log(JSON.stringify(Object.keys(module).sort())))'
    exported = json.loads(run([node(), "-e", script], TRACKER))
    declared = re.findall(r"^export (?:function|class|const) (\w+)", (TRACKER / "tenure.d.ts").read_text(), re.MULTILINE)
    assert exported == sorted(declared)
    timing = re.search(r"^const TIMING = {(.*?)^}", (TRACKER / "tenure.js").read_text(), re.MULTILINE | re.DOTALL)[1]
    typed = re.search(r"^export interface Timing {(.*?)^}", (TRACKER / "tenure.d.ts").read_text(), re.MULTILINE | re.DOTALL)[1]
    assert re.findall(r"^  (\w+):", timing, re.MULTILINE) == re.findall(r"^  (\w+):", typed, re.MULTILINE)


def test_the_package_has_no_dependencies_and_contains_what_it_needs():
    package = json.loads((TRACKER / "package.json").read_text())
    assert not {"dependencies", "devDependencies", "bundledDependencies"} & set(package)
    assert __version__.startswith(package["version"])
    [packed] = json.loads(run(["npm", "pack", "--dry-run", "--json", "--loglevel=error"], TRACKER))
    assert {file["path"] for file in packed["files"]} == {"README.md", "package.json", *package["files"]}
    exported = set(re.findall(r'"\./([\w.]+\.\w+)"', json.dumps(package["exports"])))
    assert exported == {"package.json", *package["files"]}
    assert "import " not in re.sub(r"/\*\*.*?\*/", "", (TRACKER / "tenure.js").read_text(), flags=re.DOTALL)


def test_the_wheel_contains_the_tracker_and_the_dashboard(tmp_path):
    builder = import_module("hatchling.builders.wheel").WheelBuilder(str(ROOT))
    [built] = builder.build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(built) as wheel:
        assert wheel.read("tenure/web/static/tenure.js") == (TRACKER / "tenure.js").read_bytes()
        static = ROOT / "src" / "tenure" / "web" / "static"
        files = {path.relative_to(static).as_posix() for path in static.rglob("*") if path.is_file()}
        assert {f"tenure/web/static/{name}" for name in files} <= set(wheel.namelist())


async def test_the_tracker_is_served_without_a_token_and_cached_by_its_content(jobs, serving: Serving):
    server = await serving.serve(allowed_origins=["https://shop.example"])
    await serving.token()
    web = await server.client()
    address = f"{server.url}/static/tenure.js"
    served = await web.get(address, headers={"origin": "https://shop.example"})
    assert (served.status_code, served.content) == (200, (TRACKER / "tenure.js").read_bytes())
    assert served.headers["content-type"] == "text/javascript; charset=utf-8"
    assert served.headers["access-control-allow-origin"] == "https://shop.example"
    assert (served.headers["cache-control"], served.headers["x-content-type-options"]) == ("no-cache", "nosniff")
    again = await web.get(address, headers={"if-none-match": served.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "access-control-allow-origin" not in (await web.get(address, headers={"origin": "https://evil.example"})).headers
    assert (await web.post(address)).status_code == 405
    assert (await web.get(f"{server.url}/static/../web_app.py")).status_code == 404


def test_packages_are_installed_outside_of_the_project():
    assert ROOT not in packages(*TYPES).parents
