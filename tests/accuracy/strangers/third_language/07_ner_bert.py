# Named entities (person / place / organisation) with a small BERT and a WordPiece vocabulary, Trainer API.
import random

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import (BertConfig, BertForTokenClassification, DataCollatorForTokenClassification,
                          PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

set_seed(0)
LABELS = ["O", "PER", "LOC", "ORG"]
SYL = "ka mor len tis bra dun vel os ri than el go ster nia pol und ar wen fi lo".split()


def name(end):
    return "".join(random.choices(SYL, k=random.randint(2, 3))) + end


PER = [name(random.choice(["son", "sen", "ski"])) for _ in range(300)]
LOC = [name(random.choice(["burg", "ville", "ford"])) for _ in range(300)]
ORG = [name(random.choice(["tech", "corp", "soft"])) for _ in range(300)]
PATTERNS = ["P moved from L to L last year", "P works for O in L", "the office of O in L was closed", "shares of O fell",
            "P and P founded O", "yesterday P met the mayor of L", "in L it rained while P slept",
            "O hired P", "nobody at O knows P"]


def sentence():
    words, tags = [], []
    for w in random.choice(PATTERNS).split():
        pool = {"P": PER, "L": LOC, "O": ORG}.get(w)
        words.append(random.choice(pool) if pool else w)
        tags.append({"P": 1, "L": 2, "O": 3}.get(w, 0))
    return words, tags


train_rows, test_rows = [sentence() for _ in range(1500)], [sentence() for _ in range(300)]

raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
raw.train_from_iterator((" ".join(w) for w, _ in train_rows), trainers.WordPieceTrainer(
    vocab_size=220, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
raw.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[(t, raw.token_to_id(t)) for t in ("[CLS]", "[SEP]")])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                    sep_token="[SEP]")


def tokenize_and_label(words, tags):
    enc = tokenizer(words, is_split_into_words=True, truncation=True, max_length=64)
    labels = []
    for i in range(len(enc["input_ids"])):
        labels.append(tags[i] if i < len(tags) else -100)
    return {"input_ids": enc["input_ids"], "attention_mask": enc["attention_mask"], "labels": labels}


train_data = [tokenize_and_label(*r) for r in train_rows]
model = BertForTokenClassification(BertConfig(
    vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=64, num_labels=len(LABELS)))

args = TrainingArguments(output_dir="/tmp/ner_bert", num_train_epochs=6, per_device_train_batch_size=32,
                         learning_rate=1e-3, weight_decay=0.01, logging_steps=47, save_strategy="no", report_to=[],
                         use_cpu=True, disable_tqdm=True, seed=0)
trainer = Trainer(model=model, args=args, train_dataset=train_data,
                  data_collator=DataCollatorForTokenClassification(tokenizer))
trainer.train()

# a word gets the tag of its first piece
model.eval()
gold, pred = [], []
for words, tags in test_rows:
    enc = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        best = model(input_ids=enc["input_ids"], attention_mask=enc["attention_mask"]).logits[0].argmax(-1)
    word_ids = enc.word_ids()
    pred += [best[word_ids.index(w)].item() for w in range(len(words))]
    gold += tags
gold, pred = np.array(gold), np.array(pred)
for k in (1, 2, 3):
    tp = ((gold == k) & (pred == k)).sum()
    print(f"{LABELS[k]}: F1 {2 * tp / ((gold == k).sum() + (pred == k).sum()):.3f}")
print(f"word accuracy {np.mean(gold == pred):.3f}")
