import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(404)


def portfolio(n):
    df = pd.DataFrame({
        'driver_age': rng.integers(18, 85, n),
        'car_age': rng.integers(0, 20, n),
        'power': rng.integers(4, 13, n),
        'density': rng.lognormal(6, 1.4, n),
        'bonus': rng.choice(np.arange(50, 151, 10), n),
    })
    # many contracts were cancelled or started late in the year
    df['exposure'] = np.where(rng.random(n) < 0.45, rng.uniform(0.02, 0.25, n), rng.uniform(0.6, 1.0, n))
    lam = np.exp(-2.0 + 0.8 * (df.driver_age < 25) + 0.012 * (df.bonus - 80) + 0.12 * (np.log(df.density) - 6)
                 + 0.04 * (df.power - 7) - 0.02 * df.car_age)
    df['claims'] = rng.poisson(lam * df.exposure)
    # some contracts are terminated after a claim
    ended = (df.claims > 0) & (rng.random(n) < 0.25)
    df.loc[ended, 'exposure'] *= rng.uniform(0.2, 0.9, ended.sum())
    return df


features = ['driver_age', 'car_age', 'power', 'density', 'bonus']
data = portfolio(24000)
data['frequency'] = data['claims'] / data['exposure']
train, test = train_test_split(data, test_size=0.3, random_state=5)
print('train frequency: %.4f, max rate %.1f' % (train.claims.sum() / train.exposure.sum(), train.frequency.max()))

dtrain = xgb.DMatrix(train[features], label=train['frequency'])
dtest = xgb.DMatrix(test[features], label=test['frequency'], weight=test['exposure'])

params = {
    'objective': 'count:poisson',
    'eval_metric': 'poisson-nloglik',
    'learning_rate': 0.05,
    'max_depth': 3,
    'min_child_weight': 10,
    'subsample': 0.8,
    'nthread': 1,
    'seed': 1,
}
history = {}
booster = xgb.train(params, dtrain, num_boost_round=120, evals=[(dtrain, 'train'), (dtest, 'test')],
                    evals_result=history, verbose_eval=25)

rate = booster.predict(dtest)
dev = mean_poisson_deviance(test['frequency'], rate, sample_weight=test['exposure'])
base = np.full(len(test), train.claims.sum() / train.exposure.sum())
print('deviance of the constant model %.4f' % mean_poisson_deviance(test['frequency'], base, sample_weight=test['exposure']))
print('deviance of the booster        %.4f' % dev)
print('claims on test: observed %d, predicted %.1f' % (test.claims.sum(), (rate * test.exposure).sum()))
