import torch
import torch.nn as nn
import torch.nn.functional as F


class Args:
    micro_batch = 4
    accum_steps = 8
    lr = 0.35
    momentum = 0.9
    clip = 1.0
    updates = 130
    bptt = 20
    vocab = 40
    dim = 48
    hidden = 64
    seed = 77


args = Args()
torch.manual_seed(args.seed)
gen = torch.Generator().manual_seed(args.seed)

# language with second order structure
table = torch.softmax(2.2 * torch.randn(args.vocab, 4, args.vocab, generator=gen), -1)


def make_stream(length, n):
    seq = torch.zeros(n, length + 1, dtype=torch.long)
    seq[:, 0] = torch.randint(args.vocab, (n,), generator=gen)
    seq[:, 1] = torch.randint(args.vocab, (n,), generator=gen)
    for t in range(2, length + 1):
        p = table[seq[:, t - 1], seq[:, t - 2] % 4]
        seq[:, t] = torch.multinomial(p, 1, generator=gen).squeeze(1)
    return seq


train_seq = make_stream(args.bptt, 4000)
valid_seq = make_stream(args.bptt, 300)


class LSTMLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(args.vocab, args.dim)
        self.lstm = nn.LSTM(args.dim, args.hidden, batch_first=True)
        self.out = nn.Linear(args.hidden, args.vocab)

    def forward(self, ids):
        h, _ = self.lstm(self.embed(ids))
        return self.out(h)


def lm_loss(model, seq):
    logits = model(seq[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), seq[:, 1:].flatten())


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
        self.updates = 0

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            loss = lm_loss(self.model, valid_seq).item()
        self.model.train()
        return loss

    def fit(self):
        running = 0.0
        self.optimizer.zero_grad()
        order = torch.randperm(len(train_seq), generator=gen).split(args.micro_batch)
        i = 0
        while self.updates < args.updates:
            if i % len(order) == 0 and i > 0:
                order = torch.randperm(len(train_seq), generator=gen).split(args.micro_batch)
            self.optimizer.zero_grad()
            loss = lm_loss(self.model, train_seq[order[i % len(order)]])
            (loss / args.accum_steps).backward()
            running += loss.item()
            i += 1
            if i % args.accum_steps == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), args.clip)
                self.optimizer.step()
                self.updates += 1
                if self.updates % 26 == 0:
                    n = 26 * args.accum_steps
                    print(f"update {self.updates:4d} train {running / n:.4f} valid {self.validate():.4f}", flush=True)
                    running = 0.0


model = LSTMLM()
trainer = Trainer(model)
print("before training: valid %.4f" % trainer.validate())
trainer.fit()
print("final perplexity: %.2f" % torch.tensor(trainer.validate()).exp().item())
