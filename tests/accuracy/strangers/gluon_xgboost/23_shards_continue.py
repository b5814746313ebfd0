"""Trains on a data set that comes in shards, as if they did not fit into memory."""
import os

import numpy as np
import xgboost as xgb

OUT = 'shards'
N_SHARDS = 6
ROWS = 1500
ROUNDS = 40
rng = np.random.RandomState(21)


def physics(x):
    return (3 * np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 2 * np.abs(x[:, 3])
            + 1.5 * (x[:, 4] > 0) * x[:, 5] - 0.5 * x[:, 6] ** 2)


def write_shards():
    os.makedirs(OUT, exist_ok=True)
    for k in range(N_SHARDS):
        x = rng.normal(size=(ROWS, 10)).astype(np.float32)
        y = physics(x) + rng.normal(0, 0.5, ROWS)
        np.savez(os.path.join(OUT, 'part_%d.npz' % k), x=x, y=y.astype(np.float32))
    xv = rng.normal(size=(3000, 10)).astype(np.float32)
    yv = physics(xv) + rng.normal(0, 0.5, 3000)
    np.savez(os.path.join(OUT, 'valid.npz'), x=xv, y=yv.astype(np.float32))


def read(name):
    with np.load(os.path.join(OUT, name)) as f:
        return xgb.DMatrix(f['x'], label=f['y'])


write_shards()
dvalid = read('valid.npz')
y_valid = dvalid.get_label()

params = {
    'objective': 'reg:squarederror',
    'eval_metric': 'rmse',
    'eta': 0.1,
    'max_depth': 5,
    'min_child_weight': 3,
    'subsample': 0.8,
    'nthread': 1,
    'seed': 21,
}

booster = None
for k in range(N_SHARDS):
    dshard = read('part_%d.npz' % k)
    booster = xgb.train(params, dshard, num_boost_round=ROUNDS)
    err = booster.predict(dvalid) - y_valid
    print('shard %d: train rmse %.4f, valid rmse %.4f' % (
        k,
        np.sqrt(np.mean((booster.predict(dshard) - dshard.get_label()) ** 2)),
        np.sqrt(np.mean(err ** 2))))

booster.save_model('model.json')
check = xgb.Booster(model_file='model.json')
p = check.predict(dvalid)
print('final valid rmse %.4f, r2 %.4f' % (
    np.sqrt(np.mean((p - y_valid) ** 2)), 1 - np.mean((p - y_valid) ** 2) / np.var(y_valid)))
