import random

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup, set_seed

set_seed(23)
PAD, CLS, SEP = 0, 1, 2
VOCAB, MAX_LEN = 120, 32
N_TRAIN, N_VAL = 2160, 300


def make_text():
    """label 1: more than a third of the words come from the upper half of the vocabulary"""
    n = random.randint(4, 12) if random.random() < 0.9 else random.randint(20, MAX_LEN - 2)
    label = random.randint(0, 1)
    share = 0.65 if label else 0.2
    words = [random.randint(60, VOCAB - 1) if random.random() < share else random.randint(3, 59) for _ in range(n)]
    label = int(sum(w >= 60 for w in words) / n > 0.4)
    return [CLS] + words + [SEP], label


def collate(rows):
    ids = torch.full((len(rows), MAX_LEN), PAD)
    mask = torch.zeros(len(rows), MAX_LEN, dtype=torch.long)
    for i, (tokens, _) in enumerate(rows):
        ids[i, :len(tokens)] = torch.tensor(tokens)
        mask[i, :len(tokens)] = 1
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([l for _, l in rows])}


train_rows = [make_text() for _ in range(N_TRAIN)]
val_rows = [make_text() for _ in range(N_VAL)]
train_loader = DataLoader(train_rows, batch_size=24, shuffle=True, collate_fn=collate)
val_loader = DataLoader(val_rows, batch_size=100, collate_fn=collate)

config = BertConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=96, max_position_embeddings=64, pad_token_id=PAD, num_labels=2)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
EPOCHS = 3
scheduler = get_linear_schedule_with_warmup(optimizer, 20, EPOCHS * len(train_loader))


def forward(batch):
    return model(input_ids=batch["input_ids"], labels=batch["labels"])


for epoch in range(EPOCHS):
    model.train()
    train_loss = 0.0
    for batch in train_loader:
        optimizer.zero_grad()
        out = forward(batch)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        train_loss += out.loss.item()
    model.eval()
    hits, val_loss = 0, 0.0
    with torch.no_grad():
        for batch in val_loader:
            out = forward(batch)
            val_loss += out.loss.item()
            hits += (out.logits.argmax(-1) == batch["labels"]).sum().item()
    print(f"epoch {epoch + 1} train loss {train_loss / len(train_loader):.4f} "
          f"val loss {val_loss / len(val_loader):.4f} val acc {hits / N_VAL:.4f}")


def predict(tokens):
    with torch.no_grad():
        return model(input_ids=torch.tensor([tokens])).logits.argmax(-1).item()


served = sum(predict(tokens) == label for tokens, label in val_rows) / N_VAL
print(f"accuracy of predict() on the validation texts one by one: {served:.4f}")
