import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split
from xgboost import XGBRegressor

CONFIG = {
    'n_samples': 8000,
    'noise': 1.0,
    'seed': 99,
    'model': {
        'n_estimators': 200,
        'learning_rate': 0.001,
        'max_depth': 4,
        'subsample': 0.8,
        'colsample_bytree': 0.8,
        'reg_lambda': 1.0,
        'early_stopping_rounds': 20,
        'eval_metric': 'rmse',
        'n_jobs': 1,
    },
}


def prepare(cfg):
    X, y = make_friedman1(n_samples=cfg['n_samples'], n_features=12, noise=cfg['noise'], random_state=cfg['seed'])
    X_train, X_tmp, y_train, y_tmp = train_test_split(X, y, test_size=0.4, random_state=cfg['seed'])
    X_val, X_test, y_val, y_test = train_test_split(X_tmp, y_tmp, test_size=0.5, random_state=cfg['seed'])
    return X_train, y_train, X_val, y_val, X_test, y_test


def train(cfg, X_train, y_train, X_val, y_val):
    model = XGBRegressor(random_state=cfg['seed'], **cfg['model'])
    model.fit(X_train, y_train, eval_set=[(X_train, y_train), (X_val, y_val)], verbose=False)
    curves = model.evals_result()
    tr = curves['validation_0']['rmse']
    va = curves['validation_1']['rmse']
    for i in range(0, len(tr), 20):
        print(f'round {i:4d}  train rmse {tr[i]:.4f}  valid rmse {va[i]:.4f}')
    print(f'best round {model.best_iteration}  valid rmse {model.best_score:.4f}')
    return model


if __name__ == '__main__':
    X_train, y_train, X_val, y_val, X_test, y_test = prepare(CONFIG)
    print('target std: %.3f' % np.std(y_train))
    model = train(CONFIG, X_train, y_train, X_val, y_val)
    pred = model.predict(X_test)
    print('test MAE: %.4f' % mean_absolute_error(y_test, pred))
    print('test R2:  %.4f' % r2_score(y_test, pred))
