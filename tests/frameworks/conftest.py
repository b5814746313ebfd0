"""A clean hook for every test, and scripts that know nothing of the agent run with and without it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from harness.compare import Both, assert_untouched, saved_steps
from harness.keras_ways import KerasRuns
from harness.programs import ProgramRuns
from harness.runner import SUBJECTS, Runner
from harness.scenes import Played
from harness.series import collected

from smd_agent import guard, session
from smd_agent.analysis.trial import create_trial
from smd_agent.framework import optimizer_settings
from smd_agent.framework.weak_references import WeakIdentityMap

IMPORTED = {
    "keras": ("tensorflow",),
    "mxnet": ("mxnet",),
    "pytorch": ("torch", "torch._dynamo"),
    "tensorflow": ("tensorflow",),
    "xgboost": ("xgboost", "sklearn"),
}


@pytest.fixture(scope="module")
def keras_runs(module_runner):
    """Run a Keras program without the agent; see ``KerasRuns``."""
    return lambda program, *ways, **variables: KerasRuns(module_runner(program), program, ways, variables)


@pytest.fixture(scope="module")
def warm(request):
    """The modules that are imported before the scripts of a test module run; see ``Runner``.

    They are those of the framework in its name, unless the module has its own ``WARM``.
    """
    framework = request.module.__name__.split("_")[1]
    return getattr(request.module, "WARM", IMPORTED.get(framework, ()))


@pytest.fixture
def runner(request, tmp_path, warm):
    """A runner of the test's own; marked ``cold``, the test has interpreters that start as the user's do."""
    return Runner(tmp_path, () if request.node.get_closest_marker("cold") else warm)


@pytest.fixture(scope="module")
def shared_runner(tmp_path_factory, warm):
    """A runner for what several tests of a module compare with."""
    return Runner(tmp_path_factory.mktemp("shared"), warm)


@pytest.fixture(scope="module")
def module_runner(tmp_path_factory, warm):
    """Make runners whose runs several tests look at."""
    return lambda name: Runner(tmp_path_factory.mktemp(Path(name).stem), warm)


@pytest.fixture(scope="module")
def play_script(module_runner):
    """Run a script of scenes with the agent and without; see ``Played``."""
    return lambda script, parameters=None: Played(module_runner(script), script, parameters)


@pytest.fixture(scope="module")
def program_runs(module_runner):
    """Return what gives a program's runs, which are made once; see ``ProgramRuns``."""

    def of_folder(folder, expected):
        made = {}

        def of(program):
            if program not in made:
                made[program] = ProgramRuns(module_runner(program), folder / f"{program}.py", expected[program])
            return made[program]

        return of

    return of_folder


@pytest.fixture(scope="module")
def wrapped(shared_runner):
    """Run a script whose profiler wraps what the agent replaces, with the agent and without, and compare."""
    unwrapped = {}

    def check(script, *args, replaced, how=""):
        """Return what was saved; ``replaced`` must be among what is wrapped at a moment."""
        folder = shared_runner.folder
        config = {"HookParameters": {"save_interval": 2, "save_all": True}}
        file = folder / f"{'_'.join(args)}{how}.json"

        def saved(what):
            name = f"{what}_{file.stem}"
            agent = shared_runner.by_variable(
                SUBJECTS / script, str(file), what, *args, how, name=name, config=config, SMD_AGENT_STRICT="1"
            )
            assert agent.returncode == 0, agent.stderr
            return agent, folder / name

        if how not in unwrapped:
            unwrapped[how] = saved_steps(create_trial(str(saved("nothing")[1])))
        # The agent's run comes first: the plain one is told what to wrap.
        agent, run = saved("found")
        both = Both(shared_runner.plain(SUBJECTS / script, str(file), "named", *args, how), agent, run)
        assert_untouched(both)
        assert saved_steps(both.trial) == unwrapped[how]
        moments = {moment: set(map(tuple, found)) for moment, found in json.loads(file.read_text()).items()}
        for moment, wanted in replaced.items():
            assert wanted <= moments[moment], moment
        return both.trial

    return check


@pytest.fixture(autouse=True)
def own_hook(monkeypatch):
    # An optimizer of another test, which is not collected yet, has no title here.
    monkeypatch.setattr(optimizer_settings, "_titles", WeakIdentityMap())
    # The tests of other frameworks also run where there is no torch.
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    # What is said once is said once in each test.
    guard.lines.said.clear()
    yield
    hook = session.current()
    if hook is not None:
        hook.disable()
    session.forget()


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "run")


@pytest.fixture
def rows(monkeypatch):
    """The rows of all tables that are written, as dicts: numbers that are absent are left out."""
    return collected(monkeypatch)
