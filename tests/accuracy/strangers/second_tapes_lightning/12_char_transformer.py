# tiny character-level language model (GPT style), trained with Lightning
import random
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
import lightning as L
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
L.seed_everything(1337)

subjects = ["the cat", "a dog", "my sister", "the old man", "our teacher", "a bird"]
verbs = ["sees", "likes", "paints", "follows", "hears", "draws"]
objects = ["a house", "the river", "some flowers", "a red boat", "the moon", "two apples"]
tails = ["in the morning", "every day", "at night", "with joy", "near the park"]
rnd = random.Random(0)
text = "".join(" ".join(rnd.choice(part) for part in (subjects, verbs, objects, tails)) + ". "
               for _ in range(1500))
words = set(text.replace(".", "").split())
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(data))
BLOCK = 32


class Chunks(Dataset):
    def __init__(self, tokens, stride):
        self.tokens, self.stride = tokens, stride

    def __len__(self):
        return (len(self.tokens) - BLOCK - 1) // self.stride

    def __getitem__(self, i):
        s = i * self.stride
        return self.tokens[s:s + BLOCK], self.tokens[s + 1:s + BLOCK + 1]


class CharLM(L.LightningModule):
    def __init__(self, vocab, dim=64, heads=4, layers=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(BLOCK, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, idx):
        T = idx.size(1)
        x = self.tok(idx) + self.pos(torch.arange(T))
        x = self.blocks(x)
        return self.head(self.norm(x))

    def loss(self, batch):
        x, y = batch
        return F.cross_entropy(self(x).flatten(0, 1), y.flatten())

    def training_step(self, batch, i):
        loss = self.loss(batch)
        if self.global_step % 100 == 0:
            print(f"step {self.global_step}: train loss {loss.item():.4f}")
        return loss

    def validation_step(self, batch, i):
        self.log("val_loss", self.loss(batch))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3, weight_decay=0.01)

    @torch.no_grad()
    def generate(self, prompt, n):
        out = [stoi[c] for c in prompt]
        for _ in range(n):
            probs = self(torch.tensor([out[-BLOCK:]]))[0, -1].softmax(-1)
            out.append(int(torch.multinomial(probs, 1)))
        return "".join(chars[i] for i in out)


train_loader = DataLoader(Chunks(data[:split], 11), batch_size=32, shuffle=True, drop_last=True)
val_loader = DataLoader(Chunks(data[split:], 32), batch_size=32)
model = CharLM(len(chars))
trainer = L.Trainer(max_epochs=3, gradient_clip_val=1.0, accelerator="cpu", logger=False,
                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer.fit(model, train_loader, val_loader)
print("val loss: %.4f" % trainer.callback_metrics["val_loss"])

model.eval()
good = total = 0
for prompt in ["the cat sees ", "a dog likes ", "our teacher draws ", "my sister hears "]:
    sample = model.generate(prompt, 100)
    print(">", sample[:100])
    new = sample[len(prompt):].replace(".", "").split()[:-1]
    good += sum(w in words for w in new)
    total += len(new)
print(f"real words among generated words: {good / max(total, 1):.3f}")
