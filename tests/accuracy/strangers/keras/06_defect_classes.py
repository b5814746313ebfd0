import numpy as np
import pandas as pd
import keras
from keras import layers
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, classification_report
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(1234)

names = ["crack", "ok", "scratch"]
X, y = make_classification(
    n_samples=5000,
    n_features=16,
    n_informative=8,
    n_redundant=2,
    n_classes=3,
    n_clusters_per_class=2,
    weights=[0.06, 0.80, 0.14],
    class_sep=0.9,
    flip_y=0.01,
    random_state=4,
)
df = pd.DataFrame(X, columns=[f"s{i}" for i in range(X.shape[1])])
df["defect"] = y
print(df["defect"].value_counts())

train_df, test_df = train_test_split(df, test_size=0.25, stratify=df["defect"], random_state=0)
train_df, val_df = train_test_split(
    train_df, test_size=0.2, stratify=train_df["defect"], random_state=0
)

scaler = StandardScaler()
x_train = scaler.fit_transform(train_df.drop(columns="defect"))
x_val = scaler.transform(val_df.drop(columns="defect"))
x_test = scaler.transform(test_df.drop(columns="defect"))
y_train, y_val, y_test = (d["defect"].to_numpy() for d in (train_df, val_df, test_df))

counts = train_df["defect"].value_counts()
total = counts.sum()
class_weight = {i: total / (len(counts) * c) for i, c in enumerate(counts)}
print("class weights:", {k: round(float(v), 3) for k, v in class_weight.items()})

model = keras.Sequential(
    [
        keras.Input((x_train.shape[1],)),
        layers.Dense(48, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(24, activation="relu"),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(
    x_train,
    y_train,
    validation_data=(x_val, y_val),
    epochs=15,
    batch_size=64,
    class_weight=class_weight,
    verbose=2,
)

pred = np.argmax(model.predict(x_test, verbose=0), axis=1)
print(classification_report(y_test, pred, target_names=names, digits=3, zero_division=0))
print("balanced accuracy: %.4f" % balanced_accuracy_score(y_test, pred))
