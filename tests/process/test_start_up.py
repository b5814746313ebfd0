"""When an interpreter is armed, what that costs it, and that nothing of ours can stop it from starting."""

import json
import os
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from smd_agent.config import env
from smd_agent.patches import FRAMEWORKS

ARMED = "import sys; print(any(type(finder).__name__ == '_FrameworkFinder' for finder in sys.meta_path))"
NAMES = ", ".join(sorted(FRAMEWORKS))
OFF = [word for word, on in env.BOOLEAN_WORDS.items() if not on]
ON = [word for word, on in env.BOOLEAN_WORDS.items() if on]


def spellings(words):
    return [*words, *(word.upper() for word in words), *(word.title() for word in words)]


def is_armed(result):
    assert result.returncode == 0, result.stderr
    return result.stdout.split()[-1] == "True"


@pytest.mark.parametrize("value", sorted(set(spellings(OFF))))
def test_kill_switch_wins_over_the_configuration(value, installed, hook, tmp_path):
    result = installed.run("-c", ARMED, cwd=tmp_path, SMD_AGENT_HOOK=hook, USE_SMDEBUG=value)
    assert not is_armed(result)
    assert result.stderr == ""


@pytest.mark.parametrize("value", ["", *sorted(set(spellings(ON)))])
def test_switch_spelled_on_leaves_the_agent_on(value, installed, hook, tmp_path):
    assert is_armed(installed.run("-c", ARMED, cwd=tmp_path, SMD_AGENT_HOOK=hook, USE_SMDEBUG=value))


def test_kill_switch_makes_the_launcher_run_the_script_plainly(installed, tmp_path):
    code = "import os, sys; print([name for name in os.environ if name.startswith('SMD_')]); " + ARMED
    result = installed.run("-m", "smd_agent", "--every", "9", "-c", code, cwd=tmp_path, USE_SMDEBUG="OFF")
    assert result.stdout.splitlines() == ["[]", "False"]
    assert result.stderr == ""
    assert not list(tmp_path.glob("smd_runs"))


def test_no_configuration_means_inert(installed, volume, tmp_path):
    for variables in (
        {},
        {"SMD_AGENT_HOOK": "", "SMDEBUG_CONFIG_FILE_PATH": ""},
        {"PYTHONPATH": str(volume)},
    ):
        result = installed.run("-c", ARMED + "; print('smd_agent' in sys.modules)", cwd=tmp_path, **variables)
        assert result.stdout.split() == ["False", "False"]


def test_config_file_variable_alone_arms(installed, tmp_path):
    config = tmp_path / "hook.json"
    config.write_text("{}")
    assert is_armed(installed.run("-c", ARMED, cwd=tmp_path, SMDEBUG_CONFIG_FILE_PATH=str(config)))


@pytest.mark.parametrize("option", ["-I", "-E", "-s"])
def test_site_hook_works_where_the_environment_is_ignored(option, installed, hook, tmp_path):
    assert is_armed(installed.run(option, "-c", ARMED, cwd=tmp_path, SMD_AGENT_HOOK=hook))


def test_armed_interpreter_imports_nothing_heavy(installed, hook, tmp_path):
    code = "import sys; before = sorted(sys.modules); import json; print(json.dumps(before))"
    plain, armed = (
        set(json.loads(installed.run("-c", code, cwd=tmp_path, **variables).stdout))
        for variables in ({}, {"SMD_AGENT_HOOK": hook})
    )
    assert {name for name in armed - plain if name.partition(".")[0] != "smd_agent"} <= {"__future__"}
    assert armed >= {"smd_agent.boot", "smd_agent.config.env"}
    assert len(armed - plain) <= 8


@pytest.mark.parametrize(
    "failure", ["raise SystemExit(5)", "raise ValueError('no')", "def start(: pass", "raise GeneratorExit"]
)
@pytest.mark.parametrize("place", ["inside start", "on import"])
def test_failure_of_our_boot_never_reaches_the_program(failure, place, bare, tmp_path, hook, volume):
    (volume / "smd_agent").unlink()
    package = volume / "smd_agent"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "boot.py").write_text(failure if place == "on import" else f"def start():\n    {failure}")
    site_hook = (Path(__file__).parents[2] / "smd_agent.pth").read_text()
    line = site_hook.replace("import os, sys;", f"import os, sys; sys.path.insert(0, {str(volume)!r});", 1)
    for variables in ({"PYTHONPATH": str(volume)}, {}):
        code = "print('ran')" if variables else f"exec({line!r}); print('ran')"
        result = bare.run("-c", code, cwd=tmp_path, SMD_AGENT_HOOK=hook, **variables)
        assert (result.returncode, result.stdout) == (0, "ran\n")
        (said,) = result.stderr.splitlines()
        assert said.startswith("smd_agent: start failed (")


def test_failure_inside_start_never_reaches_the_program(bare, tmp_path, hook, volume):
    text = """
from smd_agent import boot
from smd_agent.config import env
from smd_agent.patches import FRAMEWORKS
def broken(): raise SystemExit(9)
env.use_smdebug = broken
boot.start()
print('ran')
"""
    result = bare.run("-c", text, cwd=volume, SMD_AGENT_HOOK=hook)
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert result.stderr == "smd_agent: start failed (SystemExit: 9); nothing will be captured\n"


def test_missing_package_is_one_line(bare, tmp_path, hook, volume):
    (volume / "smd_agent").unlink()
    code = f"import sys; sys.path.insert(0, {str(volume)!r}); import sitecustomize; print('ran')"
    result = bare.run("-S", "-c", code, cwd=tmp_path, SMD_AGENT_HOOK=hook)
    assert (result.returncode, result.stdout) == (0, "ran\n")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("descriptor", [1, 2])
def test_closed_standard_streams_are_survived(descriptor, installed, hook, tmp_path):
    # The odd switch makes the boot say something while one of the streams is missing.
    words = [installed.path, "-c", "raise SystemExit(3)"]
    shell = f'exec "$@" {descriptor}>&-'
    broken = {**os.environ, "SMD_AGENT_HOOK": hook, "USE_SMDEBUG": "perhaps"}
    assert subprocess.run(["sh", "-c", shell, "sh", *words], env=broken, cwd=tmp_path).returncode == 3


def test_start_twice_installs_one_finder(installed, hook, tmp_path):
    code = "from smd_agent import boot; boot.start(); boot.start(); import sys; "
    code += "print(sum(type(finder).__name__ == '_FrameworkFinder' for finder in sys.meta_path))"
    assert installed.run("-c", code, cwd=tmp_path, SMD_AGENT_HOOK=hook).stdout == "1\n"


def test_site_hook_and_pythonpath_together_start_once(installed, volume, hook, tmp_path):
    count = "sum(type(finder).__name__ == '_FrameworkFinder' for finder in sys.meta_path)"
    code = f"import sys; print({count}, sys.path)"
    plain = installed.run("-c", code, cwd=tmp_path, SMD_AGENT_HOOK=hook)
    both = installed.run("-c", code, cwd=tmp_path, SMD_AGENT_HOOK=hook, PYTHONPATH=str(volume))
    assert both.stdout == plain.stdout
    assert both.stdout.startswith("1 ")


def test_installed_wheel_has_the_hooks_and_no_top_level_sitecustomize():
    try:
        files = metadata.files("smd-agent") or []
    except metadata.PackageNotFoundError:
        pytest.skip("the agent runs from the source tree, not from a wheel")
    names = {str(file) for file in files}
    if "smd_agent/boot.py" not in names:
        pytest.skip("the agent is installed as editable, which has no files of its own")
    assert names >= {"smd_agent.pth", "smd_agent.start", "smd_agent/_site/sitecustomize.py"}
    assert "sitecustomize.py" not in names


def test_start_file_names_the_function_the_site_hook_calls():
    root = Path(__file__).parents[2]
    module, _, function = (root / "smd_agent.start").read_text().strip().partition(":")
    assert f"from {module} import {function}" in (root / "smd_agent.pth").read_text()
    assert len((root / "smd_agent.pth").read_text().splitlines()) == 1


def test_launched_program_without_a_framework_is_told_once(installed, tmp_path):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'pass'])"
    result = installed.run("-m", "smd_agent", "-c", code, cwd=tmp_path)
    expected = f"smd_agent: nothing was captured: the program imported no supported framework ({NAMES})\n"
    assert result.stderr == expected


def test_environment_door_says_nothing_without_a_framework(installed, hook, tmp_path):
    result = installed.run("-c", "pass", cwd=tmp_path, SMD_AGENT_HOOK=hook)
    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.parametrize("by_file", [True, False])
def test_launched_program_whose_children_captured_is_not_told_that_nothing_was(by_file, installed, tmp_path):
    run = tmp_path / "run"
    config = tmp_path / "hook.json"
    config.write_text(f'{{"LocalPath": "{run}"}}')
    code = f"import os, pathlib; pathlib.Path({str(run)!r}).mkdir(); pathlib.Path({str(run / 'x')!r}).touch()"
    words = ["--config", str(config)] if by_file else ["--out", str(run)]
    result = installed.run("-m", "smd_agent", *words, "-c", code, cwd=tmp_path)
    expected = f"this process captured nothing: it imported no supported framework ({NAMES})"
    assert result.stderr == f"smd_agent: {expected}; anything its child processes captured is in {run}\n"
