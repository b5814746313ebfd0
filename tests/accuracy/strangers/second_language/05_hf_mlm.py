"""Pretrain a tiny BERT with masked language modelling on a toy grammar."""
import random

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

set_seed(42)

ANIMALS = {"dog": "barks", "cat": "meows", "cow": "moos", "duck": "quacks", "horse": "neighs", "lion": "roars",
           "owl": "hoots", "bee": "buzzes", "frog": "croaks", "pig": "grunts"}
HOMES = {"dog": "kennel", "cat": "house", "cow": "barn", "duck": "pond", "horse": "stable", "lion": "savanna",
         "owl": "tree", "bee": "hive", "frog": "swamp", "pig": "sty"}
TIMES = ["morning", "evening", "night", "noon"]
ADJ = ["old", "small", "brown", "lazy", "happy", "hungry", "shy", "wild"]
SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[MASK]"]
OTHER = ["the", "in", "its", "every", "and", "then", "sleeps", "goes", "to"]
vocab = SPECIAL + OTHER + TIMES + ADJ + list(ANIMALS) + list(ANIMALS.values()) + list(HOMES.values())
tok2id = {t: i for i, t in enumerate(vocab)}
MASK = tok2id["[MASK]"]


def make_sentence(rng):
    a, b = rng.sample(list(ANIMALS), 2)
    t = rng.choice(TIMES)
    s = ["[CLS]", "every", t, "the", rng.choice(ADJ), a, ANIMALS[a], "and", "the", rng.choice(ADJ), b, ANIMALS[b], "then"]
    s += ["the", a, "sleeps", "in", "its", HOMES[a], "and", "the", b, "goes", "to", "its", HOMES[b], "[SEP]"]
    return [tok2id[w] for w in s]


class Sentences(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = [make_sentence(rng) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i]}


def mask_tokens(features):
    ids = torch.tensor([f["input_ids"] for f in features])
    labels = ids.clone()
    prob = torch.full(ids.shape, 0.20)
    prob[ids < len(SPECIAL)] = 0.0
    masked = torch.bernoulli(prob).bool()
    ids[masked] = MASK
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


config = BertConfig(vocab_size=len(vocab), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=128, max_position_embeddings=32, type_vocab_size=1,
                    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
model = BertForMaskedLM(config)
print(f"{model.num_parameters():,} parameters, {len(vocab)} tokens in the vocabulary")

args = TrainingArguments(
    output_dir="mlm_out", max_steps=500, per_device_train_batch_size=32, per_device_eval_batch_size=64,
    learning_rate=1e-3, warmup_steps=50, weight_decay=0.01, lr_scheduler_type="linear",
    logging_steps=50, eval_strategy="steps", eval_steps=100, save_strategy="no", report_to="none",
    use_cpu=True, disable_tqdm=True, seed=42, remove_unused_columns=False)
trainer = Trainer(model=model, args=args, train_dataset=Sentences(8000, 0), eval_dataset=Sentences(500, 1),
                  data_collator=mask_tokens)
trainer.train()

# fill-mask check: one content word is hidden in each unseen sentence
model.eval()
test = Sentences(500, 2)
rng = np.random.default_rng(0)
hits = 0
with torch.no_grad():
    for i in range(len(test)):
        ids = torch.tensor([test[i]["input_ids"]])
        pos = int(rng.choice([5, 6, 10, 11, 14, 18, 21, 25]))
        want = ids[0, pos].item()
        ids[0, pos] = MASK
        hits += model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, pos].argmax().item() == want
print(f"fill-mask accuracy: {hits / len(test):.3f}")
