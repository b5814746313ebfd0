"""A clean hook for every test, and scripts that know nothing of the agent run with and without it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from harness.warm import warm_process

import smd_agent
from smd_agent import guard, session
from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

HERE = Path(__file__).parent
PACKAGE = Path(smd_agent.__file__).parent
SITE_HOOK = Path(sysconfig.get_path("purelib")) / "smd_agent.pth"


def environment(**variables):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SMD", "USE_SMDEBUG", "COV_", "COVERAGE_"))}
    if not SITE_HOOK.exists():
        # Tests started from a source tree: the folder with our sitecustomize takes the place of the site hook.
        inner = PACKAGE / "_site"
        kept["PYTHONPATH"] = str(inner if inner.exists() else PACKAGE.parent)
    return {**kept, **variables}


class Runner:
    """Runs one script through the doors; ``hook`` is the configuration, its run goes to ``folder``/<name>.

    ``warm`` names modules: a script that is run to its end then runs in a fork of a process that has imported them.
    """

    def __init__(self, folder, warm=()):
        self.folder = folder
        # The fork starts the agent by the site hook, which is not there when tests are started from a source tree.
        self.warm = tuple(warm) if SITE_HOOK.exists() else ()

    def hook_file(self, name, config):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"LocalPath": str(self.folder / name), **config}))
        return str(path)

    def plain(self, script, *args, **variables):
        return self._run_script(script, args, environment(**variables))

    def by_variable(self, script, *args, name="run", config=None, **variables):
        file = self.hook_file(name, config or {})
        return self._run_script(script, args, environment(SMDEBUG_CONFIG_FILE_PATH=file, **variables))

    def by_launcher(self, *words, **variables):
        return self._run([sys.executable, "-m", "smd_agent", *map(str, words)], environment(**variables))

    def start(self, script, *, name="run", config=None):
        """Start the script by the environment variable and return the running process."""
        env = environment(SMDEBUG_CONFIG_FILE_PATH=self.hook_file(name, config or {}))
        return subprocess.Popen([sys.executable, str(script)], cwd=self.folder, env=env, stderr=subprocess.DEVNULL)

    @staticmethod
    def script(name):
        return HERE / name

    @staticmethod
    def environment(**variables):
        return environment(**variables)

    def _run_script(self, script, args, env):
        if self.warm and Path(script).suffix == ".py":
            return warm_process(self.warm, env).run([str(script), *args], env, self.folder, SITE_HOOK)
        return self._run([sys.executable, str(script), *args], env)

    def _run(self, command, env):
        return subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, timeout=300)


class Played:
    """A script of scenes that has been run with the agent and without, the latter noting values.

    ``parameters`` are hook parameters; ``lines`` all that the agent has said.
    """

    def __init__(self, runner, script, parameters=None):
        self.notes_file = runner.folder / "notes.npz"
        plain = runner.plain(HERE / script, str(self.notes_file))
        config = {"HookParameters": {"save_interval": 1, "save_all": True, **(parameters or {})}}
        agent = runner.by_variable(HERE / script, config=config, SMD_AGENT_STRICT="1")
        assert (plain.returncode, plain.stderr) == (0, "")
        assert (agent.returncode, agent.stdout) == (0, plain.stdout)
        self.lines = agent.stderr.splitlines()
        assert [line for line in self.lines if not line.startswith("smd_agent: ")] == []
        self.trial = create_trial(str(runner.folder / "run"))
        with np.load(self.notes_file) as file:
            self._notes = dict(file)

    def steps(self, scene, mode):
        """Return the steps of a mode that belong to a scene."""
        first_train, train, first_eval, evaluation = self._notes[f"{scene}|steps"]
        first, count = (first_train, train) if mode is ModeKeys.TRAIN else (first_eval, evaluation)
        return [int(step) for step in range(first, first + count)]

    def value(self, name, step, mode=ModeKeys.TRAIN):
        return self.trial.tensor(name).value(step, mode=mode)

    def saved(self, scene, name, mode=ModeKeys.TRAIN):
        """Return at which steps of the scene, counted from its first, a tensor was saved."""
        steps = self.steps(scene, mode)
        return [step - steps[0] for step in self.trial.tensor(name).steps(mode=mode) if step in steps]

    def check(self, scene, tolerance=0.0):
        """Compare each value noted in the scene with the saved one; return how many there were."""
        count = 0
        for key, expected in self._notes.items():
            found, _, place = key.partition("|")
            if found != scene or place == "steps":
                continue
            mode, step, name = place.split("|")
            value = self.value(name, int(step), ModeKeys[mode])
            assert value.shape == expected.shape, key
            np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance, err_msg=key)
            count += 1
        return count


class KerasRuns:
    """Runs the ways of a Keras program with the agent and compares what they print with one run without it.

    Args:
        runner: ``ways`` are played without the agent in its folder.
        program: prints "way" and its name, then what it has to tell; the file named first gets what a run has seen.
        variables: of the environment.
    """

    def __init__(self, runner, program, ways, variables):
        self.runner = runner
        self.program = HERE / program
        self.variables = variables
        plain = runner.plain(self.program, str(runner.folder / "plain.npz"), *ways, **variables)
        assert plain.returncode == 0, plain.stderr
        self.told = _by_way(plain.stdout)

    def agent(self, *ways, name, interval=1, collections, but="$"):
        """Run these ways with the agent; lines that match ``but`` may be others."""
        config = {
            "HookParameters": {"save_interval": interval},
            "CollectionConfigurations": [{"CollectionName": name} for name in collections],
        }
        file = str(self.runner.folder / f"{name}.npz")
        variables = {"SMD_AGENT_STRICT": "1", **self.variables}
        ours = self.runner.by_variable(self.program, file, *ways, name=name, config=config, **variables)
        assert ours.returncode == 0, ours.stderr
        told = _by_way(ours.stdout)
        assert [*told] == [way for way in ways if way in self.told]
        for way in told:
            ours_told, theirs = (
                [line for line in lines[way] if not re.match(but, line)] for lines in (told, self.told)
            )
            assert ours_told == theirs, way
        assert "failed" not in ours.stderr, ours.stderr
        return KerasOutcome(self.runner.folder, name, ours.stderr)


def _by_way(stdout):
    found = {}
    for line in stdout.splitlines():
        if line.startswith("way "):
            found[line[4:]] = lines = []
        else:
            lines.append(line)
    return found


class KerasOutcome:
    """A run with the agent, beside what the same program without it saw."""

    def __init__(self, folder, name, stderr):
        self.trial = create_trial(str(folder / name))
        self.stderr = stderr
        self.seen = {tuple(key.split("|")): value for key, value in np.load(folder / "plain.npz").items()}
        self.ours = {tuple(key.split("|")): value for key, value in np.load(folder / f"{name}.npz").items()}

    def value(self, name, step, mode=ModeKeys.TRAIN):
        return self.trial.tensor(name).value(step, mode=mode)

    def steps(self, name, mode=ModeKeys.TRAIN):
        return self.trial.tensor(name).steps(mode=mode)

    def weight(self, variable):
        (found,) = [
            name for name in self.trial.tensor_names(regex="weights/") if name.endswith(f"weights/{variable}:0")
        ]
        return found

    def weight_of(self, layer):
        """Return the name of a layer's kernel."""
        return self.weight(self.trial.tensor_names(regex=f"weights/.*{layer}/kernel:0$")[0].split("/weights/")[1][:-2])

    def check_updates(self, of="", rate=1.0, exact=True):
        """Every saved gradient leads from the weights of its step to those of the next; how many did."""
        checked = 0
        for name in self.trial.tensor_names(regex=f"^gradients/(.*[/_])?{of}.*Grad$"):
            weight = self.weight(name[len("gradients/") : -len("Grad")])
            for step in self.steps(name):
                if step + 1 in self.steps(weight):
                    found = self.value(weight, step) - np.float32(rate) * self.value(name, step)
                    following = self.value(weight, step + 1)
                    if exact:
                        np.testing.assert_array_equal(found, following, f"{name} {step}")
                    else:
                        np.testing.assert_allclose(found, following, rtol=1e-5, atol=1e-6)
                    checked += 1
        return checked

    def check_seen(self, way, first=0):
        """Weights and logs are those that the program's own callback saw; how many were compared."""
        mine = {key: value for key, value in self.seen.items() if key[0] == way}
        for (_, step, name), value in mine.items():
            stored = name if name in ("loss", "accuracy") else self.weight(name)
            np.testing.assert_array_equal(self.value(stored, first + int(step)).reshape(value.shape), value)
        return len(mine)

    def check_seen_at_saved(self, way):
        """Compare the weights that the program's own callback saw with those of the steps that are saved."""
        mine = [key for key in self.seen if key[0] == way and key[2] not in ("loss", "accuracy")]
        saved = [(int(step), name) for _, step, name in mine if int(step) in self.steps(self.weight(name))]
        for step, name in saved:
            np.testing.assert_array_equal(self.value(self.weight(name), step), self.seen[way, str(step), name])
        return len(saved)


@pytest.fixture(scope="module")
def keras_runs(module_runner):
    """Run a Keras program without the agent; see ``KerasRuns``."""
    return lambda program, *ways, **variables: KerasRuns(module_runner(program), program, ways, variables)


@pytest.fixture(scope="module")
def warm(request):
    """What a test module's ``WARM`` names; see ``Runner``."""
    return getattr(request.module, "WARM", ())


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
def wrapped(shared_runner):
    """Run a script whose profiler wraps what the agent replaces, with the agent and without, and compare."""
    unwrapped = {}

    def check(script, *args, replaced, how=""):
        """Return the saved tensors' names and steps by mode; ``replaced`` must be among what is wrapped at a moment."""
        folder = shared_runner.folder
        config = {"HookParameters": {"save_interval": 2, "save_all": True}}
        file = folder / f"{'_'.join(args)}{how}.json"

        def saved(what):
            name = f"{what}_{file.stem}"
            agent = shared_runner.by_variable(
                HERE / script, str(file), what, *args, how, name=name, config=config, SMD_AGENT_STRICT="1"
            )
            assert agent.returncode == 0, agent.stderr
            trial = create_trial(str(folder / name))
            names = {
                mode: {name: trial.tensor(name).steps(mode=mode) for name in trial.tensor_names(mode=mode)}
                for mode in (ModeKeys.TRAIN, ModeKeys.EVAL)
            }
            return agent.stdout, names

        if how not in unwrapped:
            unwrapped[how] = saved("nothing")[1]
        ours, names = saved("found")
        plain = shared_runner.plain(HERE / script, str(file), "named", *args, how)
        assert plain.returncode == 0, plain.stderr
        assert ours == plain.stdout
        assert names == unwrapped[how]
        moments = {moment: set(map(tuple, found)) for moment, found in json.loads(file.read_text()).items()}
        for moment, wanted in replaced.items():
            assert wanted <= moments[moment], moment
        return names

    return check


@pytest.fixture(autouse=True)
def own_hook():
    # The tests of other frameworks also run where there is no torch.
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
    # What is said once is said once in each test.
    guard._said.clear()
    yield
    hook = session.current()
    if hook is not None:
        hook.disable()
    session.forget()


@pytest.fixture
def out(tmp_path):
    return str(tmp_path / "run")
