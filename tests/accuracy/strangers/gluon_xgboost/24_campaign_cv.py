import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

np.random.seed(14)

GAIN, COST = 20.0, 3.0


def customers(n):
    d = pd.DataFrame({
        'recency': np.random.exponential(60, n),
        'frequency': np.random.poisson(4, n),
        'monetary': np.random.lognormal(4, 0.7, n),
        'age': np.random.randint(18, 80, n),
        'opened_last': np.random.binomial(1, 0.3, n),
        'web_visits': np.random.poisson(2, n),
    })
    z = (-2.9 - 0.012 * (d.recency - 60) + 0.15 * (d.frequency - 4) + 0.8 * (np.log(d.monetary) - 4)
         + 1.1 * d.opened_last + 0.25 * d.web_visits * (d.age < 40) - 0.2 * (d.age > 65))
    d['buys'] = np.random.binomial(1, 1 / (1 + np.exp(-z)))
    return d


def profit(y, p):
    contact = p > COST / GAIN
    return float(np.sum(contact * (GAIN * y - COST)) / len(y))


def profit_metric(predt, dmat):
    return 'profit', profit(dmat.get_label(), predt)


df = customers(9000)
cols = [c for c in df.columns if c != 'buys']
tr, te = train_test_split(df, test_size=0.3, random_state=14, stratify=df['buys'])
dtrain = xgb.DMatrix(tr[cols], label=tr['buys'])
dtest = xgb.DMatrix(te[cols], label=te['buys'])
print('response rate %.3f' % tr['buys'].mean())

params = {
    'objective': 'binary:logistic',
    'disable_default_eval_metric': True,
    'eta': 0.05,
    'max_depth': 3,
    'min_child_weight': 5,
    'subsample': 0.8,
    'nthread': 1,
    'seed': 14,
}
cv_res = xgb.cv(
    params,
    dtrain,
    num_boost_round=200,
    nfold=4,
    stratified=True,
    custom_metric=profit_metric,
    early_stopping_rounds=60,
    verbose_eval=20,
    seed=14,
)
n_rounds = len(cv_res)
print('rounds from cv:', n_rounds, 'profit %.4f' % cv_res['test-profit-mean'].iloc[-1])

bst = xgb.train(params, dtrain, num_boost_round=n_rounds)
p = bst.predict(dtest)
print('test auc %.4f' % roc_auc_score(te['buys'], p))
print('test profit per customer %.4f' % profit(te['buys'].to_numpy(), p))
