"""Train a small GPT-2 on generated cooking instructions and sample from it."""
import random

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

set_seed(5)

CUT = {"carrots": "slice", "onions": "chop", "potatoes": "peel", "leeks": "wash", "beans": "trim",
       "tomatoes": "dice", "peppers": "core", "beets": "grate", "olives": "pit", "peas": "shell"}
FAT = ["butter", "oil", "lard", "ghee"]
POT = ["pan", "pot", "wok", "tray", "skillet"]
SPICE = ["salt", "thyme", "paprika", "cumin", "sage"]
MINUTES = ["five", "ten", "twenty"]


def recipe(r):
    v, f, p, s, m = r.choice(list(CUT)), r.choice(FAT), r.choice(POT), r.choice(SPICE), r.choice(MINUTES)
    spice = r.choice([f"add {s} and stir", f"sprinkle with {s} again", f"no {s} for kids"])
    return (f"{CUT[v]} the {v} . heat the {f} in a {p} . put the {v} in it and cook for {m} minutes . "
            f"{spice} . serve the {v} hot .")


rng = random.Random(5)
recipes = list(dict.fromkeys(recipe(rng) for _ in range(8000)))
rng.shuffle(recipes)
valid_texts, train_texts = recipes[:300], recipes[300:]
vocab = ["<end>"] + sorted({w for t in train_texts for w in t.split()})
stoi = {w: i for i, w in enumerate(vocab)}


class RecipeDataset(Dataset):
    def __init__(self, texts):
        self.rows = [torch.tensor([0] + [stoi[w] for w in t.split()] + [0]) for t in texts]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        x = row[:-1]
        y = row[1:]
        return {"input_ids": x, "labels": y}


class PrintLoss(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "loss" in logs:
            print(f"step {state.global_step:4d}  loss {float(logs['loss']):.4f}")
        if logs and "eval_loss" in logs:
            print(f"step {state.global_step:4d}  eval loss {float(logs['eval_loss']):.4f}")


config = GPT2Config(vocab_size=len(vocab), n_positions=64, n_embd=64, n_layer=2, n_head=4,
                    bos_token_id=0, eos_token_id=0,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
model = GPT2LMHeadModel(config)
args = TrainingArguments(output_dir="recipes_out", num_train_epochs=3, per_device_train_batch_size=32,
                         per_device_eval_batch_size=64, learning_rate=2e-3, warmup_steps=30, weight_decay=0.01,
                         lr_scheduler_type="cosine", logging_steps=40, eval_strategy="epoch", save_strategy="no",
                         report_to="none", use_cpu=True, disable_tqdm=True, log_level="error", seed=5)
train_set = RecipeDataset(train_texts)
trainer = Trainer(model=model, args=args, train_dataset=train_set,
                  eval_dataset=RecipeDataset(valid_texts), callbacks=[PrintLoss()])
trainer.train()

model.eval()
gen = torch.Generator().manual_seed(0)
grammatical = {recipe(rng) for _ in range(100000)}
ok = 0
for k in range(100):
    ids = [0]
    while len(ids) < len(train_set[0]["input_ids"]):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0, -1]
        ids.append(int(torch.multinomial(logits.softmax(-1), 1, generator=gen)))
    text = " ".join(vocab[i] for i in ids[1:])
    ok += text in grammatical
    if k < 4:
        print("  *", text)
print(f"well-formed recipes: {ok}/100")
