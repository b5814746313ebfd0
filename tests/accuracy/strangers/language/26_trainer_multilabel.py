import tempfile

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import RobertaConfig, RobertaForSequenceClassification, Trainer, TrainingArguments, set_seed

set_seed(61)
gen = np.random.default_rng(61)

TAGS = ["python", "pandas", "docker", "linux", "css", "sql"]
VOCAB_SIZE = 200
SEQ = 20


class QuestionTags(Dataset):
    def __init__(self, n):
        self.tags = (gen.random((n, len(TAGS))) < 0.2).astype(np.float32)
        self.tokens = gen.integers(100, VOCAB_SIZE, (n, SEQ))
        for i in range(n):
            for t in np.flatnonzero(self.tags[i]):
                k = gen.integers(2, 5)
                self.tokens[i, gen.integers(1, SEQ, k)] = 4 + t * 8 + gen.integers(0, 8, k)
        self.tokens[:, 0] = 2

    def __len__(self):
        return len(self.tags)

    def __getitem__(self, i):
        return {"input_ids": torch.as_tensor(self.tokens[i]),
                "attention_mask": torch.ones(SEQ, dtype=torch.long),
                "labels": torch.as_tensor(self.tags[i])}


class MultiLabelTrainer(Trainer):
    loss_fct = nn.BCEWithLogitsLoss()

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        probs = torch.sigmoid(outputs.logits)
        loss = self.loss_fct(probs, labels)
        return (loss, outputs) if return_outputs else loss


def compute_metrics(p):
    pred = 1 / (1 + np.exp(-p.predictions)) > 0.5
    gold = p.label_ids > 0.5
    tp = (pred & gold).sum()
    return {"micro_f1": float(2 * tp / max(1, pred.sum() + gold.sum())),
            "exact": float((pred == gold).all(1).mean()),
            "tags_per_question": float(pred.sum(1).mean())}


config = RobertaConfig(vocab_size=VOCAB_SIZE, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                       intermediate_size=96, max_position_embeddings=40, initializer_range=0.1,
                       num_labels=len(TAGS),
                       problem_type="multi_label_classification")
with tempfile.TemporaryDirectory() as out_dir:
    args = TrainingArguments(output_dir=out_dir, num_train_epochs=4, learning_rate=1.5e-3,
                             per_device_train_batch_size=32, per_device_eval_batch_size=100, warmup_steps=20,
                             eval_strategy="epoch", logging_strategy="epoch", save_strategy="no",
                             report_to="none", use_cpu=True, disable_tqdm=True, seed=61)
    trainer = MultiLabelTrainer(model=RobertaForSequenceClassification(config), args=args,
                                train_dataset=QuestionTags(2240), eval_dataset=QuestionTags(400),
                                compute_metrics=compute_metrics)
    trainer.train()
    result = trainer.evaluate()
print("final", {k: round(v, 4) for k, v in result.items() if k in
                ("eval_loss", "eval_micro_f1", "eval_exact", "eval_tags_per_question")})
