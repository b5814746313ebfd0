import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

SEED = 2024
rng = np.random.default_rng(SEED)

# ---- data -------------------------------------------------------------
n = 9000
df = pd.DataFrame({
    'tenure': rng.gamma(2.0, 14.0, n),
    'monthly_fee': rng.normal(55, 18, n).clip(10, 130),
    'support_calls': rng.poisson(1.3, n),
    'discount': rng.choice([0, 5, 10, 20], n, p=[.6, .2, .1, .1]),
    'usage_gb': rng.lognormal(2.5, .8, n),
    'age': rng.integers(18, 80, n),
    'n_products': rng.integers(1, 5, n),
})
for i in range(8):
    df[f'survey_q{i}'] = rng.normal(size=n)
z = (-1.0 - 0.03 * df.tenure + 0.018 * (df.monthly_fee - 55) + 0.45 * df.support_calls
     - 0.04 * df.discount - 0.25 * df.n_products + 0.3 * np.log(df.usage_gb)
     + 0.3 * df.survey_q0 * (df.age < 35))
df['churn'] = rng.binomial(1, 1 / (1 + np.exp(-z)))

features = [c for c in df.columns if c != 'churn']
trainval, test = train_test_split(df, test_size=0.25, random_state=SEED, stratify=df.churn)
train, valid = train_test_split(trainval, test_size=0.25, random_state=SEED, stratify=trainval.churn)

dtrain = xgb.DMatrix(train[features], label=train.churn)
dvalid = xgb.DMatrix(valid[features], label=valid.churn)
dtest = xgb.DMatrix(test[features], label=test.churn)

# ---- model ------------------------------------------------------------
params = dict(
    objective='binary:logistic',
    eval_metric='logloss',
    eta=0.05,
    max_depth=5,
    min_child_weight=2,
    subsample=0.8,
    colsample_bytree=0.8,
    nthread=1,
    seed=SEED,
)
bst = xgb.train(
    params,
    dtrain,
    num_boost_round=300,
    evals=[(dvalid, 'valid'), (dtrain, 'train')],
    early_stopping_rounds=25,
    verbose_eval=25,
)

print('best iteration', bst.best_iteration, 'best score', round(bst.best_score, 4))
pred = bst.predict(dtest, iteration_range=(0, bst.best_iteration + 1))
print('test logloss %.4f  auc %.4f' % (log_loss(test.churn, pred), roc_auc_score(test.churn, pred)))
