"""A network behind the interface of scikit-learn, in a grid search that holds out folds and trains the best again."""

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn


class TorchClassifier(ClassifierMixin, BaseEstimator):
    def __init__(self, hidden=8, lr=0.05, epochs=3, batch_size=20, seed=0, verbose=True):
        self.hidden = hidden
        self.lr = lr
        self.epochs = epochs
        self.batch_size = batch_size
        self.seed = seed
        self.verbose = verbose

    def fit(self, X, y):
        torch.manual_seed(self.seed)
        self.classes_, encoded = np.unique(y, return_inverse=True)
        X, encoded = torch.tensor(X, dtype=torch.float32), torch.tensor(encoded)
        self.model_ = nn.Sequential(
            nn.Linear(X.shape[1], self.hidden), nn.ReLU(), nn.Linear(self.hidden, len(self.classes_))
        )
        optimizer = torch.optim.Adam(self.model_.parameters(), lr=self.lr)
        criterion = nn.CrossEntropyLoss()
        for epoch in range(self.epochs):
            self.model_.train()
            total = 0.0
            batches = torch.randperm(len(X)).split(self.batch_size)
            for rows in batches:
                optimizer.zero_grad()
                loss = criterion(self.model_(X[rows]), encoded[rows])
                loss.backward()
                optimizer.step()
                total += loss.item()
            if self.verbose:
                print(f"hidden={self.hidden} lr={self.lr} epoch {epoch} loss {total / len(batches):.6f}")
        return self

    @torch.no_grad()
    def predict_proba(self, X):
        self.model_.eval()
        return self.model_(torch.tensor(X, dtype=torch.float32)).softmax(1).numpy()

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]


if __name__ == "__main__":
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    X_train, X_test, y_train, y_test = train_test_split(X, names, test_size=30, stratify=y, random_state=0)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), TorchClassifier()),
        {"torchclassifier__hidden": [4, 16], "torchclassifier__lr": [0.01, 0.1]},
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
    )
    search.fit(X_train, y_train)
    for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        print(f"{score:.4f} {params}")
    print("best", search.best_params_, "test accuracy", round(search.score(X_test, y_test), 4))
    torch.save(search.best_estimator_[-1].model_, "best_net.pt")
    print(torch.rand(1).item())
