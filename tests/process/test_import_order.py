"""A framework is patched once, whenever it is imported, and its import looks like any other."""

import shutil
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import sys
from smd_agent import boot
from smd_agent.patches import FRAMEWORKS
"""
ARM = "FRAMEWORKS['toyframe'] = 'toypatch'; boot.start()\n"


@pytest.fixture
def run(bare, toy, hook):
    """Run a script next to the toy framework; the agent is on the path but starts only when the script says so."""

    def run_script(text, **variables):
        (toy / "smd_agent").symlink_to(_package(), target_is_directory=True)
        (toy / "script.py").write_text(HEAD + textwrap.dedent(text))
        return bare.run("script.py", cwd=toy, SMD_AGENT_HOOK=hook, **variables)

    return run_script


def _package():
    import smd_agent

    return smd_agent.__path__[0]


def check(result, said=()):
    assert result.returncode == 0, result.stderr
    assert result.stderr.splitlines() == list(said)


def test_framework_imported_after_start_is_patched(run):
    check(run(ARM + "import toyframe\nassert toyframe.patched == 1 and toyframe.value == 1"))


def test_framework_imported_before_start_is_patched(run):
    check(run("import toyframe\n" + ARM + "assert toyframe.patched == 1"))


def test_framework_is_patched_once_however_often_it_is_asked_for(run):
    check(
        run(
            ARM
            + """
import importlib, toyframe
boot.start()
import toyframe
importlib.reload(toyframe)
assert toyframe.patched == 1
"""
        )
    )


def test_framework_imported_inside_a_function_of_another_module_is_patched(run, toy):
    (toy / "inner.py").write_text("def f():\n    from toyframe import patched\n    return patched\n")
    check(run(ARM + "import inner\nassert inner.f() == 1"))


def test_probes_neither_break_nor_consume_the_hook(run):
    check(
        run(
            ARM
            + """
import importlib.util
for _ in range(3):
    spec = importlib.util.find_spec("toyframe")
    assert spec.name == "toyframe" and spec.origin.endswith("toyframe.py")
    assert spec.loader.get_filename("toyframe") == spec.origin
assert importlib.util.find_spec("toyframe_missing") is None
assert "wrapt" not in sys.modules and "toyframe" not in sys.modules
import toyframe
assert toyframe.patched == 1
"""
        )
    )


def test_module_carries_its_real_loader(run):
    check(
        run(
            ARM
            + """
import inspect, toyframe
from importlib.machinery import SourceFileLoader
assert type(toyframe.__loader__) is SourceFileLoader and toyframe.__spec__.loader is toyframe.__loader__
assert inspect.getsource(toyframe) == "value = 1\\n"
"""
        )
    )


def test_lazily_loaded_framework_is_patched_at_first_use(run):
    check(
        run(
            ARM
            + """
import importlib.util
spec = importlib.util.find_spec("toyframe")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = importlib.util.module_from_spec(spec)
sys.modules["toyframe"] = module
spec.loader.exec_module(module)
assert "wrapt" not in sys.modules
assert module.value == 1 and module.patched == 1
"""
        )
    )


def test_framework_that_fails_to_import_fails_as_ever_and_may_be_tried_again(run, toy):
    (toy / "toyframe.py").write_text(
        "import builtins\nif not hasattr(builtins, 'ready'): raise RuntimeError('not yet')\n"
    )
    check(
        run(
            ARM
            + """
import builtins
try:
    import toyframe
except RuntimeError as error:
    assert str(error) == "not yet" and "toyframe" not in sys.modules
builtins.ready = True
import toyframe
assert toyframe.patched == 1
"""
        )
    )


def test_missing_framework_gives_the_ordinary_error(run):
    check(
        run(
            """
FRAMEWORKS["toymissing"] = "toypatch"
boot.start()
try:
    import toymissing
except ModuleNotFoundError as error:
    assert error.name == "toymissing" and str(error) == "No module named 'toymissing'"
"""
        )
    )


def test_framework_that_replaces_itself_is_patched_in_its_new_shape(run, toy):
    (toy / "toyframe.py").write_text(
        "import sys, types\nclass Lazy(types.ModuleType): pass\nsys.modules[__name__] = Lazy(__name__)\n"
    )
    check(run(ARM + "import toyframe\nassert type(toyframe).__name__ == 'Lazy' and toyframe.patched == 1"))


def test_hook_registered_by_a_patch_gets_the_module_that_programs_see(run, toy):
    (toy / "toyframe.py").write_text("import sys, types\nsys.modules[__name__] = types.ModuleType('new')\n")
    check(
        run(
            """
from smd_agent.patches import importer
got = []
importer.when_imported("toyframe", got.append)
import toyframe
assert [module.__name__ for module in got] == ["new"]
"""
        )
    )


def test_start_in_the_middle_of_the_frameworks_import_waits_for_its_end(run, toy):
    (toy / "toyframe.py").write_text("from smd_agent import boot\nboot.start()\nimport toyhelper\nfinished = True\n")
    (toy / "toyhelper.py").write_text("")
    (toy / "toypatch.py").write_text("def apply(module):\n    assert module.finished\n    module.patched = 1\n")
    check(
        run(
            """
FRAMEWORKS["toyframe"] = "toypatch"
import toyframe
import colorsys  # any later import
assert toyframe.patched == 1
"""
        )
    )


def test_two_threads_importing_patch_once(run, toy):
    (toy / "toyframe.py").write_text("import time; time.sleep(0.2)\n")
    check(
        run(
            ARM
            + """
import threading
def load():
    import toyframe
threads = [threading.Thread(target=load) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert sys.modules["toyframe"].patched == 1
"""
        )
    )


def test_framework_run_as_a_module_still_runs(run, toy):
    (toy / "toyframe.py").write_text("if __name__ == '__main__': print('main')\n")
    result = run(ARM + "import runpy\nrunpy.run_module('toyframe', run_name='__main__')")
    assert result.stdout == "main\n"
    check(result)


@pytest.mark.parametrize(
    "patch, reason",
    [
        ("def apply(module): raise ValueError('bad')", "ValueError: bad"),
        ("import module_that_is_missing", "ModuleNotFoundError: No module named 'module_that_is_missing'"),
        ("", "AttributeError: module 'toypatch' has no attribute 'apply'"),
    ],
)
def test_failing_patch_leaves_the_import_whole(patch, reason, run, toy):
    (toy / "toypatch.py").write_text(patch)
    line = f"smd_agent: preparing toyframe failed ({reason}): what the program trains with it is not saved"
    check(run(ARM + "import toyframe\nassert toyframe.value == 1"), [line])


def test_missing_wrapt_is_one_line(run):
    result = run("sys.modules['wrapt'] = None\n" + ARM + "import toyframe\nassert toyframe.value == 1")
    assert result.returncode == 0
    (line,) = result.stderr.splitlines()
    assert line.startswith("smd_agent: nothing will be captured: this environment has no usable wrapt (")


def test_other_post_import_hooks_still_fire(run):
    check(
        run(
            """
import wrapt
fired = []
wrapt.register_post_import_hook(fired.append, "toyframe")
"""
            + ARM
            + """
import toyframe
assert fired == [toyframe] and toyframe.patched == 1
# Old versions of wrapt leave a loader of their own there.
assert not type(toyframe.__loader__).__module__.startswith("smd_agent")
"""
        )
    )


def test_bad_configuration_is_told_once_in_a_process_tree(run, toy):
    (toy / "toypatch.py").write_text(BAD_CONFIG)
    text = """
import subprocess
import toyframe
if len(sys.argv) < 2:
    subprocess.run([sys.executable, __file__, "child"], check=True)
print("ran")
"""
    result = run(ARM + text)
    assert result.stdout == "ran\nran\n"
    check(result, ["smd_agent: hook.json: a is 1, allowed is 2; the program runs without capture"])


def test_bad_configuration_under_strict_ends_the_program(run, toy):
    (toy / "toypatch.py").write_text(BAD_CONFIG)
    result = run(ARM + "import toyframe\nprint('ran')", SMD_AGENT_STRICT="1")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "smd_agent: hook.json: a is 1, allowed is 2\n"


BAD_CONFIG = """
from smd_agent.errors import ConfigError
from smd_agent.patches import importer

def apply(module):
    importer.report_bad_config(ConfigError("hook.json: a is 1, allowed is 2"))
"""


@pytest.mark.parametrize("first", ["import torch\n", ""])
def test_real_framework_is_patched_in_either_order(first, run):
    pytest.importorskip("torch")
    arm = "FRAMEWORKS['torch'] = 'toypatch'; boot.start()\n"
    check(run(first + arm + "import torch\nassert torch.patched == 1 and torch.ones(2).sum() == 2"))


def test_oldest_wrapt_serves_as_well(run, tmp_path):
    folder = tmp_path / "old_wrapt"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]
    try:
        fetched = subprocess.run([*pip, "--target", folder, "wrapt<1.15"], capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        pytest.skip("pip did not get the old wrapt within a minute")
    if fetched.returncode:
        pytest.skip("pip cannot get a wrapt below 1.15 for this interpreter")
    text = "import toyframe, wrapt\nassert toyframe.patched == 1 and wrapt.__version__.startswith('1.1')"
    check(run(ARM + text, PYTHONPATH=str(folder)))
    shutil.rmtree(folder)
