"""A training with the settings that an estimator takes, on this machine: `python examples/estimator.py`.

An example to copy from, not a part of the package. `fit` writes the hook file, starts the script under the agent, and
asks the rules afterwards. What needs a service of the cloud, such as instances, images and uploads, is left out.
"""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from smd_agent import create_trial


class DebuggerHookConfig:
    """What to save: keys for all collections, and the collections."""

    def __init__(self, s3_output_path=None, hook_parameters=None, collection_configs=None):
        self.hook_parameters, self.collections = hook_parameters or {}, collection_configs or []


@dataclass
class CollectionConfig:
    """A collection to save, and keys for it alone."""

    name: str
    parameters: dict = field(default_factory=dict)


@dataclass
class TensorBoardOutputConfig:
    """Where files for TensorBoard go."""

    s3_output_path: str = ""
    container_local_output_path: str = "tensorboard"


class Rule:
    """A rule to ask afterwards; what it looks at is saved."""

    def __init__(self, name, parameters, collections):
        self.name, self.parameters, self.collections = name, parameters, collections

    @classmethod
    def sagemaker(cls, base_config, name=None, rule_parameters=None, collections_to_save=None):
        """A rule of the package, by its name, such as "VanishingGradient"."""
        parameters = {"rule_to_invoke": base_config, **(rule_parameters or {})}
        return cls(name or base_config, parameters, collections_to_save or [])


class Estimator:
    """Trains a script that nobody has edited."""

    def __init__(
        self,
        entry_point,
        source_dir=".",
        hyperparameters=None,
        debugger_hook_config=None,
        tensorboard_output_config=None,
        rules=None,
        output_path="smd_runs",
        base_job_name="job",
    ):
        self.entry_point, self.source_dir = entry_point, Path(source_dir)
        self.hyperparameters = hyperparameters or {}
        self.hook, self.board, self.rules = debugger_hook_config, tensorboard_output_config, rules or []
        self.run = Path(output_path).absolute() / base_job_name

    def fit(self):
        """Train, and wait for the end; a script that fails raises CalledProcessError."""
        self.run.parent.mkdir(parents=True, exist_ok=True)
        hook_file = self.run.with_suffix(".json")
        hook_file.write_text(json.dumps(self.hook_file(), indent=2))
        arguments = [word for name, value in self.hyperparameters.items() for word in (f"--{name}", str(value))]
        agent = [sys.executable, "-m", "smd_agent", "--config", str(hook_file)]
        subprocess.run([*agent, self.entry_point, *arguments], cwd=self.source_dir, check=True)

    def hook_file(self):
        """What is saved, as the agent reads it."""
        hook = self.hook or DebuggerHookConfig()
        board = {"tensorboard_dir": str(Path(self.board.container_local_output_path).absolute())} if self.board else {}
        collections = [*hook.collections, *(one for rule in self.rules for one in rule.collections)]
        return {
            "LocalPath": str(self.run),
            "HookParameters": {**hook.hook_parameters, **board},
            "CollectionConfigurations": [
                {"CollectionName": one.name, "CollectionParameters": one.parameters} for one in collections
            ],
            "RuleConfigurations": [
                {"RuleConfigurationName": rule.name, "RuleParameters": rule.parameters} for rule in self.rules
            ],
        }

    def latest_job_debugger_artifacts_path(self):
        """Where the run is."""
        return str(self.run)

    def rule_job_summary(self):
        """What each rule says; the words are those of the service."""
        command = [sys.executable, "-m", "smd_agent", "check", str(self.run), "--json"]
        said = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
        summary = []
        for rule in self.rules:
            name = rule.parameters["rule_to_invoke"]
            causes = [one["cause"] for one in said["findings"] if one["rule"] == name]
            lacking = [one["reason"] for one in said["not_judged"] if one["rule"] == name]
            status = "IssuesFound" if causes else "Error" if lacking else "NoIssuesFound"
            details = (causes or lacking or [""])[0]
            summary.append(
                {"RuleConfigurationName": rule.name, "RuleEvaluationStatus": status, "StatusDetails": details}
            )
        return summary


if __name__ == "__main__":
    estimator = Estimator(
        entry_point="pytorch_digits.py",
        source_dir=Path(__file__).parent,
        hyperparameters={"epochs": 1, "lr": 1e18},
        debugger_hook_config=DebuggerHookConfig(
            hook_parameters={"train.save_interval": 10, "eval.save_interval": 5},
            collection_configs=[CollectionConfig("weights", {"reductions": "mean,std"}), CollectionConfig("losses")],
        ),
        rules=[
            Rule.sagemaker("LossNotDecreasing", rule_parameters={"num_steps": "20"}),
            Rule.sagemaker("ExplodingTensor", name="weights stay finite", rule_parameters={"tensor_regex": "weight$"}),
            Rule.sagemaker("VanishingGradient", collections_to_save=[CollectionConfig("gradients")]),
        ],
        base_job_name="digits",
    )
    estimator.fit()
    for each in estimator.rule_job_summary():
        print(f"{each['RuleConfigurationName']}: {each['RuleEvaluationStatus']}")
    trial = create_trial(estimator.latest_job_debugger_artifacts_path())
    print("steps", trial.steps())
