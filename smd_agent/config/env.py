"""The only reader and writer of the process environment; every variable this package knows is in `VARIABLES`.

The boot code imports this file in every interpreter that has the package on its path, so it imports `os`.
"""

from __future__ import annotations

import os

DEFAULT_CONFIG_PATH = "/opt/ml/input/config/debughookconfig.json"
DEFAULT_RESOURCE_CONFIG_PATH = "/opt/ml/input/config/resourceconfig.json"
DEFAULT_TENSORBOARD_CONFIG_PATH = "/opt/ml/input/config/tensorboardoutputconfig.json"
DEFAULT_CHECKPOINT_CONFIG_PATH = "/opt/ml/input/config/checkpointconfig.json"

USE = "USE_SMDEBUG"
CONFIG_PATH = "SMDEBUG_CONFIG_FILE_PATH"
TENSORBOARD_CONFIG_PATH = "TENSORBOARD_CONFIG_FILE_PATH"
CHECKPOINT_CONFIG_PATH = "CHECKPOINT_CONFIG_FILE_PATH"
TRAINING_JOB = "TRAINING_JOB_NAME"
METRICS_DIRECTORY = "SAGEMAKER_METRICS_DIRECTORY"
END_DELAY = "SMDEBUG_TRAINING_END_DELAY_REFRESH"
STEP_WINDOW = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
RETRY_LIMIT = "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT"
HOOK = "SMD_AGENT_HOOK"
STRICT = "SMD_AGENT_STRICT"
VERDICT_SECONDS = "SMD_AGENT_VERDICT_SECONDS"
UPLOAD_SECONDS = "SMD_AGENT_UPLOAD_SECONDS"
LAUNCH_PID = "SMD_AGENT_LAUNCH_PID"
LAUNCHED = "SMD_AGENT_LAUNCHED"
REPORTED = "SMD_AGENT_REPORTED"
OBSERVER = "SMD_AGENT_OBSERVER"
REPLAY = "SMD_AGENT_REPLAY"
RANK = "RANK"
RANKS = "WORLD_SIZE"
OPEN_MPI_RANK = "OMPI_COMM_WORLD_RANK"
OPEN_MPI_RANKS = "OMPI_COMM_WORLD_SIZE"
PMI_RANK = "PMI_RANK"
PMI_RANKS = "PMI_SIZE"
HYDRA = "MPI_LOCALNRANKS"
SLURM_RANK = "SLURM_PROCID"
SLURM_RANKS = "SLURM_STEP_NUM_TASKS"
MEETING = "MASTER_ADDR"


class Variable:
    """A variable as it is documented: ``default`` is what it counts as where it is unset or empty."""

    __slots__ = ("default", "kind", "meaning", "name")

    def __init__(self, name: str, kind: str, default: str, meaning: str) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.meaning = meaning


VARIABLES = (
    Variable(USE, "boolean", "true", "false switches everything off, whatever else is set"),
    Variable(CONFIG_PATH, "path", DEFAULT_CONFIG_PATH, "the hook file to capture by"),
    Variable(TENSORBOARD_CONFIG_PATH, "path", DEFAULT_TENSORBOARD_CONFIG_PATH, "names a folder for TensorBoard"),
    Variable(
        CHECKPOINT_CONFIG_PATH,
        "path",
        DEFAULT_CHECKPOINT_CONFIG_PATH,
        "names the folder of the script's checkpoints, by which a restarted training goes on with its numbers",
    ),
    Variable(TRAINING_JOB, "text", "", "present at all: a SageMaker training job, which gets no end marker"),
    Variable(METRICS_DIRECTORY, "path", "", "gets losses, metrics and scalars with sm_metric as SageMaker's metrics"),
    Variable(END_DELAY, "seconds", "1", "a reader's wait between its last two looks at a finished run"),
    Variable(STEP_WINDOW, "integer", "1000", "steps after which a reader no longer waits for a missing worker"),
    Variable(RETRY_LIMIT, "integer", "100", "looks (2 s apart) for an event file that an index already names"),
    Variable(HOOK, "JSON", "", "the hook file's content itself; set by the launcher for its child processes"),
    Variable(STRICT, "boolean", "false", "our own failures stop the program instead of ending the capture"),
    Variable(VERDICT_SECONDS, "seconds", "1", "what rules take to judge a run when it ends, and in ls; 0: they do not"),
    Variable(UPLOAD_SECONDS, "seconds", "600", "what the end of a run waits at most for a store that takes its files"),
    Variable(LAUNCH_PID, "integer", "", "pid of the process the launcher started; set by the launcher"),
    Variable(LAUNCHED, "text", "", "what {date} and {pid} in a folder's name stand for; set for the child processes"),
    Variable(REPORTED, "text", "", "checksum of a complaint made already; set for the child processes"),
    Variable(OBSERVER, "text", "", "where a run is written down for verify, which sets it"),
    Variable(REPLAY, "JSON", "", "the bundle of a step that is to be made again, for replay, which sets it"),
    Variable(
        RANK,
        "integer",
        "",
        "set by launchers such as torchrun: this process's rank, as long as no process group is there",
    ),
    Variable(RANKS, "integer", "", "set by launchers such as torchrun: how many ranks there are"),
    Variable(OPEN_MPI_RANK, "integer", "", "set by mpirun of Open MPI: this process's rank"),
    Variable(OPEN_MPI_RANKS, "integer", "", "set by mpirun of Open MPI: how many ranks there are"),
    Variable(PMI_RANK, "integer", "", "set by mpiexec of MPICH and Intel MPI: this process's rank"),
    Variable(PMI_RANKS, "integer", "", "set by mpiexec of MPICH and Intel MPI: how many ranks there are"),
    Variable(HYDRA, "integer", "", "set by that mpiexec; without it, PMI_RANK may be srun's, which counts as below"),
    Variable(SLURM_RANK, "integer", "", "set by srun of Slurm: this process's rank, if MASTER_ADDR is set"),
    Variable(SLURM_RANKS, "integer", "", "set by srun of Slurm: how many processes it has started"),
    Variable(MEETING, "text", "", "where ranks meet: processes that srun has started are ranks of one training"),
)

_DEFAULTS = {variable.name: variable.default for variable in VARIABLES}

BOOLEAN_WORDS = {
    **dict.fromkeys(("y", "yes", "t", "true", "on", "1"), True),
    **dict.fromkeys(("n", "no", "f", "false", "off", "0"), False),
}


def use_smdebug() -> bool:
    """Tell whether capturing is allowed at all; a spelling nobody knows counts as allowed and is reported."""
    return _boolean(USE)


def strict() -> bool:
    """Tell whether our own failures shall stop the user's program."""
    return _boolean(STRICT)


def verdict_seconds() -> float:
    """Return how long a run may be judged when it ends; 0 for not at all."""
    return _number(VERDICT_SECONDS)


def upload_seconds() -> float:
    """Return how long the end of a run waits at most until a store has everything."""
    return _number(UPLOAD_SECONDS)


def hook_json() -> str | None:
    """Return the inline hook configuration, None when there is none."""
    return os.environ.get(HOOK) or None


def config_path() -> str | None:
    """Return the hook file's path as set, None when it is unset or empty."""
    return os.environ.get(CONFIG_PATH) or None


def tensorboard_config_path() -> str:
    """Return the path of the file in which a training job names its TensorBoard folder."""
    return os.environ.get(TENSORBOARD_CONFIG_PATH) or _DEFAULTS[TENSORBOARD_CONFIG_PATH]


def checkpoint_config_path() -> str | None:
    """Return the path of the file that names the folder of checkpoints as set, None when it is unset or empty."""
    return os.environ.get(CHECKPOINT_CONFIG_PATH) or None


def in_training_job() -> bool:
    """Tell whether this is a SageMaker training job (the variable exists, with whatever value)."""
    return TRAINING_JOB in os.environ


def metrics_directory() -> str | None:
    """Return the folder in which a SageMaker job collects metrics, None when it names none."""
    return os.environ.get(METRICS_DIRECTORY) or None


def training_end_delay() -> float:
    """Return a reader's wait in seconds between its last two looks at a finished run."""
    return _number(END_DELAY)


def incomplete_step_window() -> int:
    """Return the number of steps after which a reader stops waiting for a missing worker."""
    return int(_number(STEP_WINDOW))


def event_file_retry_limit() -> int:
    """Return how often a reader looks for an event file that an index already names."""
    return int(_number(RETRY_LIMIT))


def launch_pid() -> int | None:
    """Return the pid of the process the launcher started, None when no launcher was used."""
    return _whole(LAUNCH_PID)


def rank_and_size() -> tuple[int, int] | None:
    """Return the rank and the number of ranks that a launcher gives a process, None without one.

    What ``srun`` starts may be as many trainings that know nothing of each other, and a batch script itself has
    Slurm's variables too. So these count only in a step of ``srun``, and where it is said where the ranks meet.
    """
    meets = bool(os.environ.get(MEETING))
    by_mpiexec = meets or HYDRA in os.environ or SLURM_RANKS not in os.environ
    found = (
        _place(RANK, RANKS),
        _place(OPEN_MPI_RANK, OPEN_MPI_RANKS),
        _place(PMI_RANK, PMI_RANKS) if by_mpiexec else None,
        _place(SLURM_RANK, SLURM_RANKS) if meets else None,
    )
    places = [place for place in found if place is not None]
    # One launcher may have been started by another, each process alone.
    return next((place for place in places if place[1] > 1), places[0] if places else None)


def get(name: str) -> str | None:
    """Return any variable's raw text, None when unset."""
    return os.environ.get(name)


def put(name: str, value: str | None) -> None:
    """Set a variable for this process and its children; None removes it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def for_child(changes: dict[str, str | None]) -> dict[str, str]:
    """Return the environment for a process to be started, with some variables set, or left out where None stands."""
    kept = {name: text for name, text in os.environ.items() if name not in changes}
    return kept | {name: text for name, text in changes.items() if text is not None}


def _boolean(name: str) -> bool:
    text = os.environ.get(name, "").strip() or _DEFAULTS[name]
    known = BOOLEAN_WORDS.get(text.lower())
    if known is not None:
        return known
    _report(name, text, "true or false (also yes/no, on/off, 1/0)", "true")
    return True


def _place(rank_name: str, size_name: str) -> tuple[int, int] | None:
    rank, size = _whole(rank_name), _whole(size_name)
    return (rank, size) if rank is not None and size is not None and rank < size else None


def _whole(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    # Longer ones are nobody's rank or process, and Python need not read them.
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _number(name: str) -> float:
    text = os.environ.get(name, "").strip() or _DEFAULTS[name]
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        _report(name, text, "a number from 0 up", _DEFAULTS[name])
        return float(_DEFAULTS[name])
    return value


def _report(name: str, text: str, allowed: str, taken: str) -> None:
    from smd_agent import guard

    line = f"the environment variable {name} is {text!r}, allowed is {allowed}; taken as {taken}"
    guard.say_once(("env", name), line)
