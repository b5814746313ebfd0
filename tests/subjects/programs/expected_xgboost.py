"""What the authors of the XGBoost programs expect; see ``harness.programs.Expected``."""

import xgboost
from harness.programs import Expected, Printed

from smd_agent.core.modes import ModeKeys

GLOBAL = ModeKeys.GLOBAL

EXPECTED = {
    # Four trainings of four rounds each.
    "continued_training": Expected(
        rounds=4 * 4,
        losses=("held_out-error",),
        printed=(Printed("held_out-error", r"error ([\d.]+)", first=3, every=4, mode=GLOBAL),),
        files=("log.pkl", "online.ubj"),
        said=("another training begins: its rounds are numbered from 4 on",),
    ),
    # The rounds of the cross-validation, then those of the model.
    "cross_validation": Expected(
        rounds=9 + 9,
        losses=("all-rmse", "test-mae-mean", "test-rmse-mean", "train-mae-mean", "train-rmse-mean"),
        printed=(
            Printed("test-rmse-mean", r"^ *\d+ ([\d.]+) ±", mode=GLOBAL),
            Printed("all-rmse", r"all-rmse:([\d.]+)", first=9, every=4, mode=GLOBAL),
        ),
        files=("regressor.json", "regressor.txt", "scores.csv"),
        said=(
            "predictions, labels, feature_importance, trees, average_shap, full_shap cannot be saved: xgboost.cv trains"
            " a model for each fold",
            "another training begins: its rounds are numbered from 9 on",
        ),
    ),
    "custom_objective": Expected(
        rounds=2 * 10,
        printed=(
            Printed("train-pinball", r"train=([\d.]+)", every=5, mode=GLOBAL),
            Printed("test-pinball", r"test=([\d.]+)", every=5, mode=GLOBAL),
        ),
        files=("quantile_0.1.ubj", "quantile_0.9.ubj"),
        code=2,
        said=(
            "losses cannot be saved: of pinball it is not known",
            "another training begins: its rounds are numbered from 10 on",
        ),
    ),
    # Four settings, two folds each, and the best once more; it prints scores of its own.
    "grid_search": Expected(
        rounds=(4 * 2 + 1) * 5,
        files=("best.joblib",),
        said=(
            "metrics, losses, predictions, labels cannot be saved: there is no evaluation data",
            "another training begins: its rounds are numbered from 5 on",
        ),
    ),
    "train_with_evals": Expected(
        rounds=12,
        losses=("train-logloss", "validation-logloss"),
        printed=(Printed("validation-logloss", r"validation-logloss:([\d.]+)", mode=GLOBAL),),
        files=("metrics.json", "model.json"),
    ),
    # What shall be large is no loss.
    "ranking": Expected(
        rounds=10,
        files=("ranker.json", "scores.txt"),
        said=("losses cannot be saved: of ndcg@5, map it is not known that less is better",),
    ),
    # Four settings, two folds each, the best once more, and the last training, which has data to evaluate on.
    "search_then_fit": Expected(
        rounds=(4 * 2 + 1 + 1) * 6,
        losses=("validation_0-logloss", "validation_1-logloss"),
        printed=(Printed("validation_1-logloss", r"logloss ([\d.]+)", first=54, mode=GLOBAL),),
        files=("final.json",),
        said=(
            "metrics, losses, predictions, labels cannot be saved",
            # XGBoost 1 has no contributions of the matrix that its estimators make.
            *(["average_shap, full_shap cannot be saved: Not implemented"] if xgboost.__version__ < "2" else []),
            "another training begins: its rounds are numbered from 6 on",
        ),
    ),
    # Nothing says of its metrics that less is better, and of one, training stops when it is large.
    "own_metrics": Expected(
        rounds=14,
        printed=(
            Printed("valid-mean_abs", r"mean_abs ([\d.]+)", mode=GLOBAL),
            Printed("valid-r2", r"r2 ([\d.]+)", mode=GLOBAL),
        ),
        files=("log_cosh.ubj", "results.json"),
        said=("of mean_abs, r2 it is not known that less is better",),
    ),
}
