"""A small training framework: tasks say what a step is, a trainer with callbacks runs them."""

import abc
import json
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Task(abc.ABC):
    """What is to be learned; not a module itself."""

    model: nn.Module

    @abc.abstractmethod
    def training_step(self, batch: Any, index: int) -> torch.Tensor: ...

    @abc.abstractmethod
    def validation_step(self, batch: Any) -> dict[str, float]: ...

    @abc.abstractmethod
    def configure_optimizers(self) -> tuple[torch.optim.Optimizer, Any]: ...


class Callback:
    def on_epoch_end(self, trainer: "Trainer", logs: dict[str, float]) -> None: ...

    def on_train_end(self, trainer: "Trainer") -> None: ...


class History(Callback):
    def __init__(self) -> None:
        self.rows: list[dict[str, float]] = []

    def on_epoch_end(self, trainer, logs):
        self.rows.append(logs)

    def on_train_end(self, trainer):
        with open("history.json", "w") as file:
            json.dump(self.rows, file, indent=1)


class EarlyStopping(Callback):
    def __init__(self, monitor: str, patience: int) -> None:
        self.monitor, self.patience, self.best, self.waited = monitor, patience, float("inf"), 0

    def on_epoch_end(self, trainer, logs):
        if logs[self.monitor] < self.best:
            self.best, self.waited = logs[self.monitor], 0
            torch.save(trainer.task.model.state_dict(), "best.ckpt")
        else:
            self.waited += 1
            trainer.should_stop = self.waited >= self.patience


class Trainer:
    def __init__(self, max_epochs: int, callbacks: list[Callback]) -> None:
        self.max_epochs, self.callbacks = max_epochs, callbacks
        self.should_stop = False
        self.global_step = 0

    def call(self, name: str, *args: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(self, *args)

    def fit(self, task: Task, train: DataLoader, valid: DataLoader) -> None:
        self.task = task
        optimizer, scheduler = task.configure_optimizers()
        started = time.perf_counter()
        for epoch in range(self.max_epochs):
            task.model.train()
            losses = []
            for index, batch in enumerate(train):

                def closure(batch=batch, index=index):
                    optimizer.zero_grad()
                    loss = task.training_step(batch, index)
                    loss.backward()
                    return loss

                losses.append(float(optimizer.step(closure)))
                self.global_step += 1
            task.model.eval()
            with torch.no_grad():
                results = [task.validation_step(batch) for batch in valid]
            logs = {"train_loss": sum(losses) / len(losses)}
            logs |= {name: sum(r[name] for r in results) / len(results) for name in results[0]}
            scheduler.step(logs["val_loss"])
            print(f"epoch {epoch} step {self.global_step}: " + ", ".join(f"{k}={v:.5f}" for k, v in logs.items()))
            self.call("on_epoch_end", logs)
            if self.should_stop:
                print("early stopping")
                break
        self.call("on_train_end")
        assert time.perf_counter() > started


class RegressionTask(Task):
    def __init__(self, inputs: int, hidden: int) -> None:
        self.model = nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, 1))
        self.criterion = nn.HuberLoss()

    def shared(self, batch):
        x, y = batch
        return self.criterion(self.model(x).squeeze(-1), y)

    def training_step(self, batch, index):
        return self.shared(batch)

    def validation_step(self, batch):
        return {"val_loss": self.shared(batch).item()}

    def configure_optimizers(self):
        optimizer = torch.optim.NAdam(self.model.parameters(), lr=2e-2)
        return optimizer, torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)


def main() -> None:
    torch.manual_seed(8)
    x = torch.rand(200, 3) * 4 - 2
    y = torch.sin(x[:, 0]) * x[:, 1] + 0.3 * x[:, 2]
    train = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=32, shuffle=True)
    valid = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=20)
    trainer = Trainer(8, [History(), EarlyStopping("val_loss", patience=2)])
    trainer.fit(RegressionTask(3, 16), train, valid)
    print("next", torch.rand(1).item())


main()
