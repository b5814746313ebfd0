import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(40)
rng = np.random.default_rng(40)
LABELS = ["neutral", "angry", "urgent"]
FREQ = [0.82, 0.11, 0.07]
VOCAB, LEN = 140, 18


class MailDataset(Dataset):
    def __init__(self, n):
        self.y = rng.choice(3, size=n, p=FREQ)
        self.x = rng.integers(50, VOCAB, (n, LEN))
        for i, y in enumerate(self.y):
            k = rng.integers(2, 6)
            pos = 1 + rng.choice(LEN - 1, k, replace=False)
            own = np.where(rng.random(k) < 0.8, y, rng.integers(0, 3, k))
            self.x[i, pos] = 5 + own * 15 + rng.integers(0, 15, k)
        self.x[:, 0] = 1

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return dict(input_ids=torch.tensor(self.x[i]), attention_mask=torch.ones(LEN, dtype=torch.long),
                    labels=int(self.y[i]))


train_set, eval_set = MailDataset(2400), MailDataset(800)
counts = np.bincount(train_set.y, minlength=3)
print("class counts", dict(zip(LABELS, counts.tolist())))
class_weights = torch.tensor(counts * len(LABELS) / counts.sum(), dtype=torch.float)


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        loss = nn.functional.cross_entropy(outputs.logits, labels, weight=class_weights)
        return (loss, {"logits": outputs.logits}) if return_outputs else loss

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        labels = inputs["labels"]
        with torch.no_grad():
            loss, outputs = self.compute_loss(model, dict(inputs), return_outputs=True)
        return loss, outputs["logits"], labels


def metrics(p):
    pred = p.predictions.argmax(-1)
    f1, rec = [], []
    for c in range(3):
        tp = ((pred == c) & (p.label_ids == c)).sum()
        f1.append(2 * tp / max(1, (pred == c).sum() + (p.label_ids == c).sum()))
        rec.append(tp / (p.label_ids == c).sum())
    return {"accuracy": float((pred == p.label_ids).mean()), "macro_f1": float(np.mean(f1)),
            "recall_angry": float(rec[1]), "recall_urgent": float(rec[2])}


config = BertConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=96, max_position_embeddings=32, num_labels=3, initializer_range=0.1)
with tempfile.TemporaryDirectory() as out_dir:
    args = TrainingArguments(output_dir=out_dir, num_train_epochs=3, per_device_train_batch_size=32,
                             per_device_eval_batch_size=200, learning_rate=8e-4, warmup_steps=30,
                             eval_strategy="epoch", save_strategy="no", logging_strategy="epoch",
                             report_to="none", use_cpu=True, disable_tqdm=True, seed=40)
    trainer = WeightedTrainer(model=BertForSequenceClassification(config), args=args, train_dataset=train_set,
                              eval_dataset=eval_set, compute_metrics=metrics)
    trainer.train()
    final = trainer.evaluate()
for name in ("eval_loss", "eval_accuracy", "eval_macro_f1", "eval_recall_angry", "eval_recall_urgent"):
    print(f"{name}: {final[name]:.4f}")
