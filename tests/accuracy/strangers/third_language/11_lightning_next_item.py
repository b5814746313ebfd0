"""Sequential recommendation (SASRec style) with Lightning: predict the next item of a session."""
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

N_ITEMS, SESSION = 200, 20


class Sessions(Dataset):
    """Users browse inside a category and follow each item's 'often bought with' list."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(0)
        related = torch.randint(1, N_ITEMS + 1, (N_ITEMS + 1, 2), generator=g)
        g.manual_seed(seed)
        items = torch.zeros(n, SESSION + 1, dtype=torch.long)
        items[:, 0] = torch.randint(1, N_ITEMS + 1, (n,), generator=g)
        for t in range(1, SESSION + 1):
            pick = (torch.rand(n, generator=g) < 0.25).long()
            nxt = related[items[:, t - 1], pick]
            jump = torch.rand(n, generator=g) < 0.1
            items[:, t] = torch.where(jump, torch.randint(1, N_ITEMS + 1, (n,), generator=g), nxt)
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i, :-1], self.items[i, 1:]


class SASRec(L.LightningModule):
    def __init__(self, dim=48, lr=3e-3, warmup_steps=60, total_steps=600):
        super().__init__()
        self.save_hyperparameters()
        self.items = nn.Embedding(N_ITEMS + 1, dim, padding_idx=0)
        self.positions = nn.Embedding(SESSION, dim)
        layer = nn.TransformerEncoderLayer(dim, 2, 2 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, N_ITEMS + 1)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        h = self.items(x) + self.positions(torch.arange(x.size(1), device=x.device))
        return self.out(self.norm(self.encoder(h, mask=mask, is_causal=True)))

    def training_step(self, batch, _):
        x, y = batch
        loss = self.loss(self(x).flatten(0, 1), y.flatten())
        self.log("train_loss", loss, on_epoch=True, on_step=False)
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)
        top = logits[:, -1].topk(5).indices
        self.log("val_loss", self.loss(logits.flatten(0, 1), y.flatten()))
        self.log("hit@5", (top == y[:, -1:]).any(1).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.01)
        warmup, total = self.hparams.warmup_steps, self.hparams.total_steps

        def factor(step):
            if step < warmup:
                return (step + 1) / warmup
            return max(0.0, (total - step) / (total - warmup))

        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return [optimizer], [scheduler]


class PrintMetrics(L.Callback):
    def on_train_epoch_end(self, trainer, pl_module):
        m = {k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()}
        print(f"epoch {trainer.current_epoch}: {m}")


def main():
    L.seed_everything(123)
    train, val = Sessions(3200, 1), Sessions(800, 2)
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    val_loader = DataLoader(val, batch_size=200)
    epochs = 6
    model = SASRec(total_steps=epochs * len(train_loader))
    trainer = L.Trainer(max_epochs=epochs, accelerator="cpu", gradient_clip_val=1.0, callbacks=[PrintMetrics()],
                        logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False)
    trainer.fit(model, train_loader, val_loader)


if __name__ == "__main__":
    main()
