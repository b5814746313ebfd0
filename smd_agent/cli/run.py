"""Run a script with the agent on; everything after the script's name is the script's own.

usage: python -m smd_agent [run] [options] [--] (script.py | -m module | -c code | command) [args ...]

  --config HOOK.json    capture by this hook file instead of the defaults below
  --out DIR             folder of the run, or an address such as s3://bucket/run (default: a new
                        smd_runs/<script>-<date>-<time> here), in which {host}, {pid}, {rank} and {date} may stand
  --save NAMES          collections to save, "all" for every tensor (default: all collections that the framework has)
  --every N             save every N-th step (default: steps 0, 1, 2, 3, 5, 10, 20, 50 and every 100th, with XGBoost
                        every 10th round; of the first 500 in training more, as long as that takes little time)
  --raw                 save whole tensors. Without it, only those of up to 64 elements are saved whole, such as
                        losses and metrics; of the others what "statistics" stands for
  --reductions NAMES    save these summaries, and no whole tensors unless --raw is given too: min, max, mean, median,
                        std, variance, sum, prod, p5, p50, p95, l1, l2, each also with abs_ in front; zero_share,
                        nan_count, inf_count, dead_share, saturated_share, histogram; statistics is short for min,
                        max, mean, std, l2, abs_mean, zero_share, nan_count, inf_count, dead_share, saturated_share
  --tensorboard DIR     write files for TensorBoard, too: scalars, histograms and distributions
  --budget PERCENT      of the run's time, for the numbers of every step (default: 1); twice that for what is saved of
                        steps and boosting rounds though nobody asked for it by name
  --blame               with PyTorch, name what makes a loss or gradients not finite; runs parts of the program again
  --no-bundles          of a step that goes wrong, keep nothing by which replay runs it again
  --rules NAMES         ask these rules while training goes on, too: names of check --list, "all", and Python files with
                        rules of your own; what one finds is a line at once, and stands in findings.json of the run
  --on-find WHAT        what else they do then. warn: nothing (the default); dump: the next step is saved whole; stop:
                        the training is ended
  --ignore NAMES        do not judge the run by these rules: what they find is meant
  --strict              let a failure of the agent end the script instead of the capture
  -h, --help            show this

Without --config, a hook file named by SMDEBUG_CONFIG_FILE_PATH counts as the config. Options beside a config
replace what it says. USE_SMDEBUG=0 wins over all of it: the script then runs as without the agent.

The launcher sets variables and becomes the script's interpreter, so argv, sys.path, __main__, exit code,
signals and tracebacks are those of a plain run; Python processes that the script starts are captured as well.
Interpreter options go before -m: python -u -m smd_agent script.py
"""

from __future__ import annotations

import json
import os
import time

from smd_agent.cli import launched_program
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.config import env
from smd_agent.config.hook_file import Source, find_source, read_object
from smd_agent.config.launcher_defaults import default_content
from smd_agent.config.load import load_settings
from smd_agent.config.placeholders import literal
from smd_agent.config.suggestions import misspelt, nearest
from smd_agent.config.values import InvalidValue, count, on_find, per_cent
from smd_agent.core.collection_keys import BUILT_IN_NAMES
from smd_agent.formats.addresses import is_address
from smd_agent.printable import shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from smd_agent.config.settings import HookSettings

    T = TypeVar("T")

ALL = "all"
FORM_KEYS = ("reductions", "save_raw_tensor", "save_shape", "save_raw_up_to")
RUNS_FOLDER = "smd_runs"

VALUE_OPTIONS = (
    "--config",
    "--out",
    "--save",
    "--every",
    "--reductions",
    "--tensorboard",
    "--rules",
    "--on-find",
    "--ignore",
    "--budget",
)
FLAGS = ("--strict", "--raw", "--blame", "--no-bundles")
_KEYS_OF_FLAGS = {"--blame": ("blame", True), "--no-bundles": ("bundles", False)}
INTERPRETER_OPTIONS = ("-m", "-c", "-")


def launch(words: list[str], commands: Iterable[str] = ()) -> int:
    """Become the program named in the words; return an exit code only where none can be replaced (Windows).

    ``commands`` are words that may have been meant where there is no such program.

    Raises:
        CommandError: the words cannot be followed, or the program cannot be started.
        ConfigError: the configuration is wrong; nothing has been started.
    """
    options, target = split(words)
    if "--help" in options:
        print((__doc__ or "").strip())
        return 0
    if not target:
        raise CommandError("name a script, -m module, -c code or a command to run", USAGE_ERROR)
    program, command = launched_program.resolve(target, commands)
    if env.use_smdebug():
        launched_program.open_for(program)
        configure(options, target)
        if "--strict" in options:
            env.put(env.STRICT, "1")
        env.put(env.LAUNCH_PID, str(os.getpid()))
    return launched_program.become(program, command)


def split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Split into our options (flags map to an empty string) and the program with its own arguments.

    Raises:
        CommandError: an option is unknown or lacks its value.
    """
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in INTERPRETER_OPTIONS:
        word = rest.pop(0)
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            return {"--help": ""}, []
        if word in FLAGS:
            options[word] = ""
        elif name not in VALUE_OPTIONS:
            meant = nearest(name, [*VALUE_OPTIONS, *FLAGS]) or "; see python -m smd_agent run --help"
            raise CommandError(f"unknown option {word} before the script{meant}", USAGE_ERROR)
        elif equals:
            options[name] = value
        elif rest:
            options[name] = rest.pop(0)
        else:
            raise CommandError(f"option {name} needs a value", USAGE_ERROR)
    return options, rest


def configure(options: dict[str, str], target: list[str]) -> None:
    """Set the variables that carry the configuration to the program and its children, after checking them.

    Raises:
        CommandError: the value of an option is wrong.
        ConfigError: the hook file, or the result of laying the options over it, is wrong.
    """
    # A launch from a program that was launched itself is another one.
    env.put(env.LAUNCHED, None)
    source = source_for(options)
    settings = None if source is None else load_settings(source)
    if source is not None and "--config" in options:
        env.put(env.HOOK, None)
        env.put(env.CONFIG_PATH, source.name)
    hook = content_for(source, options)
    if hook is not None:
        settings = _set_hook(hook)
        if "LocalPath" not in hook and source is None:
            # Last, so that nothing is left behind when an option is wrong.
            settings = _set_hook({**hook, "LocalPath": literal(new_run_folder(target))})
    if settings is not None:
        from smd_agent.storage.folder_choice import obstacle

        # Else the program would say so in its first step that is saved.
        why = "" if settings.dry_run else obstacle(settings.out_dir)
        if why:
            raise CommandError(f"no run can be written into {settings.out_dir}: {why}; choose a folder by --out")


def source_for(options: dict[str, str]) -> Source | None:
    """Return where the configuration is that the options are laid over, None where there is none."""
    if "--config" in options:
        return Source(os.path.abspath(options["--config"]), origin="--config")
    return find_source()


def content_for(source: Source | None, options: dict[str, str]) -> dict[str, Any] | None:
    """Return the hook file's content that counts, None where it is the one at the source as it stands.

    Raises:
        CommandError: the value of an option is wrong.
        ConfigError: the source holds no JSON object.
    """
    given = {name: value for name, value in options.items() if name in (*VALUE_OPTIONS[1:], *FLAGS[1:])}
    if source is None:
        return overlay(default_content(), given)
    return overlay(read_object(source)[0], given) if given else None


def _set_hook(hook: dict[str, Any]) -> HookSettings:
    text = json.dumps(hook)
    settings = load_settings(Source("the options", text=text))
    env.put(env.HOOK, text)
    return settings


def overlay(hook: dict[str, Any], given: dict[str, str]) -> dict[str, Any]:
    """Return the hook file's content with the options in place of what they replace.

    `--every`, `--raw` and `--reductions` hold for each mode and collection: more special settings are replaced too.
    """
    parameters = dict(hook.get("HookParameters") or {})
    collections = [dict(entry) for entry in hook.get("CollectionConfigurations") or ()]
    if "--save" in given:
        named = {entry.get("CollectionName"): entry for entry in collections}
        names = _names(given["--save"], "--save")
        _refuse_misspelt([name for name in names if name not in named])
        collections = [named.get(name, {"CollectionName": name}) for name in names]
        if ALL in names:
            parameters["save_all"] = True
    groups = [parameters]
    for entry in collections:
        entry["CollectionParameters"] = dict(entry.get("CollectionParameters") or {})
        groups.append(entry["CollectionParameters"])
    if "--every" in given:
        every = _checked(given, "--every", count)
        _drop(groups, ("save_interval", "save_steps", "save_early", "save_last", "within_budget"))
        parameters["save_interval"] = every
    if "--reductions" in given or "--raw" in given:
        # Whole tensors may take little time and much space.
        _drop(groups, (*FORM_KEYS, "save_early") if "--raw" in given else FORM_KEYS)
        parameters.update(_form(given))
    parameters.update(_replaced(given))
    parameters.update(_live(given, hook))
    merged = {**hook, "HookParameters": parameters}
    if collections:
        merged["CollectionConfigurations"] = collections
    if "--ignore" in given:
        merged["IgnoredRules"] = _ignored(given["--ignore"])
    if "--out" in given:
        merged["LocalPath"] = given["--out"] if is_address(given["--out"]) else _folder(given, "--out")
    return merged


def _replaced(given: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {key: value for flag, (key, value) in _KEYS_OF_FLAGS.items() if flag in given}
    if "--budget" in given:
        _checked(given, "--budget", per_cent)
        found["budget"] = given["--budget"]
    if "--tensorboard" in given:
        found.update(export_tensorboard=True, tensorboard_dir=_folder(given, "--tensorboard"))
    return found


def _folder(given: dict[str, str], option: str) -> str:
    if not given[option]:
        raise CommandError(f"option {option} is '', allowed is a folder", USAGE_ERROR)
    # What the current folder is called is no placeholder.
    return os.path.normpath(os.path.join(literal(os.getcwd()), given[option]))


def _live(given: dict[str, str], hook: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "--rules" in given:
        # Not for every launch: reading the names takes a while.
        from smd_agent.config.live import unknown_name

        found["live_rules"] = _names(given["--rules"], "--rules")
        for name in found["live_rules"]:
            why = unknown_name(name)
            if why is not None:
                raise CommandError(f"option --rules names {why}", USAGE_ERROR)
    if "--on-find" in given:
        found["on_find"] = _checked(given, "--on-find", on_find)
        if not (found.get("live_rules") or hook.get("RuleConfigurations")):
            raise CommandError("option --on-find needs rules that are asked while training: --rules", USAGE_ERROR)
    return found


def _ignored(text: str) -> list[str]:
    from smd_agent.config.rules import unknown_rule

    names = _names(text, "--ignore")
    for name in names:
        if (why := unknown_rule(name)) is not None:
            raise CommandError(f"option --ignore names {why}", USAGE_ERROR)
    return names


def _form(given: dict[str, str]) -> dict[str, Any]:
    if "--reductions" not in given:
        return {}
    names = _names(given["--reductions"], "--reductions")
    return {"reductions": ",".join(names), **({"save_raw_tensor": True} if "--raw" in given else {})}


def _drop(groups: list[dict[str, Any]], keys: tuple[str, ...]) -> None:
    for group in groups:
        for key in [key for key in group if key.rpartition(".")[2] in keys]:
            del group[key]


def _names(text: str, option: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise CommandError(
            f"option {option} is {shortened(repr(text), 60)}, allowed are names separated by commas", USAGE_ERROR
        )
    return names


def _refuse_misspelt(names: list[str]) -> None:
    """Raise where a collection is nearly one of ours; others may be the program's own, which makes them later."""
    for name in names:
        meant = misspelt(name, sorted(BUILT_IN_NAMES))
        if meant:
            raise CommandError(
                f"option --save: there is no collection {shortened(name, 60)}; did you mean {meant}?", USAGE_ERROR
            )


def _checked(given: dict[str, str], option: str, kind: Callable[[Any], T]) -> T:
    text = given[option]
    try:
        return kind(text)
    except InvalidValue as unfit:
        raise CommandError(f"option {option} is {shortened(repr(text), 60)}, allowed is {unfit}", USAGE_ERROR) from None


def new_run_folder(target: list[str]) -> str:
    """Make and return a folder nobody else has; two launches in the same second get two."""
    first = os.path.join(os.getcwd(), RUNS_FOLDER, f"{stem_of(target)}-{time.strftime('%Y%m%d-%H%M%S')}")
    folder, number = first, 1
    while not _made(folder):
        number += 1
        folder = f"{first}-{number}"
    return folder


def stem_of(target: list[str]) -> str:
    """Return what the folder of a program's run is called, but for the time."""
    if target[0] == "-m":
        return target[1] if len(target) > 1 else "module"
    if target[0] in ("-c", "-"):
        return {"-c": "code", "-": "stdin"}[target[0]]
    return os.path.splitext(os.path.basename(os.path.normpath(target[0])))[0]


def _made(folder: str) -> bool:
    try:
        os.makedirs(folder)
    except FileExistsError:
        return False
    except OSError as error:
        raise CommandError(f"cannot make the run's folder {folder}: {error.strerror}; choose one by --out") from error
    return True
