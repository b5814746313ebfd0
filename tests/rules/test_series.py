"""Rules on numbers of every step: the loss between saved steps is judged, and said once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smd_agent.analysis.series import SeriesTable
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.series import ABSENT, Header
from smd_agent.rules.built_in import Place, Severity
from smd_agent.rules.registry import built_in_rules
from smd_agent.rules.series_view import LOSS, Course, SeriesView, last_row, longest_row
from smd_agent.rules.step_view import RunView, StepView
from smd_agent.storage.series_reader import Segment

RULES = built_in_rules()
GRADIENT, SKIPPED = "series/gradient_l2", "series/skipped"


def series(loss, mode=ModeKeys.TRAIN, **others):
    columns = {LOSS: loss, **{f"series/{name}": values for name, values in others.items()}}
    header = Header("worker_0", "steps", tuple(columns))
    rows = np.zeros(len(loss), header.row_type)
    # Steps of evaluation are between those of the training.
    rows["step"], rows["mode_step"], rows["mode"] = 2 * np.arange(len(loss)), np.arange(len(loss)), mode.value
    rows["values"] = np.array([*columns.values()], np.float64).T.reshape(len(loss), len(columns))
    return SeriesView("worker_0", SeriesTable([Segment(header, (rows,))]))


def judged(name, view, **parameters):
    rule = RULES[name](**parameters)
    rule.take_series(view)
    rule.end()
    return rule


def found(name, view):
    (one,) = judged(name, view).findings
    return one


def falling(count=200):
    return 1 / (1 + np.arange(count, dtype=float))


def test_a_loss_that_is_not_finite_between_saved_steps_is_found_at_its_step():
    loss = falling()
    loss[137:] = np.nan
    one = found("LossNotFinite", series(loss))
    assert (one.tensor, one.severity, one.first_step, one.last_step, one.steps) == (
        *(LOSS, Severity.PROBLEM, 137, 199),
        63,
    )
    assert (one.global_step, one.mode, one.worker) == (274, ModeKeys.TRAIN, "worker_0")
    assert one.evidence == {"last_finite_step": 136, "last_finite_loss": loss[136]}
    assert one.in_short("") == "loss not finite at step 137 (finite at 136)"


def test_one_that_is_finite_again_is_a_warning():
    loss = falling()
    loss[[20, 137]] = np.inf, np.nan
    one = found("LossNotFinite", series(loss))
    assert (one.severity, one.first_step, one.last_step, one.steps) == (Severity.WARNING, 20, 137, 2)


def test_what_a_scaler_passes_over_is_no_finding_unless_it_stays_so():
    loss, skipped = falling(), np.zeros(200)
    loss[:3], skipped[:3] = np.inf, 1
    assert judged("LossNotFinite", series(loss, skipped=skipped)).findings == []
    loss[150:], skipped[150:] = np.nan, 1
    assert found("LossNotFinite", series(loss, skipped=skipped)).severity is Severity.PROBLEM


@pytest.mark.parametrize(
    "change, gradient, words",
    [
        ({}, None, "The loss was as before one step earlier"),
        ({}, {}, "The loss was as before one step earlier"),
        ({135: 3.0, 136: 500.0}, None, "The loss had grown many times over"),
        ({}, {136: math.nan}, "its gradients were not"),
        ({}, {136: 1e6}, "The gradients had grown many times over"),
    ],
)
def test_the_cause_is_told_by_the_steps_before(change, gradient, words):
    loss, norms = falling(), np.ones(200)
    for step, value in change.items():
        loss[step] = value
    loss[137:], norms[137:] = np.nan, np.nan
    for step, value in (gradient or {}).items():
        norms[step] = value
    view = series(loss) if gradient is None else series(loss, gradient_l2=norms)
    assert words in found("LossNotFinite", view).cause


def test_of_the_first_steps_the_cause_is_open():
    assert "Too few losses" in found("LossNotFinite", series(np.array([1.0, np.nan]))).cause
    one = found("LossNotFinite", series(np.array([np.nan, np.nan])))
    assert (one.first_step, one.evidence) == (0, {})


def test_a_loss_that_explodes_between_saved_steps_is_found():
    loss = falling()
    loss[130:] = -1e9
    one = found("LossExploding", series(loss))
    assert (one.first_step, one.steps, one.severity) == (130, 70, Severity.PROBLEM)
    assert one.evidence == {"first": 1.0, "loss": -1e9}
    loss[131:] = 1.0
    assert found("LossExploding", series(loss)).severity is Severity.WARNING
    assert judged("LossExploding", series(falling())).findings == []


@pytest.mark.parametrize("value", [0.6931, 0.0])
def test_a_loss_that_never_moves_is_found(value):
    loss = np.full(40, value)
    one = found("UnchangedTensor", series(loss))
    assert (one.severity, one.last_step, one.evidence["first_element"]) == (Severity.WARNING, 39, value)
    assert judged("UnchangedTensor", series(loss[:9])).findings == []
    loss[33] += 1e-7
    assert judged("UnchangedTensor", series(loss)).findings == []


def test_a_loss_that_rises_is_found_and_judged_by_few_steps():
    rising = judged("LossNotDecreasing", series(1 + np.arange(200) / 50))
    assert [one.tensor for one in rising.findings] == [LOSS]
    assert rising.has_judged
    assert not judged("LossNotDecreasing", series(1 + np.arange(9) / 50)).has_judged
    assert judged("LossNotDecreasing", series(falling())).findings == []


@pytest.mark.parametrize("saved, tensors", [(137, ["loss"]), (150, [LOSS])])
def test_a_loss_that_was_saved_too_is_told_once(saved, tensors):
    loss = falling()
    loss[137:] = np.nan
    rule = judged("LossNotFinite", series(loss))
    rule.found(Place(saved, 2 * saved, ModeKeys.TRAIN, "worker_0"), "loss")
    assert [one.tensor for one in rule.findings] == tensors


def test_what_is_less_bad_stands_for_nothing():
    loss = falling()
    loss[[20, 21]] = np.nan
    rule = judged("LossNotFinite", series(loss))
    rule.found(Place(150, 300, ModeKeys.TRAIN, "worker_0"), "other", severity=Severity.PROBLEM)
    rule.found(Place(10, 20, ModeKeys.EVAL, "worker_0"), "loss")
    assert sorted(one.tensor for one in rule.findings) == ["loss", "other", LOSS]


def test_a_series_that_has_grown_is_judged_anew():
    rule, loss = RULES["LossNotFinite"](), falling()
    loss[137:] = np.nan
    for steps, last in ((100, None), (140, 139), (200, 199)):
        rule.take_series(series(loss[:steps]))
        assert [one.last_step for one in rule.findings] == ([] if last is None else [last])
    loss[150:] = 1.0
    rule.take_series(series(loss))
    assert [(one.last_step, one.severity) for one in rule.findings] == [(149, Severity.WARNING)]


NUMBERS = st.floats(allow_nan=True, allow_infinity=True) | st.sampled_from([0.0, 1.0, ABSENT])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([0.0, 1.0, ABSENT]), NUMBERS), max_size=40), st.booleans())
def test_any_numbers_are_judged(rows, is_global):
    loss, norms, skipped, rate = np.array(rows, np.float64).reshape(-1, 4).T
    mode = ModeKeys.GLOBAL if is_global else ModeKeys.TRAIN
    view = series(loss, mode, gradient_l2=norms, skipped=skipped, learning_rate=rate)
    for name in RULES:
        judged(name, view)
    courses = [*view.courses(LOSS)]
    for course in courses:
        bad = ~np.isfinite(course.values)
        findings = judged("LossNotFinite", view).findings
        if bad[-1]:
            assert (findings[0].severity, findings[0].first_step) == (Severity.PROBLEM, course.steps[bad.argmax()])
        elif not (bad & ~course.skipped).any():
            assert findings == []


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.integers(0, 25))
def test_a_part_of_a_course_is_one(values, row):
    steps = np.arange(len(values))
    course = Course(LOSS, ModeKeys.TRAIN, "worker_0", steps, steps, np.array(values), np.zeros(len(values), bool))
    assert len(course.before(row)) == min(row, len(values))
    assert np.isfinite(course.finite.values).all()


def test_gradients_that_are_not_finite_to_the_end_are_found():
    norms, skipped = np.ones(200), np.zeros(200)
    norms[150:], skipped[160] = np.inf, 1
    view = series(falling(), gradient_l2=norms, skipped=skipped)
    one = found("ExplodingTensor", view)
    assert (one.tensor, one.first_step, one.last_step, one.steps) == (GRADIENT, 150, 199, 49)
    skipped[150:] = 1
    assert judged("ExplodingTensor", series(falling(), gradient_l2=norms, skipped=skipped)).findings == []
    loss = falling()
    loss[151:] = np.nan
    assert judged("ExplodingTensor", series(loss, gradient_l2=norms)).findings == []


def test_gradients_that_are_always_0_are_found():
    norms = np.where(np.arange(200) % 7, ABSENT, 0.0)
    one = found("NoGradient", series(falling(), gradient_l2=norms))
    assert (one.tensor, one.severity, one.steps) == (GRADIENT, Severity.PROBLEM, 29)
    norms[7] = 1e-9
    assert judged("NoGradient", series(falling(), gradient_l2=norms)).findings == []


@pytest.mark.parametrize(
    "name, rates, steps",
    [
        ("LearningRateZero", np.where(np.arange(200) < 60, 0.1, 0.0), (60, 199, 140)),
        ("LearningRateZero", np.where(np.arange(200) < 190, 0.1, 0.0), None),
        ("LearningRateVanished", np.where(np.arange(200) < 60, 0.1, 1e-6), (60, 199, 140)),
        ("LearningRateVanished", np.where(np.arange(200) < 190, 0.1, 1e-6), None),
    ],
)
def test_the_only_learning_rate_is_judged_by_all_steps(written, name, rates, steps):
    run = written(optimizer="optimizer/")
    rule = RULES[name]()
    rule.take_series(series(falling(), learning_rate=rates))
    for _ in range(3):
        run.step(**{"optimizer/SGD/lr": [0.1]})
    trial = run.ended()
    view = RunView(trial.trial() if hasattr(trial, "trial") else trial)
    for step in view.trial.step_table.steps(ModeKeys.GLOBAL):
        for file in view.trial.step_table.files(step).values():
            rule.take(StepView(view, file))
    rule.end()
    assert [(one.first_step, one.last_step, one.steps) for one in rule.findings] == ([] if steps is None else [steps])
    assert [one.tensor for one in rule.findings] == ["optimizer/SGD/lr"] * (steps is not None)


@pytest.mark.parametrize(
    "names, finds",
    [
        (("Loss_output_0",), True),
        (("Loss_output_0", "Loss_output_1"), True),
        (("First_output_0", "Other_output_0"), False),
    ],
)
def test_a_loss_that_rises_is_judged_by_all_steps_where_it_is_the_only_one(written, names, finds):
    run = written(losses="_output_")
    for step in range(12):
        run.step(**{name: [1.0 + (step * place) % 3] for place, name in enumerate(names)})
    trial = run.ended()
    view = RunView(trial.trial() if hasattr(trial, "trial") else trial)
    rule = judged("LossNotDecreasing", series(1 + np.arange(200) / 50))
    # As the verdict at the end of a program has it, before it has looked at a saved step.
    assert [one.tensor for one in rule.findings] == [LOSS]
    for step in view.trial.step_table.steps(ModeKeys.GLOBAL):
        for file in view.trial.step_table.files(step).values():
            rule.take(StepView(view, file))
    rule.end()
    assert [one.tensor for one in rule.findings] == [LOSS] * finds


@given(st.lists(st.booleans(), max_size=30))
def test_rows_of_steps(holds):
    rows = "".join("x" if one else " " for one in holds)
    begin, count = longest_row(np.array(holds, bool))
    assert count == max(map(len, rows.split()), default=0)
    assert rows[begin : begin + count] == "x" * count
    assert len(rows) - last_row(np.array(holds, bool)) == len(rows) - len(rows.rstrip("x"))
