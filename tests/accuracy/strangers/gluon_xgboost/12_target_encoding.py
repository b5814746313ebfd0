import logging

import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import TargetEncoder

logging.basicConfig(level=logging.INFO, format='%(levelname)s %(message)s')
logger = logging.getLogger(__name__)

TARGET = 'chargeback'
FEATS = ['amount', 'hour', 'n_prev', 'device_age', 'foreign', 'merchant_te']


def simulate(n, merchants, effect, rng):
    d = pd.DataFrame({
        'merchant': rng.integers(0, merchants, n),
        'amount': rng.lognormal(3.2, 1.0, n),
        'hour': rng.integers(0, 24, n),
        'n_prev': rng.poisson(4, n),
        'device_age': rng.exponential(200, n),
        'foreign': rng.binomial(1, 0.15, n),
    })
    logit = (-2.2 + effect[d.merchant] + 0.35 * (np.log(d.amount) - 3.2) + 0.9 * d.foreign
             + 0.8 * (d.hour < 6) - 0.12 * d.n_prev - 0.002 * d.device_age)
    d[TARGET] = rng.binomial(1, 1 / (1 + np.exp(-logit)))
    return d


def main():
    rng = np.random.default_rng(17)
    effect = rng.normal(0, 0.9, 1500)
    data = simulate(12000, 1500, effect, rng)
    next_month = simulate(6000, 1500, effect, rng)

    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    encoder = TargetEncoder(target_type='binary', smooth=2.0, cv=folds)
    data['merchant_te'] = encoder.fit(data[['merchant']], data[TARGET]).transform(data[['merchant']]).ravel()
    train, valid = train_test_split(data, test_size=0.25, random_state=0, stratify=data[TARGET])
    next_month['merchant_te'] = encoder.transform(next_month[['merchant']]).ravel()
    logger.info('train %d valid %d positives %.3f', len(train), len(valid), train[TARGET].mean())

    dtrain = xgb.DMatrix(train[FEATS], train[TARGET])
    dvalid = xgb.DMatrix(valid[FEATS], valid[TARGET])
    params = {'objective': 'binary:logistic', 'eval_metric': 'auc', 'eta': 0.04, 'max_depth': 3,
              'min_child_weight': 5, 'subsample': 0.8, 'nthread': 1, 'seed': 1}
    booster = xgb.train(params, dtrain, num_boost_round=160,
                        evals=[(dtrain, 'train'), (dvalid, 'valid')], verbose_eval=40)
    for name, part in (('valid', valid), ('next month', next_month)):
        p = booster.predict(xgb.DMatrix(part[FEATS]))
        logger.info('%s auc %.4f', name, roc_auc_score(part[TARGET], p))


if __name__ == '__main__':
    main()
