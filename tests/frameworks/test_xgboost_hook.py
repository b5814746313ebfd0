"""The XGBoost hook in the hands of those who edit their script: how it is made, what it is given, what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

from harness.sagemaker_metrics import metric_values

import smd_agent.xgboost as smd
from smd_agent import session
from smd_agent.analysis.trial import create_trial
from smd_agent.cli import main
from smd_agent.config import env
from smd_agent.errors import ConfigError, SMDebugError, SMDebugRuntimeError
from smd_agent.framework.boosting.library import Training

BINARY = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}


def rows(count=80, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, 3)).astype(np.float32)
    return values, (values[:, 0] > 0).astype(np.float32)


def matrix(count=80, seed=0):
    values, label = rows(count, seed)
    return xgboost.DMatrix(values, label=label)


def train(hook, rounds=4, **how):
    data = matrix()
    return xgboost.train(BINARY, data, rounds, evals=[(data, "train")], verbose_eval=False, callbacks=[hook], **how)


def test_the_face_has_the_names_of_the_others():
    import smd_agent.xgboost as face

    assert all(hasattr(face, name) for name in face.__all__)
    assert {"Hook", "get_hook", "create_trial", "modes", "SaveConfig", "CollectionKeys"} <= set(face.__all__)
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = face.nothing_such


def test_a_hook_is_made_from_a_file_every_ten_rounds(tmp_path, out):
    file = tmp_path / "hook.json"
    listed = [{"CollectionName": "feature_importance"}]
    file.write_text(json.dumps({"LocalPath": out, "CollectionConfigurations": listed}))
    hook = smd.Hook.create_from_json_file(str(file))
    train(hook, 21)
    hook.close()
    trial = create_trial(out)
    for name in ("train-logloss", "feature_importance/gain/f0"):
        assert trial.tensor(name).steps() == [0, 10, 20]


def test_get_hook_makes_one_and_returns_it_again(tmp_path, out):
    file = tmp_path / "hook.json"
    file.write_text(json.dumps({"LocalPath": out}))
    hook = smd.get_hook(str(file))
    assert isinstance(hook, smd.Hook)
    assert smd.get_hook() is hook
    smd.del_hook()
    assert session.current() is None
    assert smd.get_hook(str(tmp_path / "missing.json")) is None


def test_a_wrong_file_is_one_sentence(tmp_path):
    file = tmp_path / "hook.json"
    file.write_text('{"LocalPath": "run", "HookParameters": {"save_interval": 0}}')
    with pytest.raises(ConfigError, match="save_interval"):
        smd.Hook.create_from_json_file(str(file))


def test_reductions_are_said_to_be_without_effect(tmp_path, out, capsys):
    file = tmp_path / "hook.json"
    listed = [{"CollectionName": "labels", "CollectionParameters": {"reductions": "mean"}}]
    parameters = {"reductions": "max", "save_interval": 1}
    file.write_text(json.dumps({"LocalPath": out, "HookParameters": parameters, "CollectionConfigurations": listed}))
    hook = smd.Hook.create_from_json_file(str(file))
    assert capsys.readouterr().err.count("reductions are not made of what XGBoost gives") == 1
    hook.validation_data = matrix()
    train(hook)
    hook.close()
    np.testing.assert_array_equal(create_trial(out).tensor("labels").value(3), matrix().get_label())


@pytest.mark.parametrize("content_type", ["csv", "text/csv", "libsvm", "text/libsvm", "text/x-libsvm", None])
@pytest.mark.filterwarnings("ignore:.*(text file|format|DMatrix).*:UserWarning")
def test_data_may_be_a_local_file(content_type, tmp_path, out):
    values, label = rows(20, seed=3)
    path = tmp_path / "rows.txt"
    if content_type in ("csv", "text/csv"):
        np.savetxt(path, np.column_stack([label, values]), delimiter=",", fmt="%.9g")
    else:
        lines = [
            f"{int(y)} " + " ".join(f"{i}:{v:.9g}" for i, v in enumerate(row))
            for y, row in zip(label, values, strict=True)
        ]
        path.write_text("\n".join(lines) + "\n")
    hook = smd.Hook(
        out,
        include_collections=["labels", "predictions", "full_shap"],
        train_data=(str(path), content_type),
        validation_data=(str(path), content_type),
    )
    model = train(hook)
    hook.close()
    trial = create_trial(out)
    np.testing.assert_array_equal(trial.tensor("labels").value(0), label)
    expected = model[:1].predict(xgboost.DMatrix(values))
    np.testing.assert_allclose(trial.tensor("predictions").value(0), expected, rtol=1e-6)
    assert trial.tensor("full_shap/matrix").value(0).shape == (20, 4)


@pytest.mark.parametrize(
    "data, complaint",
    [
        ("rows.csv", "a str is no data for the hook: allowed are an xgboost.DMatrix and a tuple"),
        ((1, 2), "a tuple is no data for the hook"),
        (("s3://bucket/rows.csv", "csv"), "s3://bucket/rows.csv is no local file"),
        (("{file}", "parquet"), "'parquet' is no content type of .*, allowed are csv, text/csv, libsvm"),
        (("{file}", "csv"), "cannot be read as csv: there is no column beside the label"),
    ],
)
def test_data_that_cannot_be_used_is_refused(data, complaint, tmp_path, out):
    (tmp_path / "file").write_text("only words\n")
    if isinstance(data, tuple):
        data = tuple(part.replace("{file}", str(tmp_path / "file")) if isinstance(part, str) else part for part in data)
    with pytest.raises(SMDebugError, match=complaint):
        smd.Hook(out, train_data=data)


def test_missing_ingredients_are_named_once_and_the_rest_is_saved(out, capsys):
    names = ["hyperparameters", "predictions", "labels", "average_shap", "full_shap", "trees"]
    hook = smd.Hook(out, include_collections=names, save_config=smd.SaveConfig(save_interval=1))
    train(hook)
    hook.close()
    told = capsys.readouterr().err
    for collections, reason in {
        "hyperparameters": "the hook was made without hyperparameters",
        "predictions, labels": "there is no evaluation data",
        "average_shap, full_shap": "the hook was made without train_data",
    }.items():
        assert told.count(f"smd_agent: {collections} cannot be saved: {reason}") == 1
    assert told.count("cannot be saved") == 3
    assert "came up in a step" not in told
    trial = create_trial(out)
    assert {name.split("/")[0] for name in trial.tensor_names()} == {"train-logloss", "trees"}


def test_the_run_says_what_it_could_not_have_had_whoever_asks(out, capsys):
    hook = smd.Hook(out, include_collections=["losses"], save_config=smd.SaveConfig(save_interval=1))
    xgboost.train({"booster": "gblinear"}, xgboost.DMatrix(np.eye(4), label=np.ones(4)), 2, callbacks=[hook])
    hook.close()
    reasons = create_trial(out).collection_manager.cannot_save
    assert reasons["trees"] == "the booster gblinear has no trees, allowed are gbtree and dart"
    assert reasons["labels"].startswith("there is no evaluation data")
    assert "trees cannot be saved" not in capsys.readouterr().err


def test_data_of_other_features_costs_only_what_needs_it(out, capsys):
    other = xgboost.DMatrix(np.zeros((4, 9), np.float32), label=np.zeros(4))
    hook = smd.Hook(
        out, include_collections=["labels", "predictions", "full_shap"], train_data=other, validation_data=other
    )
    train(hook)
    hook.close()
    (told,) = [line for line in capsys.readouterr().err.splitlines() if "cannot be saved" in line]
    assert told.startswith("smd_agent: predictions, full_shap cannot be saved: ")
    assert "[bt]" not in told
    assert "Stack" not in told
    assert set(create_trial(out).tensor_names()) == {"train-logloss", "labels"}


def test_modes_are_the_users(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2))
    hook.set_mode(smd.modes.TRAIN)
    train(hook)
    hook.close()
    trial = create_trial(out)
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2]


def test_scalars_belong_to_the_round_they_are_saved_in(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2))

    class Own(xgboost.callback.TrainingCallback):
        def after_iteration(self, model, epoch, evals_log):
            hook.save_scalar("half", epoch / 2)
            return False

    data = matrix()
    xgboost.train(BINARY, data, 4, evals=[(data, "d")], verbose_eval=False, callbacks=[hook, Own()])
    hook.save_scalar("afterwards", 9)
    hook.close()
    trial = create_trial(out)
    saved = {step: float(trial.tensor("scalar/half").value(step)[0]) for step in trial.tensor("scalar/half").steps()}
    assert saved == {0: 0.0, 1: 0.5, 2: 1.0, 3: 1.5}
    assert trial.tensor("d-logloss").steps() == [0, 2]
    # The last round is on disk by then, and its file is replaced.
    assert trial.tensor("scalar/afterwards").steps() == [3]


def test_what_is_given_after_each_of_several_trainings_goes_into_its_last_round(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=3))
    data = matrix()
    for number in range(3):
        xgboost.train(BINARY, data, 5, evals=[(data, "d")], verbose_eval=False, callbacks=[hook])
        hook.save_scalar("score", number)
    hook.close()
    trial = create_trial(out)
    assert {step: trial.tensor("scalar/score").value(step).item() for step in trial.tensor("scalar/score").steps()} == {
        4: 0,
        9: 1,
        14: 2,
    }
    assert trial.tensor("d-logloss").steps() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize("call", ["train", "cv"])
def test_a_hook_given_twice_counts_once(call, out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["hyperparameters"])
    for _ in range(2):
        # As the agent does, which sees the call.
        hook.expect(Training(hyperparameters={"max_depth": 2}))
        how = {"evals": [(matrix(), "d")], "verbose_eval": False} if call == "train" else {"nfold": 2}
        getattr(xgboost, call)(BINARY, matrix(), 5, callbacks=[hook, hook], **how)
    hook.close()
    trial = create_trial(out)
    assert hook.step == 9
    assert trial.steps() == trial.tensor("hyperparameters/max_depth").steps() == [0, 2, 4, 6, 8]


def test_a_file_that_has_made_the_hook_gives_it_again_until_it_is_closed(tmp_path, out):
    file = tmp_path / "hook.json"
    file.write_text(json.dumps({"LocalPath": out, "HookParameters": {"save_interval": 1, "reductions": "max"}}))
    hook = smd.Hook.create_from_json_file(str(file))
    assert smd.Hook.create_from_json_file(str(file)) is hook
    train(hook)
    assert smd.Hook.create_from_json_file(str(file)) is hook
    hook.close()
    another = smd.Hook.create_from_json_file(str(file))
    assert another is not hook
    file.write_text(json.dumps({"LocalPath": out, "HookParameters": {"save_interval": 2}}))
    assert smd.Hook.create_from_json_file(str(file)) is not another
    own = smd.Hook(str(tmp_path / "own"))
    assert smd.Hook.create_from_json_file(str(file)) is not own


def test_tensors_around_the_training_are_not_lost(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2))
    hook.save_tensor("before", [1.0, 2.0])
    train(hook)
    hook.save_tensor("after", [3.0, 4.0])
    hook.close()
    trial = create_trial(out)
    assert trial.tensor("before").steps() == [0]
    assert len(trial.tensor("after").steps()) == 1


def test_a_finished_run_is_not_written_over(out):
    hook = smd.Hook(out)
    train(hook)
    hook.close()
    with pytest.raises(SMDebugRuntimeError, match="finished run"):
        smd.Hook(out)


def test_a_dry_run_saves_no_step(out):
    hook = smd.Hook(out, dry_run=True, save_all=True, train_data=matrix(), validation_data=matrix())
    train(hook)
    hook.close()
    assert create_trial(out).steps() == []


def test_a_failure_of_ours_ends_the_capture_and_not_the_training(out, monkeypatch, capsys):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1))
    monkeypatch.setattr(hook.recorder, "open_step", lambda: 1 / 0)
    model = train(hook)
    assert model.num_boosted_rounds() == 4
    assert capsys.readouterr().err.count("saving a round failed (ZeroDivisionError") == 1


def test_the_hook_counts_rounds_also_where_nothing_is_saved(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(start_step=100))
    train(hook)
    assert (hook.step, hook.mode_steps[smd.modes.GLOBAL]) == (3, 3)
    assert not hook.writing


def test_show_prints_text_where_the_summaries_stand(out, capsys):
    words = [f"word{i}" for i in range(20)]
    given = {"objective": "binary:logistic", "words": words}
    hook = smd.Hook(out, include_collections=["hyperparameters"], hyperparameters=given)
    train(hook)
    hook.close()
    capsys.readouterr()
    assert main(["show", out, "hyperparameters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = {"objective": "hyperparameters/objective  1 str", "words": "hyperparameters/words  20 str"}
    rows = {name: lines[lines.index(head) + 1].split(maxsplit=2) for name, head in heads.items()}
    assert rows["objective"] == ["GLOBAL", "0", "binary:logistic"]
    assert rows["words"][2] == ", ".join(words)[:56] + "..."
    assert max(map(len, lines)) <= 80


def test_evaluations_are_metrics_of_sagemaker(out, tmp_path, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["predictions", "losses"])
    train(hook)
    hook.close()
    logloss = create_trial(out).tensor("train-logloss")
    assert metric_values(tmp_path / "metrics") == {
        "train-logloss_GLOBAL": {step: logloss.value(step).item() for step in (0, 2)}
    }


def test_each_host_of_a_sagemaker_job_is_a_worker(out, tmp_path, monkeypatch):
    # They train together by XGBoost's communicator, or each by itself, whatever has started them.
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "7")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "9")
    for host in ("algo-1", "algo-2"):
        file = tmp_path / f"{host}.json"
        monkeypatch.setattr(env, "DEFAULT_RESOURCE_CONFIG_PATH", str(file))
        file.write_text(json.dumps({"current_host": host, "hosts": ["algo-1", "algo-2"]}))
        hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_workers="all")
        train(hook)
        hook.finish(end_marker=host == "algo-2")
    trial = create_trial(out)
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.steps() == [0, 2]
