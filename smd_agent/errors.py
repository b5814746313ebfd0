"""The tree of exceptions a user can meet; each class makes its own sentence from what it is given.

::

    SMDebugError
    ├── SMDebugCustomerError
    ├── SMDebugTypeError (TypeError)
    ├── SMDebugNotImplementedError (NotImplementedError)
    ├── SMDebugValueError (ValueError)
    │   └── ConfigError                               a hook file or setting that cannot be followed
    ├── SMDebugRuntimeError (RuntimeError)
    │   └── DamagedRecord                             a saved value whose bytes changed
    ├── InvalidCollectionConfiguration                a collection that can match nothing
    ├── StepNotYetAvailable, StepUnavailable
    ├── TensorUnavailable, TensorUnavailableForStep, ReductionUnavailableForStep, ShapeUnavailableForStep
    ├── InvalidWorker, MissingCollectionFiles, IndexReaderException
    ├── NoMoreData, NoMoreProfilerData
    └── RuleEvaluationConditionMet, InsufficientInformationForRuleInvocation

Names, attributes and the sentences of the older classes are those of the old system: programs match on them.
Every class hands all its arguments to `Exception`, so that errors can be pickled from worker to parent.
"""

from __future__ import annotations

from smd_agent.printable import printable, shortened


class SMDebugError(Exception):
    """Root of everything this package raises on purpose."""


class SMDebugCustomerError(SMDebugError):
    """The program using this package did something wrong."""


class SMDebugTypeError(SMDebugError, TypeError):
    """A value has the wrong type."""


class SMDebugRuntimeError(SMDebugError, RuntimeError):
    """Something cannot be done in the present state of the run or its files."""


class SMDebugNotImplementedError(SMDebugError, NotImplementedError):
    """The request is understood and not supported."""


class SMDebugValueError(SMDebugError, ValueError):
    """A value is outside what is allowed."""


class ConfigError(SMDebugValueError):
    """A hook configuration cannot be followed; one sentence names file, key, value and what is allowed."""


class DamagedRecord(SMDebugRuntimeError):
    """The bytes of one saved value are not those that were written."""

    def __init__(self, file: str, tensor: str, step: int, detail: str) -> None:
        super().__init__(file, tensor, step, detail)
        self.file = file
        self.tensor = tensor
        self.step = step
        self.detail = detail

    def __str__(self) -> str:
        tensor, file = shortened(self.tensor), printable(self.file)
        return f"Tensor {tensor} at step {self.step} is damaged in {file}: {self.detail}"


class InvalidCollectionConfiguration(SMDebugError):
    """A collection has neither a regex nor tensor names, so nothing can ever belong to it."""

    def __init__(self, c_name: str) -> None:
        super().__init__(c_name)
        self.c_name = c_name

    def __str__(self) -> str:
        # The run of blanks is part of the old sentence.
        start = f"Collection {self.c_name} has not been configured."
        return start + " " * 9 + "Please fill in tensor_name or include_regex"


class StepNotYetAvailable(SMDebugError):
    """A step has not been saved so far and may still come."""

    def __init__(self, step: int, mode: object) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {_mode(self.mode)} not yet available"


class StepUnavailable(SMDebugError):
    """A step was not saved and will not come."""

    def __init__(self, step: int, mode: object) -> None:
        super().__init__(step, mode)
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return f"Step {self.step} of mode {_mode(self.mode)} is not available as it was not saved"


class TensorUnavailable(SMDebugError):
    """No tensor of this name was saved."""

    def __init__(self, tname: str) -> None:
        super().__init__(tname)
        self.tname = tname

    def __str__(self) -> str:
        return f"Tensor {self.tname} was not saved."


class TensorUnavailableForStep(SMDebugError):
    """A tensor has no raw value at a step; `has_reductions` tells whether it has reductions there."""

    def __init__(self, tname: str, step: int, mode: object = None, has_reductions: bool = False) -> None:
        super().__init__(tname, step, mode, has_reductions)
        self.tname = tname
        self.step = step
        self.mode = mode
        self.has_reductions = has_reductions

    def __str__(self) -> str:
        missing = _not_saved("Value", self.tname, self.step, self.mode)
        if self.has_reductions:
            # No blank between the two sentences: so it was, and programs compare the text.
            missing += "This tensor has reductions saved for this step. "
            missing += "You might want to query for the reductions."
        return missing


class ReductionUnavailableForStep(TensorUnavailableForStep):
    """A reduction that cannot be computed from a tensor's value was not saved at a step."""

    def __init__(self, tname: str, step: int, mode: object, has_reductions: bool, reduction_name: str) -> None:
        super().__init__(tname, step, mode, has_reductions)
        self.args = tname, step, mode, has_reductions, reduction_name
        self.reduction_name = reduction_name

    def __str__(self) -> str:
        return _not_saved(self.reduction_name, self.tname, self.step, self.mode)


class ShapeUnavailableForStep(SMDebugError):
    """A tensor has no shape at a step."""

    def __init__(self, tname: str, step: int, mode: object = None) -> None:
        super().__init__(tname, step, mode)
        self.tname = tname
        self.step = step
        self.mode = mode

    def __str__(self) -> str:
        return _not_saved("Shape", self.tname, self.step, self.mode)


class InvalidWorker(SMDebugError):
    """No worker of this name wrote to the run."""

    def __init__(self, worker: str) -> None:
        super().__init__(worker)
        self.worker = worker

    def __str__(self) -> str:
        return f"Invalid Worker: {self.worker}"


class NoMoreData(SMDebugError):
    """The run has ended before the step that was asked for."""

    def __init__(self, step: int, mode: object, last_step: int) -> None:
        super().__init__(step, mode, last_step)
        self.step = step
        self.mode = mode
        self.last_step = last_step
        self.msg = (
            f"Looking for step {step} of mode {_mode(mode)} and reached end of training. "
            f"Max step available is {last_step}"
        )

    def __str__(self) -> str:
        return self.msg


class NoMoreProfilerData(SMDebugError):
    """The run has ended before the time that was asked for; `timestamp` is in microseconds."""

    def __init__(self, timestamp: int) -> None:
        super().__init__(timestamp)
        self.timestamp = timestamp
        self.msg = f"Looking for timestamp {timestamp} and reached end of training."

    def __str__(self) -> str:
        return self.msg


class MissingCollectionFiles(SMDebugError):
    """The run has ended and a worker's collections file never came."""

    def __str__(self) -> str:
        return "Training job has ended. All the collection files could not be loaded"


class IndexReaderException(SMDebugError):
    """An index file cannot be understood."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message


class RuleEvaluationConditionMet(SMDebugError):
    """A rule's condition holds at a step; `end_of_rule` asks the caller to stop evaluating."""

    def __init__(self, rule_name: str, step: int, end_of_rule: bool = False) -> None:
        super().__init__(rule_name, step, end_of_rule)
        self.rule_name = rule_name
        self.step = step
        self.end_of_rule = end_of_rule

    def __str__(self) -> str:
        where = f"the rule {self.rule_name} at step {self.step}"
        return f"Evaluation of {where} resulted in the condition being met"


class InsufficientInformationForRuleInvocation(SMDebugError):
    """A rule cannot be evaluated with what was saved."""

    def __init__(self, rule_name: str, message: str) -> None:
        super().__init__(rule_name, message)
        self.rule_name = rule_name
        self.message = message

    def __str__(self) -> str:
        return f"Insufficient information to invoke rule {self.rule_name}: {self.message}"


def _mode(mode: object) -> object:
    return "GLOBAL" if mode is None else getattr(mode, "name", mode)


def _not_saved(what: str, tname: str, step: int, mode: object) -> str:
    when = f"step {step} with mode {_mode(mode)}"
    return f"{what} for tensor {tname} is not available for {when} as it was not saved."
