"""A booster trained in chunks of data as they arrive: each continues the model of the one before, from its file."""

import itertools
import os
import pickle

import numpy as np
import xgboost as xgb


class Stream:
    def __init__(self, chunk_size, seed):
        self.chunk_size, self.rng = chunk_size, np.random.default_rng(seed)

    def __iter__(self):
        while True:
            x = self.rng.normal(size=(self.chunk_size, 4)).astype("float32")
            yield x, (x[:, 0] > x[:, 1] * x[:, 2]).astype("float32")


class OnlineBooster:
    path = "online.ubj"
    params = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.3, "eval_metric": "error", "nthread": 1}

    def __init__(self, rounds):
        self.rounds, self.log = rounds, []

    def update(self, chunk, held_out):
        previous = self.path if os.path.exists(self.path) else None
        result = {}
        booster = xgb.train(
            self.params,
            chunk,
            num_boost_round=self.rounds,
            evals=[(held_out, "held_out")],
            evals_result=result,
            verbose_eval=False,
            xgb_model=previous,
        )
        booster.save_model(self.path)
        self.log.append(result["held_out"]["error"])
        return booster


def main():
    stream = iter(Stream(80, 31))
    held_out = xgb.DMatrix(*next(stream))
    online = OnlineBooster(rounds=4)
    for number, (x, y) in enumerate(itertools.islice(stream, 4)):
        booster = online.update(xgb.DMatrix(x, y), held_out)
        print(f"chunk {number}: {booster.num_boosted_rounds()} rounds, error {online.log[-1][-1]:.4f}")
    with open("log.pkl", "wb") as file:
        pickle.dump(online.log, file)
    print(booster.get_dump()[-1].count("leaf"), "leaves in the last tree;", next(stream)[1].sum())


if __name__ == "__main__":
    main()
