"""Rules of the source tree that no linter knows."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = [*sorted((ROOT / "smd_agent").rglob("*.py")), ROOT / "sitecustomize.py"]
WRITTEN = sorted(
    path
    for folder in ("smd_agent", "tests", "benchmarks", "docs", "examples", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".pyc", ".tfevents", ".so")
) + [ROOT / name for name in ("sitecustomize.py", "pyproject.toml", "Makefile", "README.md", "CHANGELOG.md")]
CEILING = 400


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_python(code: str) -> str:
    """Run code in a fresh interpreter with the agent's variables unset; return its stdout."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=inherited, timeout=120, check=True
    )
    return done.stdout


@pytest.mark.parametrize("path", [p for p in WRITTEN if p.suffix == ".py"], ids=relative)
def test_a_file_fits_on_a_few_screens(path):
    assert len(path.read_text().splitlines()) <= CEILING


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_a_module_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", WRITTEN, ids=relative)
def test_nothing_names_a_developers_machine(path):
    found = re.findall(r"(?<![\w.$])/(?:work|root|home|Users|usr/local|mnt|tmp/envs)/\S*", path.read_text())
    assert [text for text in found if text != "/" + "work/"] == []


def test_the_core_and_the_formats_open_no_file():
    opening = {"open", "read_text", "read_bytes", "write_text", "write_bytes", "mkdir", "unlink", "replace_file"}
    modules = {"io", "os", "shutil", "socket", "subprocess", "tempfile"}
    found = []
    for path in sorted([*(ROOT / "smd_agent/core").rglob("*.py"), *(ROOT / "smd_agent/formats").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                found += [(relative(path), name)] * (name in opening)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                imported = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                found += [(relative(path), name) for name in imported if name.split(".")[0] in modules]
    assert found == []


def test_the_core_names_no_framework():
    frameworks = re.compile("torch|tensorflow|keras|xgboost|mxnet|gluon", re.I)
    # A collection of the old library, whose name old configurations have.
    kept = re.compile("tensorflow_summaries", re.I)
    found = [
        (relative(path), line.strip())
        for path in sorted((ROOT / "smd_agent/core").rglob("*.[pc]*"))
        if path.suffix in (".py", ".c")
        for line in path.read_text().splitlines()
        if frameworks.search(kept.sub("", line))
    ]
    assert found == []


def test_importing_the_package_loads_nothing_heavy():
    heavy = ["numpy", "wrapt", "google.protobuf", "crc32c", "torch", "logging", "json", "threading"]
    code = "import sys; before = set(sys.modules); import smd_agent; print(*(set(sys.modules) - before))"
    assert set(run_python(code).split()) & set(heavy) == set()


def test_reading_a_run_needs_no_framework():
    code = "import sys; from smd_agent import create_trial; print('torch' in sys.modules, 'wrapt' in sys.modules)"
    assert run_python(code).strip() == "False False"


def test_every_exported_name_exists():
    code = "import json, smd_agent; print(json.dumps([n for n in smd_agent.__all__ if not hasattr(smd_agent, n)]))"
    assert json.loads(run_python(code)) == []


def test_the_version_is_the_packaged_one():
    packaged = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert packaged
    assert run_python("import smd_agent; print(smd_agent.__version__)").strip() == packaged[1]


def test_the_readme_names_every_environment_variable():
    from smd_agent.config.env import VARIABLES

    readme = (ROOT / "README.md").read_text()
    assert [variable.name for variable in VARIABLES if f"`{variable.name}`" not in readme] == []


def test_the_readme_names_every_command():
    from smd_agent.cli import COMMANDS

    readme = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"smd_agent {name}" not in readme and f"`{name}`" not in readme] == []


def configuration_keys() -> set[str]:
    """Return the keys that the loader takes out of a hook file, as its source has them."""
    from smd_agent.config import load

    keys = {*load.IGNORED_KEYS, *load.STEP_FIELDS}
    for node in ast.walk(ast.parse(Path(load.__file__).read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("take", "section"):
            keys |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}
    return keys


def test_the_readme_names_every_configuration_key():
    readme = (ROOT / "README.md").read_text()
    keys = configuration_keys()
    assert {"LocalPath", "HookParameters", "CollectionConfigurations", "save_interval", "reductions"} <= keys
    assert sorted(key for key in keys if f"`{key}`" not in readme) == []


def test_the_readme_names_every_make_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^echo 'make (\w+)", makefile.replace("\t", ""), re.M)
    readme = (ROOT / "README.md").read_text()
    assert {"demo", "test", "lint", "bench", "check"} <= set(targets)
    assert [name for name in targets if name not in ("help", "setup", "clean") and f"make {name}" not in readme] == []
