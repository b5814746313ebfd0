"""Training on a local Dask cluster: workers under their ranks, the model as without the agent."""

from __future__ import annotations

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")
pytest.importorskip("distributed")
pytest.importorskip("dask.array")

from harness.compare import Both, assert_untouched, run_both

SCRIPT = """
import hashlib
import dask.array as da, numpy as np, xgboost as xgb
from distributed import Client, LocalCluster, wait
import xgboost.dask as dxgb

def main():
    rng = np.random.default_rng(0)
    # Few different values, so that the workers' sketches of them do not depend on who came first.
    X = rng.integers(0, 8, size=(400, 4)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 7).astype(np.float32)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=PROCESSES)
    with cluster, Client(cluster) as client:
        data, label = da.from_array(X, chunks=(200, 4)), da.from_array(y, chunks=200)
        wait([data := data.persist(), label := label.persist()])
        matrix = dxgb.DaskDMatrix(client, data, label)
        found = dxgb.train(
            client,
            {"objective": "binary:logistic", "max_depth": 3, "tree_method": "hist", "nthread": 1},
            matrix,
            num_boost_round=5,
            evals=[(matrix, "train")],
        )
    print(hashlib.sha256(bytes(found["booster"].save_raw(raw_format="ubj"))).hexdigest())
    print("log", __import__("json").dumps(found["history"]))

if __name__ == "__main__":
    main()
"""


def config(workers):
    names = ("metrics", "labels", "predictions", "full_shap")
    return {
        "HookParameters": {"save_interval": 2, "include_workers": workers},
        "CollectionConfigurations": [{"CollectionName": name} for name in names],
    }


@pytest.mark.parametrize("workers", ["one", "all"])
def test_workers_save_under_their_ranks(workers, runner, tmp_path):
    script = runner.write(SCRIPT.replace("PROCESSES", "True"))
    ours = runner.by_launcher("--config", runner.hook_file("run", config(workers)), script)
    both = Both(runner.plain(script), ours, tmp_path / "run")
    assert_untouched(both, stderr=False)
    assert "nothing was captured" not in ours.stderr
    trial = both.trial
    assert trial.workers() == ["worker_0", "worker_1"][: 1 if workers == "one" else 2]
    assert trial.steps() == [0, 2, 4]
    log = json.loads(ours.stdout.split("log ")[1])["train"]["logloss"]
    rows = []
    for worker in trial.workers():
        assert trial.tensor("train-logloss").value(4, worker=worker).tolist() == [log[4]]
        part = trial.tensor("labels").value(4, worker=worker)
        assert trial.tensor("predictions").value(4, worker=worker).shape == part.shape
        assert trial.tensor("full_shap/matrix").value(4, worker=worker).shape == (len(part), 5)
        rows.append(len(part))
    assert sum(rows) == (400 if workers == "all" else 200)


def test_workers_that_are_threads_are_one_training(runner):
    both = run_both(runner, runner.write(SCRIPT.replace("PROCESSES", "False")), config=config("one"))
    assert_untouched(both, stderr=False)
    trial = both.trial
    assert trial.workers() == ["worker_0"]
    assert trial.steps() == [0, 2, 4]
    assert np.unique(trial.tensor("labels").value(0)).tolist() == [0.0, 1.0]
