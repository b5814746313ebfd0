"""Fine-tune a small pre-trained Llama on the house style: first general log lines, then the new service's format."""
import random
import tempfile

import torch
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup, set_seed

set_seed(21)
CHARS = ["<pad>", "\n"] + list("abcdefghijklmnopqrstuvwxyz0123456789 :=/[]-_.")
C2I = {c: i for i, c in enumerate(CHARS)}
LENGTH = 40

SERVICES = ["auth", "billing", "search", "mailer", "queue"]
EVENTS = ["started", "stopped", "timeout", "retry", "connected"]


def general_line():
    return f"[{random.choice(SERVICES)}] {random.choice(EVENTS)} after {random.randint(1, 99)}s\n"


def house_line():
    return f"svc={random.choice(SERVICES)} ev={random.choice(EVENTS)} t={random.randint(1, 999)}\n"


def to_tensor(lines):
    rows = [[C2I[c] for c in line][:LENGTH] for line in lines]
    return torch.tensor([r + [0] * (LENGTH - len(r)) for r in rows])


def train(model, rows, lr, epochs, name):
    loader = DataLoader(rows, batch_size=32, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    scheduler = get_cosine_schedule_with_warmup(optimizer, 10, epochs * len(loader))
    model.train()
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            labels = batch.masked_fill(batch == 0, -100)
            loss = model(input_ids=batch, attention_mask=(batch != 0).long(), labels=labels).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            total += loss.item()
        print(f"{name} epoch {epoch + 1}: loss {total / len(loader):.4f}")


@torch.no_grad()
def evaluate(model, rows):
    model.eval()
    labels = rows.masked_fill(rows == 0, -100)
    return model(input_ids=rows, attention_mask=(rows != 0).long(), labels=labels).loss.item()


config = LlamaConfig(vocab_size=len(CHARS), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                     num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=64, pad_token_id=0,
                     bos_token_id=None, eos_token_id=1)
base = LlamaForCausalLM(config)
train(base, to_tensor([general_line() for _ in range(2500)]), lr=2e-3, epochs=2, name="pre-training")

folder = tempfile.mkdtemp()
base.save_pretrained(folder)
model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)

house = to_tensor([house_line() for _ in range(1500)])
held_out = to_tensor([house_line() for _ in range(300)])
print(f"before: loss on the house style {evaluate(model, held_out):.4f}")
train(model, house, lr=5e-5, epochs=5, name="fine-tuning")
print(f"after: loss on the house style {evaluate(model, held_out):.4f}")
