"""An objective and a metric of one's own (pinball loss for quantiles), a callback that prints and lowers the rate."""

import sys
from functools import partial

import numpy as np
import xgboost as xgb


def smooth_pinball(alpha, predt, dtrain):
    error = predt - dtrain.get_label()
    grad = np.where(error > 0, 1 - alpha, -alpha)
    return grad, np.full_like(predt, 1.0)


def pinball(alpha, predt, dmatrix):
    error = dmatrix.get_label() - predt
    return "pinball", float(np.maximum(alpha * error, (alpha - 1) * error).mean())


class Report(xgb.callback.TrainingCallback):
    def __init__(self, every):
        self.every, self.lines = every, 0

    def after_iteration(self, model, epoch, evals_log):
        if epoch % self.every == 0:
            scores = {data: metric["pinball"][-1] for data, metric in evals_log.items()}
            print(f"round {epoch}:", " ".join(f"{data}={score:.6f}" for data, score in scores.items()))
            self.lines += 1
        return False

    def after_training(self, model):
        print("reported", self.lines, "times")
        return model


def main():
    rng = np.random.RandomState(8)
    x = rng.uniform(-3, 3, size=(200, 2))
    y = np.sin(x[:, 0]) + 0.3 * rng.normal(size=200) * (1 + x[:, 1] ** 2 / 4)
    dtrain, dtest = xgb.DMatrix(x[:150], y[:150]), xgb.DMatrix(x[150:], y[150:])
    for alpha in (0.1, 0.9):
        model = xgb.train(
            {"max_depth": 3, "base_score": 0.0, "nthread": 1, "disable_default_eval_metric": True},
            dtrain,
            10,
            evals=[(dtrain, "train"), (dtest, "test")],
            obj=partial(smooth_pinball, alpha),
            custom_metric=partial(pinball, alpha),
            callbacks=[Report(5), xgb.callback.LearningRateScheduler(lambda n: 0.5 * 0.9**n)],
            verbose_eval=False,
        )
        covered = float((dtest.get_label() <= model.predict(dtest)).mean())
        print(f"quantile {alpha}: {covered:.3f} of the test data are below")
        model.save_model(f"quantile_{alpha}.ubj")
    print(rng.rand())
    return 2


if __name__ == "__main__":
    sys.exit(main())
