"""Exceptions, under the name of the module that programs for smdebug import them from; they are made in ``errors``."""

from __future__ import annotations

from smd_agent.errors import (
    IndexReaderException,
    InsufficientInformationForRuleInvocation,
    InvalidCollectionConfiguration,
    InvalidWorker,
    MissingCollectionFiles,
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    ShapeUnavailableForStep,
    SMDebugCustomerError,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)

__all__ = [
    "IndexReaderException",
    "InsufficientInformationForRuleInvocation",
    "InvalidCollectionConfiguration",
    "InvalidWorker",
    "MissingCollectionFiles",
    "NoMoreData",
    "NoMoreProfilerData",
    "RuleEvaluationConditionMet",
    "SMDebugCustomerError",
    "SMDebugError",
    "SMDebugNotImplementedError",
    "SMDebugRuntimeError",
    "SMDebugTypeError",
    "SMDebugValueError",
    "ShapeUnavailableForStep",
    "StepNotYetAvailable",
    "StepUnavailable",
    "TensorUnavailable",
    "TensorUnavailableForStep",
]
