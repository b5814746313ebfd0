"""Only the first `sitecustomize` on the path runs, so ours runs the next one, with all its consequences."""

import shutil

import pytest
from harness.compare import Both, assert_untouched

REPORT = "import sys, builtins;print(getattr(builtins, 'order', []), sys.modules['sitecustomize'].__file__, sys.path)"
ARMED = "import sys; print(any(type(finder).__name__ == '_FrameworkFinder' for finder in sys.meta_path))"


@pytest.fixture
def other(tmp_path):
    """Another folder with a sitecustomize.py."""
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import builtins\nbuiltins.order = [*getattr(builtins, 'order', []), __name__]\n"
    )
    return folder


def joined(*folders):
    return ":".join(map(str, folders))


@pytest.mark.parametrize("armed", [True, False])
def test_next_one_runs_as_without_us(armed, bare, volume, other, hook, tmp_path):
    variables = {"SMD_AGENT_HOOK": hook} if armed else {}
    plain = bare.run("-c", REPORT, cwd=tmp_path, PYTHONPATH=str(other))
    run = bare.run("-c", REPORT, cwd=tmp_path, PYTHONPATH=joined(volume, other), **variables)
    # Unarmed, the entry is the user's own and stays.
    assert run.stdout == (plain.stdout if armed else plain.stdout.replace("['', ", f"['', '{volume}', "))
    assert run.stderr == ""
    assert run.stdout.startswith("['sitecustomize']")


def test_one_in_site_packages_runs(bare, volume, hook, tmp_path):
    path = bare.site_packages / "sitecustomize.py"
    path.write_text("import builtins; builtins.order = ['site-packages']\n")
    try:
        run = bare.run("-c", REPORT, cwd=tmp_path, PYTHONPATH=str(volume), SMD_AGENT_HOOK=hook)
    finally:
        path.unlink()
    assert run.stdout.startswith("['site-packages']")


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('broken')",
        "raise SystemExit(3)",
        "import missing_module",
        "def f(:",
        "raise ImportError",
    ],
)
def test_failing_one_has_the_same_consequences(text, bare, volume, other, hook, tmp_path):
    (other / "sitecustomize.py").write_text(text)
    plain = bare.run("-c", "print('ran')", cwd=tmp_path, PYTHONPATH=str(other))
    run = bare.run("-c", "print('ran')", cwd=tmp_path, PYTHONPATH=joined(volume, other), SMD_AGENT_HOOK=hook)
    # Tracebacks go through our file.
    assert_untouched(Both(plain, run), code=None, stderr=False)
    assert run.stderr.splitlines()[-1] == plain.stderr.splitlines()[-1]


def test_failing_one_leaves_the_agent_armed(bare, volume, other, hook, tmp_path):
    (other / "sitecustomize.py").write_text("raise ValueError('broken')")
    run = bare.run("-c", ARMED, cwd=tmp_path, PYTHONPATH=joined(volume, other), SMD_AGENT_HOOK=hook)
    assert run.stdout == "True\n"


def test_site_hook_arms_even_behind_one_that_does_not_chain(installed, other, hook, tmp_path):
    run = installed.run("-c", ARMED, cwd=tmp_path, PYTHONPATH=str(other), SMD_AGENT_HOOK=hook)
    assert run.stdout == "True\n"


def test_one_before_us_that_chains_reaches_us_and_the_one_after_us_once(bare, volume, other, hook, tmp_path):
    first = tmp_path / "first"
    first.mkdir()
    (first / "sitecustomize.py").write_text(
        "import builtins, os, sys\n"
        "from importlib.machinery import PathFinder\n"
        "from importlib.util import module_from_spec\n"
        "builtins.order = [*getattr(builtins, 'order', []), 'first']\n"
        "own = os.path.dirname(__file__)\n"
        "spec = PathFinder.find_spec('sitecustomize', [folder for folder in sys.path if folder != own])\n"
        "if len(builtins.order) < 5 and spec is not None:\n"
        "    spec.loader.exec_module(module_from_spec(spec))\n"
    )
    for path in (joined(first, volume, other), joined(volume, first, other)):
        for variables in ({"SMD_AGENT_HOOK": hook}, {}):
            run = bare.run("-c", ARMED + "; " + REPORT, cwd=tmp_path, PYTHONPATH=path, **variables)
            armed, _, order = run.stdout.partition("\n")
            assert armed == str(bool(variables))
            assert order.startswith("['first', 'sitecustomize']")


def test_two_copies_of_ours_chain_once_each(bare, volume, other, hook, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(volume, copy, symlinks=True)
    for variables in ({"SMD_AGENT_HOOK": hook}, {}):
        path = joined(volume, copy, other)
        run = bare.run("-c", REPORT, cwd=tmp_path, PYTHONPATH=path, **variables)
        assert run.stdout.startswith("['sitecustomize']")
        assert (str(copy) in run.stdout) is not bool(variables)
        assert run.stderr == ""


def test_environment_keeps_the_entry_that_the_process_loses(bare, volume, hook, tmp_path):
    code = f"import os, sys; print({str(volume)!r} in sys.path, os.environ['PYTHONPATH'])"
    run = bare.run("-c", code, cwd=tmp_path, PYTHONPATH=str(volume), SMD_AGENT_HOOK=hook)
    assert run.stdout == f"False {volume}\n"


def test_package_is_importable_though_its_folder_has_left_the_path(bare, volume, hook, tmp_path):
    code = f"import smd_agent, smd_agent.core.modes; print(smd_agent.__file__.startswith({str(volume)!r}))"
    run = bare.run("-c", code, cwd=tmp_path, PYTHONPATH=str(volume), SMD_AGENT_HOOK=hook)
    assert run.stdout == "True\n"
