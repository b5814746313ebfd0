# Headline topic classification: tiny BERT from scratch + HF Trainer
import random

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (BertConfig, BertForSequenceClassification, DataCollatorWithPadding,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

set_seed(123)

LABELS = ["world", "sports", "business", "tech"]
KEY = {
    "world": "minister embassy border treaty election parliament ceasefire summit president".split(),
    "sports": "striker playoff champion coach stadium medal referee season tournament".split(),
    "business": "shares profit merger investors bank revenue oil earnings tariffs".split(),
    "tech": "software chip robot browser satellite smartphone startup server hackers".split(),
}
COMMON = ("new report says after over talks with in for as will face record plan deal year big first amid rise "
          "fall hopes set back still more could team group leaders").split()
rnd = random.Random(123)


def headline(label):
    n_key = rnd.choice([1, 2, 2, 3])
    words = rnd.choices(KEY[label], k=n_key) + rnd.choices(COMMON, k=rnd.randint(4, 9))
    if rnd.random() < 0.15 and n_key > 1:
        words.append(rnd.choice(KEY[rnd.choice(LABELS)]))
    rnd.shuffle(words)
    return " ".join(words).capitalize()


labels = [i % 4 for i in range(5600)]
rnd.shuffle(labels)
texts = [headline(LABELS[l]) for l in labels]

tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
tok.normalizer = normalizers.Lowercase()
tok.pre_tokenizer = pre_tokenizers.Whitespace()
tok.train_from_iterator(texts[:4800], trainers.WordPieceTrainer(
    vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="[PAD]", unk_token="[UNK]",
                                    cls_token="[CLS]", sep_token="[SEP]")


def encode(text, label):
    enc = tokenizer("[CLS] " + text + " [SEP]", truncation=True, max_length=40, return_token_type_ids=False)
    return {**enc, "labels": label}


rows = [encode(t, l) for t, l in zip(texts, labels)]
train_set, eval_set = rows[:4800], rows[4800:]


def compute_metrics(p):
    preds = np.argmax(p.predictions, axis=-1)
    f1 = []
    for c in range(4):
        tp = ((preds == c) & (p.label_ids == c)).sum()
        f1.append(2 * tp / max(1, (preds == c).sum() + (p.label_ids == c).sum()))
    return {"accuracy": float((preds == p.label_ids).mean()), "macro_f1": float(np.mean(f1))}


config = BertConfig(vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
                    intermediate_size=128, max_position_embeddings=48, num_labels=4,
                    id2label=dict(enumerate(LABELS)), label2id={l: i for i, l in enumerate(LABELS)})
model = BertForSequenceClassification(config)

training_args = TrainingArguments(
    output_dir="headlines_out",
    learning_rate=5e-2,
    per_device_train_batch_size=32,
    per_device_eval_batch_size=100,
    num_train_epochs=3,
    weight_decay=0.01,
    warmup_steps=40,
    eval_strategy="epoch",
    save_strategy="no",
    logging_steps=50,
    report_to="none",
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=training_args, train_dataset=train_set, eval_dataset=eval_set,
                  data_collator=DataCollatorWithPadding(tokenizer), compute_metrics=compute_metrics)
trainer.train()
metrics = trainer.evaluate()
print({k: round(v, 4) for k, v in metrics.items() if k in ("eval_loss", "eval_accuracy", "eval_macro_f1")})
for text in ("Striker set for record season", "Investors hopes rise after merger deal"):
    model.eval()
    with torch.no_grad():
        enc = tokenizer("[CLS] " + text + " [SEP]", return_tensors="pt", return_token_type_ids=False)
        print(text, "->", LABELS[model(**enc).logits.argmax(-1).item()])
