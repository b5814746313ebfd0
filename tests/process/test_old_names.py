"""``import smdebug`` where that library is not installed, by the agent and by the distribution of that name."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

DISTRIBUTION = Path(__file__).parents[2] / "distributions" / "smdebug"
STANDS_IN = "smd_agent: smdebug is not installed, smd_agent stands in for it and has no "
NAMES = """
import smdebug
from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.core.modes import ModeKeys
from smdebug.trials import create_trial
from smdebug.exceptions import TensorUnavailable
import smd_agent
assert modes is ModeKeys is smd_agent.modes and SaveConfig is smd_agent.SaveConfig
assert create_trial is smd_agent.create_trial
assert tuple(map(int, smdebug.__version__.split("."))) >= (1, 0)
print("all there")
"""


@pytest.fixture
def library(tmp_path):
    """A folder with a library called smdebug, as small as can be."""
    folder = tmp_path / "library"
    (folder / "smdebug").mkdir(parents=True)
    (folder / "smdebug" / "__init__.py").write_text("real = True\n")
    return folder


@pytest.mark.parametrize("use", ["1", "0"])
def test_names_are_ours_whether_the_agent_is_on_or_off(use, installed, hook, script, tmp_path):
    run = installed.run(str(script(NAMES)), cwd=tmp_path, SMD_AGENT_HOOK=hook, USE_SMDEBUG=use)
    assert (run.stdout, run.stderr) == ("all there\n", "")


def test_the_switch_alone_is_enough_and_nothing_at_all_is_not(installed, volume, script, tmp_path):
    path = str(script(NAMES))
    assert installed.run(path, cwd=tmp_path, USE_SMDEBUG="no").stdout == "all there\n"
    assert installed.run(path, cwd=tmp_path, USE_SMDEBUG="no", PYTHONPATH=str(volume)).stdout == "all there\n"
    run = installed.run(path, cwd=tmp_path)
    assert run.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'smdebug'"


def test_looking_for_it_loads_nothing(installed, hook, script, tmp_path):
    text = """
import pickle, sys
from importlib.util import find_spec
before = {*sys.modules}
spec = find_spec("smdebug")
print(spec.name, spec.origin.endswith("__init__.py"), sorted(name for name in {*sys.modules} - before if "smd" in name))
import smdebug
print(sorted(name for name in {*sys.modules} - before if name.startswith("smd")))
print(find_spec("smdebug.nothing"), find_spec("smdebug.core").name)
print(pickle.loads(pickle.dumps(smdebug.modes.EVAL)) is smdebug.modes.EVAL)
"""
    lines = installed.run(str(script(text)), cwd=tmp_path, SMD_AGENT_HOOK=hook).stdout.splitlines()
    ours = ["smd_agent.alias", "smd_agent.alias.table"]
    assert lines == [f"smdebug True {ours}", str([*ours, "smdebug"]), "None smdebug.core", "True"]


def test_the_library_itself_comes_first_wherever_it_is_found(installed, library, hook, script, tmp_path):
    show = script("import smdebug; print(smdebug.real)\nimport smdebug.core")
    run = installed.run(str(show), cwd=tmp_path, SMD_AGENT_HOOK=hook, PYTHONPATH=str(library))
    assert run.stdout == "True\n"
    assert run.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'smdebug.core'"
    by_late_finder = f"""
import sys
from importlib.machinery import PathFinder
class Late:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{str(library)!r}]) if name == "smdebug" else None
sys.meta_path.append(Late)
import smdebug
print(smdebug.real)
"""
    assert installed.run(str(script(by_late_finder)), cwd=tmp_path, SMD_AGENT_HOOK=hook).stdout == "True\n"


def test_a_mere_folder_of_its_name_is_no_library_and_what_is_in_it_is_found(installed, hook, script, tmp_path):
    for folder in ("core", "runs"):
        (tmp_path / "smdebug" / folder).mkdir(parents=True)
    (tmp_path / "smdebug" / "tool.py").write_text("value = 3\n")
    text = NAMES + "import smdebug.tool\nprint(smdebug.tool.value)\n"
    run = installed.run(str(script(text)), cwd=tmp_path, SMD_AGENT_HOOK=hook)
    assert (run.stdout, run.stderr) == ("all there\n3\n", "")


def test_what_is_not_there_is_pythons_own_error_and_one_line(installed, hook, script, tmp_path):
    text = """
for _ in range(2):
    for line in ("import smdebug.profiler.python_profiler", "from smdebug.core.utils import FRAMEWORK"):
        try:
            exec(line)
        except ImportError as error:
            print(type(error).__name__, str(error).partition(" (")[0])
import smdebug
print(hasattr(smdebug, "__wrapped__"), "modes" in dir(smdebug))
"""
    run = installed.run(str(script(text)), cwd=tmp_path, SMD_AGENT_HOOK=hook)
    errors = [
        "ModuleNotFoundError No module named 'smdebug.profiler.python_profiler'",
        "ImportError cannot import name 'FRAMEWORK' from 'smdebug.core.utils'",
    ]
    assert run.stdout.splitlines() == [*errors, *errors, "False True"]
    assert run.stderr.splitlines() == [
        f"{STANDS_IN}module smdebug.profiler.python_profiler",
        f"{STANDS_IN}FRAMEWORK in smdebug.core.utils",
    ]


def test_a_framework_that_is_missing_is_missed_by_its_own_name(installed, hook, script, tmp_path):
    text = "import sys\nsys.modules['torch'] = None\nimport smdebug.pytorch"
    run = installed.run(str(script(text)), cwd=tmp_path, SMD_AGENT_HOOK=hook)
    assert run.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of torch halted")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The distribution, built."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=DISTRIBUTION, capture_output=True, check=True, timeout=120)
    (found,) = folder.glob("*.whl")
    return found


def pip(interpreter, *words, cwd):
    run = interpreter.run("-m", "pip", "install", "--no-deps", "--no-index", *map(str, words), cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_distribution_gives_the_names_without_any_variable(wheel, bare, installed, hook, library, script, tmp_path):
    folder = tmp_path / "with_names"
    pip(bare, "--target", folder, wheel, cwd=tmp_path)
    path = str(script(NAMES))
    run = installed.run(path, cwd=tmp_path, PYTHONPATH=str(folder))
    assert (run.stdout, run.stderr) == ("all there\n", "")
    run = installed.run(path, cwd=tmp_path, PYTHONPATH=str(folder), SMD_AGENT_HOOK=hook)
    assert (run.stdout, run.stderr) == ("all there\n", "")
    run = installed.run(str(script("import smdebug.nothing")), cwd=tmp_path, PYTHONPATH=str(folder))
    assert run.stderr.splitlines()[0] == f"{STANDS_IN}module smdebug.nothing"
    text = "import smdebug\nprint(smdebug.real)"
    run = installed.run(str(script(text)), cwd=tmp_path, PYTHONPATH=f"{library}:{folder}")
    assert run.stdout == "True\n"


def test_pip_keeps_the_library_or_the_distribution_and_never_both(wheel, bare, library, tmp_path):
    (library / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "smdebug"\nversion = "1.0.34"\n[tool.hatch.build.targets.wheel]\npackages = ["smdebug"]\n'
    )
    show = "from importlib.metadata import version; import smdebug; print(version('smdebug'), hasattr(smdebug, 'real'))"
    pip(bare, "--no-build-isolation", library, cwd=tmp_path)
    assert bare.run("-c", show, cwd=tmp_path).stdout == "1.0.34 True\n"
    assert "Uninstalling smdebug-1.0.34" in pip(bare, wheel, cwd=tmp_path)
    # What asks for the old library's last release is content.
    assert "already satisfied" in pip(bare, "smdebug==1.0.34", cwd=tmp_path)
    run = bare.run("-c", "from importlib.metadata import version; print(version('smdebug'))", cwd=tmp_path)
    assert run.stdout == "1.0.34+smd.agent.1\n"
    assert bare.run("-m", "pip", "uninstall", "-y", "smdebug", cwd=tmp_path).returncode == 0
    assert not (bare.site_packages / "smdebug").exists()
