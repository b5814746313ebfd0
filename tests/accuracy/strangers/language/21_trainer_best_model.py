import tempfile

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments,
                          set_seed)

set_seed(6)
rng = np.random.default_rng(6)

NUM_LABELS = 5
VOCAB = 160
SEQ_LEN = 16


class TicketDataset(Dataset):
    """support tickets: words of the department and general words"""

    def __init__(self, size):
        self.labels = rng.integers(0, NUM_LABELS, size)
        self.ids = rng.integers(100, VOCAB, (size, SEQ_LEN))
        for i, y in enumerate(self.labels):
            n = rng.integers(2, 6)
            where = rng.choice(np.arange(1, SEQ_LEN), n, replace=False)
            self.ids[i, where] = y * 18 + rng.integers(5, 23, n)
            if rng.random() < 0.4:
                self.ids[i, rng.integers(1, SEQ_LEN)] = rng.integers(5, 95)
            self.ids[i, 0] = 1

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        return {"input_ids": torch.tensor(self.ids[idx]),
                "attention_mask": torch.ones(SEQ_LEN, dtype=torch.long),
                "labels": torch.tensor(self.labels[idx])}


def compute_metrics(eval_pred):
    logits, labels = eval_pred
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


train_ds, eval_ds, test_ds = TicketDataset(1600), TicketDataset(300), TicketDataset(400)

config = DistilBertConfig(vocab_size=VOCAB, dim=48, n_layers=2, n_heads=4, hidden_dim=96,
                          max_position_embeddings=32, num_labels=NUM_LABELS)
model = DistilBertForSequenceClassification(config)

with tempfile.TemporaryDirectory() as out:
    training_args = TrainingArguments(
        output_dir=out,
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=20,
        weight_decay=0.01,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="eval_loss",
        greater_is_better=True,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        seed=6,
    )
    trainer = Trainer(model=model, args=training_args, train_dataset=train_ds, eval_dataset=eval_ds,
                      compute_metrics=compute_metrics)
    trainer.train()
    print("best checkpoint:", trainer.state.best_model_checkpoint.split("-")[-1])
    print("eval:", {k: round(v, 4) for k, v in trainer.evaluate().items() if k in ("eval_loss", "eval_accuracy")})
    test = trainer.predict(test_ds).metrics
    print("test loss %.4f test accuracy %.4f" % (test["test_loss"], test["test_accuracy"]))
