import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

MISSING = -999.0
COLS = ['income', 'loan_amount', 'bureau_score', 'months_employed', 'utilisation', 'age', 'dependants']


class LoanModel:
    def __init__(self, rounds=200, **overrides):
        self.rounds = rounds
        self.params = {
            'objective': 'binary:logistic',
            'eval_metric': 'logloss',
            'eta': 0.05,
            'max_depth': 4,
            'min_child_weight': 5,
            'subsample': 0.8,
            'nthread': 1,
            'seed': 12,
        }
        self.params.update(overrides)
        self.booster = None

    def fit(self, X, y, X_val, y_val):
        dtrain = xgb.DMatrix(X, label=y, missing=MISSING)
        dval = xgb.DMatrix(X_val, label=y_val, missing=MISSING)
        self.booster = xgb.train(self.params, dtrain, self.rounds,
                                 evals=[(dtrain, 'train'), (dval, 'val')],
                                 early_stopping_rounds=30, verbose_eval=40)
        return self

    def predict(self, X):
        d = xgb.DMatrix(X)
        return self.booster.predict(d, iteration_range=(0, self.booster.best_iteration + 1))


def simulate(n, seed):
    r = np.random.RandomState(seed)
    income = r.lognormal(7.9, 0.45, n)
    loan = r.lognormal(9.0, 0.6, n)
    score = r.normal(620, 80, n)
    employed = r.exponential(50, n)
    util = r.beta(2, 3, n)
    age = r.randint(20, 70, n)
    dep = r.poisson(0.9, n)
    z = (-1.6 + 0.9 * (np.log(loan / income) - 1.1) - 0.012 * (score - 620)
         - 0.010 * (employed - 50) + 2.2 * (util - 0.4) + 0.1 * dep)
    y = r.binomial(1, 1 / (1 + np.exp(-z)))
    df = pd.DataFrame(np.column_stack([income, loan, score, employed, util, age, dep]), columns=COLS)
    # good customers are less often asked for papers
    df.loc[(r.rand(n) < 0.35) & (score > 600), 'bureau_score'] = MISSING
    df.loc[(r.rand(n) < 0.40) & (employed > 30), 'months_employed'] = MISSING
    df.loc[r.rand(n) < 0.15, 'utilisation'] = MISSING
    return df, y


X, y = simulate(14000, 4)
X_dev, X_test, y_dev, y_test = train_test_split(X, y, test_size=0.25, random_state=4, stratify=y)
X_tr, X_val, y_tr, y_val = train_test_split(X_dev, y_dev, test_size=0.2, random_state=4, stratify=y_dev)
print('share of missing values\n', (X_tr == MISSING).mean().round(3).to_string())

model = LoanModel().fit(X_tr, y_tr, X_val, y_val)
p = model.predict(X_test)
print('best iteration', model.booster.best_iteration)
print('test auc %.4f' % roc_auc_score(y_test, p))
print('test logloss %.4f' % log_loss(y_test, p))
