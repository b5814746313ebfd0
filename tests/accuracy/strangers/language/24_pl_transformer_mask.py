import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
L.seed_everything(33)

BOS, EOS = 1, 2
FIRST, N_SYM, LENGTH = 3, 12, 6
VOCAB = FIRST + N_SYM
# the "translation": every word has a counterpart, neighbouring words swap places
LEXICON = torch.randperm(N_SYM)


def make_corpus(n):
    src = torch.randint(N_SYM, (n, LENGTH))
    out = LEXICON[src].view(n, LENGTH // 2, 2).flip(-1).reshape(n, LENGTH)
    bos = torch.full((n, 1), BOS)
    eos = torch.full((n, 1), EOS)
    return TensorDataset(src + FIRST, torch.cat([bos, out + FIRST, eos], dim=1))


class Translator(L.LightningModule):
    def __init__(self, d_model=48, nhead=4, layers=1, lr=2e-3):
        super().__init__()
        self.save_hyperparameters()
        self.src_emb = nn.Embedding(VOCAB, d_model)
        self.tgt_emb = nn.Embedding(VOCAB, d_model)
        self.pos = nn.Parameter(torch.randn(LENGTH + 2, d_model) * 0.3)
        self.transformer = nn.Transformer(d_model, nhead, layers, layers, 4 * d_model, dropout=0.0, batch_first=True)
        self.generator = nn.Linear(d_model, VOCAB)

    def forward(self, src, tgt):
        s = self.src_emb(src) + self.pos[:src.size(1)]
        t = self.tgt_emb(tgt) + self.pos[:tgt.size(1)]
        h = self.transformer(s, t)
        return self.generator(h)

    def _loss(self, batch):
        src, tgt = batch
        logits = self(src, tgt[:, :-1])
        return F.cross_entropy(logits.reshape(-1, VOCAB), tgt[:, 1:].reshape(-1))

    def training_step(self, batch, batch_idx):
        loss = self._loss(batch)
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self._loss(batch))

    def on_train_epoch_end(self):
        m = self.trainer.callback_metrics
        print(f"epoch {self.current_epoch} train_loss {m['train_loss']:.4f} val_loss {m['val_loss']:.4f}")

    @torch.no_grad()
    def translate(self, src):
        tgt = torch.full((len(src), 1), BOS)
        for _ in range(LENGTH):
            tgt = torch.cat([tgt, self(src, tgt)[:, -1].argmax(-1, keepdim=True)], dim=1)
        return tgt[:, 1:]

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


train_set, val_set = make_corpus(3000), make_corpus(300)
model = Translator()
trainer = L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
                    enable_progress_bar=False, enable_model_summary=False, num_sanity_val_steps=0,
                    gradient_clip_val=1.0)
trainer.fit(model, DataLoader(train_set, batch_size=32, shuffle=True), DataLoader(val_set, batch_size=150))

model.eval()
src, tgt = val_set.tensors
pred = model.translate(src)
print("greedy token accuracy %.4f" % (pred == tgt[:, 1:-1]).float().mean().item())
print("sentence accuracy %.4f" % (pred == tgt[:, 1:-1]).all(1).float().mean().item())
