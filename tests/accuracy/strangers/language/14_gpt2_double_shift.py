import random

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_cosine_schedule_with_warmup, set_seed

set_seed(17)

# arithmetic lines such as "37+25=62;" one token per character
CHARS = "0123456789+=;"
stoi = {c: i for i, c in enumerate(CHARS)}
LINES = 3
MAX_NUM = 9


def make_example():
    out = ""
    for _ in range(LINES):
        a, b = random.randint(0, MAX_NUM), random.randint(0, MAX_NUM)
        out += f"{a}+{b}={a + b:02d};"
    return out


def encode(s):
    return torch.tensor([stoi[c] for c in s])


train_ids = torch.stack([encode(make_example()) for _ in range(4500)])
val_texts = [make_example() for _ in range(100)]

config = GPT2Config(vocab_size=len(CHARS), n_positions=64, n_embd=64, n_layer=2, n_head=4,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                    bos_token_id=stoi[";"], eos_token_id=stoi[";"])
model = GPT2LMHeadModel(config)
print("params", model.num_parameters())

loader = DataLoader(train_ids, batch_size=32, shuffle=True)
EPOCHS = 2
total = EPOCHS * len(loader)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
scheduler = get_cosine_schedule_with_warmup(optimizer, 20, total)


@torch.no_grad()
def sum_accuracy():
    """prompt up to the last '=' and let the model write the two digits"""
    model.eval()
    prompts = torch.stack([encode(t[:-3]) for t in val_texts])
    for _ in range(2):
        nxt = model(input_ids=prompts).logits[:, -1].argmax(-1, keepdim=True)
        prompts = torch.cat([prompts, nxt], dim=1)
    model.train()
    answers = ["".join(CHARS[i] for i in row[-2:]) for row in prompts.tolist()]
    return sum(a == t[-3:-1] for a, t in zip(answers, val_texts)) / len(val_texts)


model.train()
step = 0
for epoch in range(EPOCHS):
    for ids in loader:
        outputs = model(input_ids=ids[:, :-1], labels=ids[:, 1:])
        outputs.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        step += 1
        if step % 50 == 0:
            print(f"epoch {epoch} step {step}/{total} loss {outputs.loss.item():.4f} "
                  f"lr {scheduler.get_last_lr()[0]:.2e}")
    print(f"epoch {epoch} accuracy of sums {sum_accuracy():.3f}")
