import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

torch.manual_seed(50)
VOCAB, LEN, CLASSES = 300, 20, 4


def make_split(n, flip):
    y = torch.randint(CLASSES, (n,))
    x = torch.randint(100, VOCAB, (n, LEN))
    hint = torch.rand(n, LEN) < 0.3
    who = torch.where(torch.rand(n, LEN) < 0.75, y[:, None].expand(n, LEN), torch.randint(CLASSES, (n, LEN)))
    x = torch.where(hint, 2 + who * 24 + torch.randint(24, (n, LEN)), x)
    x[:, 0] = 1
    wrong = torch.rand(n) < flip
    y = torch.where(wrong, torch.randint(CLASSES, (n,)), y)
    return TensorDataset(x, y)


train_loader = DataLoader(make_split(1600, 0.05), batch_size=16, shuffle=True)
valid_loader = DataLoader(make_split(600, 0.05), batch_size=200)

config = BertConfig(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=1, num_attention_heads=4,
                    intermediate_size=96, max_position_embeddings=32, num_labels=CLASSES,
                    hidden_dropout_prob=0.25, attention_probs_dropout_prob=0.1, initializer_range=0.1)
model = BertForSequenceClassification(config)
EPOCHS = 5
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
scheduler = get_linear_schedule_with_warmup(optimizer, 20, EPOCHS * len(train_loader))


def evaluate():
    loss, right, n = 0.0, 0, 0
    with torch.no_grad():
        for ids, labels in valid_loader:
            out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels)
            loss += out.loss.item() * len(labels)
            right += (out.logits.argmax(-1) == labels).sum().item()
            n += len(labels)
    return loss / n, right / n


for epoch in range(1, EPOCHS + 1):
    model.train()
    total_loss = 0.0
    for ids, labels in train_loader:
        model.zero_grad()
        out = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=labels)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total_loss += out.loss.item()
    val_loss, val_acc = evaluate()
    print(f"Epoch {epoch}/{EPOCHS} - average training loss: {total_loss / len(train_loader):.3f} "
          f"- validation loss: {val_loss:.3f} - validation accuracy: {val_acc:.3f}")
