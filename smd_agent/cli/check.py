"""Say what is wrong with a run: what each rule has found, the likely cause, and what to try.

Exit code 0: there is no problem. 1: there is one. 2: there is none, but a rule could not judge, because what it needs
was not saved; a line says what that is, and which option saves it. So it is where the agent failed and a part of what
it saves, or all, is missing since. A rule for which there are too few steps does not count, and neither does one that
needs what was to be saved and never came up, unless it is so for all of them; that does count where --rules or the
configuration names the rule. Warnings and notes do not count: a warning may be a mistake, a note is worth knowing.

A run that was saved with RuleConfigurations is judged by those rules, as they are configured.

A rule is left out of a run that cannot have what it needs, such as gradients of XGBoost; a few are applied only where
--rules names them. A run that goes on is judged by the steps that it has by now. --list says what rules there are and
what each looks for.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Mapping
from typing import Any

from smd_agent import guard
from smd_agent.analysis.trial import Trial
from smd_agent.cli.errors import USAGE_ERROR, CommandError
from smd_agent.cli.open_run import open_run
from smd_agent.cli.output import emit, emit_all, emit_json, progress
from smd_agent.cli.run_folders import incomplete_lines
from smd_agent.cli.verdict import list_lines, verdict_lines
from smd_agent.config.hook_file import Source
from smd_agent.config.load import load_settings
from smd_agent.config.rules import unknown_rule
from smd_agent.errors import SMDebugValueError
from smd_agent.rules.built_in import BuiltInRule
from smd_agent.rules.finding import NotJudged
from smd_agent.rules.judging import Judging, Verdict
from smd_agent.rules.not_judged import with_reasons
from smd_agent.rules.registry import applied_unasked, built_in_rules, configured_rules, rules_of_file
from smd_agent.rules.rule import Rule
from smd_agent.storage.worker_files_reader import read_failures

PROBLEM, NOT_JUDGED = 1, 2


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="folder of the run")
    rules = "only these rules, separated by commas: names, all, and Python files with rules of your own"
    parser.add_argument("--rules", metavar="NAMES", help=rules)
    config = "take RuleConfigurations from this hook file, not from the one that the run was saved with"
    parser.add_argument("--config", metavar="HOOK.json", help=config)
    ignore = "not these rules, separated by commas, beside those that the run itself ignores"
    parser.add_argument("--ignore", metavar="NAMES", help=ignore)
    parser.add_argument("--other", metavar="RUN", help="folder of a second run, for rules that compare two")
    cluster = "have a Dask cluster judge: a scheduler's address, or local:N for N processes here"
    parser.add_argument("--dask", metavar="CLUSTER", help=cluster)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--list", action="store_true", help="list the rules instead")


def run(args: argparse.Namespace) -> int:
    """Print what rules say; the exit code says it, too."""
    chosen = _chosen(args.rules)
    if args.list:
        return _list(chosen, args.json)
    if args.run is None:
        raise CommandError("name the folder of a run", USAGE_ERROR)
    trial = open_run(args.run)
    other = None if args.other is None else open_run(args.other)
    ignored = _ignored(trial, args)
    left = {name: rule for name, rule in chosen.items() if name not in ignored}
    chosen = left if args.rules else applied_unasked(left)
    configured = [one for one in _configured(trial, args.config) if one[0] not in ignored]
    if configured and not args.rules:
        chosen = {}
        if not args.json:
            emit("Rules    those of the configuration, as it has them; --rules all asks all")
    if ignored and not args.json:
        emit(f"Ignored  {', '.join(ignored)}")
    verdict = _judge(trial, chosen, configured, other, args.dask)
    failures = list(incomplete_lines(trial.root))
    if args.json:
        failed = {"capture_failures": [line.partition(" ")[2].strip() for line in failures]} if failures else {}
        emit_json({"run": trial.path, **failed, **verdict.to_json()})
    else:
        emit_all(verdict_lines(trial, verdict, failures))
    for problem in verdict.problems:
        guard.say(problem)
    if verdict.has_problem:
        return PROBLEM
    if any(one.failure.off for one in read_failures(trial.root)):
        return NOT_JUDGED
    named = {*_words(args.rules)} | {name for name, _ in configured}
    lacking = [one for one in verdict.not_judged if _counts(one, verdict, named)]
    return NOT_JUDGED if lacking or verdict.problems or trial.problems else 0


def _ignored(trial: Trial, args: argparse.Namespace) -> list[str]:
    """Return the names of the rules that are left out; those that are asked for by name are not, but by the command."""
    own = [] if args.rules else trial.collection_manager.ignored_rules
    asked = _words(args.ignore)
    for name in asked:
        if (why := unknown_rule(name)) is not None:
            raise CommandError(f"--ignore names {why}", USAGE_ERROR)
    return sorted({*own, *asked})


def _list(rules: Mapping[str, type[Rule]], as_json: bool) -> int:
    unasked = applied_unasked(rules)
    meanings = {
        name: (rule.meaning if issubclass(rule, BuiltInRule) else "", name not in unasked)
        for name, rule in rules.items()
    }
    if as_json:
        emit_json({name: {"meaning": one, "only_by_name": by_name} for name, (one, by_name) in meanings.items()})
    else:
        emit_all(list_lines(meanings))
    return 0


def _counts(one: NotJudged, verdict: Verdict, named: Collection[str]) -> bool:
    """True for a rule that could not judge where another run of the program could have what it needs."""
    if not verdict.judged or (one.rule in named and not one.too_few_steps):
        return True
    return not (one.too_few_steps or one.never_came_up)


def _configured(trial: Trial, config: str | None) -> list[tuple[str, dict[str, Any]]]:
    """Return the rules of the hook file, of the one that the run was saved with unless another is named."""
    if config is None:
        return trial.collection_manager.rules
    found = load_settings(Source(config, origin="--config")).rules
    if not found:
        raise CommandError(f"{config} has no RuleConfigurations", USAGE_ERROR)
    return [(rule.name, dict(rule.parameters)) for rule in found]


def _judge(
    trial: Trial,
    chosen: Mapping[str, type[Rule]],
    configured: list[tuple[str, dict[str, Any]]],
    other: Trial | None,
    cluster: str | None,
) -> Verdict:
    others = None if other is None else [other]
    rules = [
        rule(other_trials=others) if issubclass(rule, BuiltInRule) else _made(rule, trial)
        for name, rule in chosen.items()
        if name not in {name for name, _ in configured}
    ]
    asked = [one for one in configured if not chosen or one[0] in chosen]
    made, left = configured_rules(asked, built_in_rules(), others)
    if cluster is not None:
        from smd_agent.rules.on_cluster import judge_on_cluster

        verdict = judge_on_cluster(trial, [*rules, *made], cluster)
    else:
        judging = Judging(trial, [*rules, *made])
        with progress("looked at {} of {} steps") as tell:
            judging.take_new(tell, incomplete=True)
        verdict = judging.verdict()
    verdict.not_judged = with_reasons([*verdict.not_judged, *left], trial)
    return verdict


def _made(rule: type[Rule], trial: Trial) -> Rule:
    try:
        return rule(trial)
    except TypeError as error:
        raise CommandError(
            f"the rule {rule.__name__} cannot be made for a trial alone: {error}", USAGE_ERROR
        ) from error


def _words(text: str | None) -> list[str]:
    return [*filter(None, (word.strip() for word in (text or "").split(",")))]


def _chosen(words: str | None) -> dict[str, type[Rule]]:
    known = built_in_rules()
    if words is None:
        return dict(known)
    found: dict[str, type[Rule]] = {}
    for word in _words(words):
        if word.endswith(".py"):
            try:
                found.update(rules_of_file(os.path.expanduser(word)))
            except SMDebugValueError as error:
                raise CommandError(str(error), USAGE_ERROR) from error
        elif word in known:
            found[word] = known[word]
        elif word == "all":
            found.update(applied_unasked(known))
        else:
            raise CommandError(f"there is no rule {word}: there are {', '.join(known)}", USAGE_ERROR)
    if not found:
        raise CommandError("--rules names none", USAGE_ERROR)
    return found
