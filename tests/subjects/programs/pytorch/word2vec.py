"""Skip-grams with negative sampling: embeddings with sparse gradients, and vectors written as a text."""

import numpy as np
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class SkipGramModel(nn.Module):
    def __init__(self, emb_size, emb_dimension):
        super().__init__()
        self.u_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        self.v_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        initrange = 1.0 / emb_dimension
        nn.init.uniform_(self.u_embeddings.weight.data, -initrange, initrange)
        nn.init.constant_(self.v_embeddings.weight.data, 0)
        self.emb_dimension = emb_dimension

    def forward(self, pos_u, pos_v, neg_v):
        emb_u, emb_v = self.u_embeddings(pos_u), self.v_embeddings(pos_v)
        score = -F.logsigmoid(torch.clamp(torch.sum(emb_u * emb_v, dim=1), max=10, min=-10))
        neg_score = torch.bmm(self.v_embeddings(neg_v), emb_u.unsqueeze(2)).squeeze(2)
        neg_score = -torch.sum(F.logsigmoid(-torch.clamp(neg_score, max=10, min=-10)), dim=1)
        return torch.mean(score + neg_score)

    def save_embedding(self, id2word, file_name):
        with open(file_name, "w") as f:
            f.write("%d %d\n" % (len(id2word), self.emb_dimension))
            for wid, vector in enumerate(self.u_embeddings.weight.detach().numpy()):
                f.write("%s %s\n" % (id2word[wid], " ".join(f"{v:.6f}" for v in vector)))


class Corpus(Dataset):
    """A made-up language: each sentence is about one of four subjects, with words that all of them share."""

    def __init__(self, sentences, window, negatives, seed):
        self.rng = np.random.RandomState(seed)
        subjects = [[f"{name}{i}" for i in range(8)] for name in ("sea", "air", "wood", "iron")]
        common = ["the", "and", "of", "is"]
        self.words = sorted({word for words in (*subjects, common) for word in words})
        self.ids = {word: i for i, word in enumerate(self.words)}
        counts, self.pairs = np.zeros(len(self.words)), []
        for _ in range(sentences):
            known = subjects[self.rng.randint(4)] + common
            ids = [self.ids[known[i]] for i in self.rng.randint(0, len(known), 8)]
            counts[ids] += 1
            for i, u in enumerate(ids):
                self.pairs += [(u, v) for v in ids[max(i - window, 0) : i + window + 1] if v != u]
        self.noise = counts**0.75 / np.sum(counts**0.75)
        self.negatives = negatives

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        u, v = self.pairs[index]
        return u, v, self.rng.choice(len(self.words), self.negatives, p=self.noise)


def train(epochs=2, batch_size=256, initial_lr=0.05):
    torch.manual_seed(0)
    corpus = Corpus(sentences=70, window=2, negatives=5, seed=0)
    dataloader = DataLoader(corpus, batch_size=batch_size, shuffle=True, drop_last=True)
    model = SkipGramModel(len(corpus.words), 12)
    print(len(corpus), "pairs of", len(corpus.words), "words")
    for epoch in range(epochs):
        optimizer = optim.SparseAdam(list(model.parameters()), lr=initial_lr)
        scheduler = optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=len(dataloader))
        for i, (pos_u, pos_v, neg_v) in enumerate(dataloader):
            optimizer.zero_grad()
            loss = model.forward(pos_u, pos_v, neg_v)
            loss.backward()
            optimizer.step()
            scheduler.step()
            print(f"epoch {epoch} batch {i} Loss: {loss.item():.6f} lr {scheduler.get_last_lr()[0]:.5f}")
        model.save_embedding(corpus.words, "out.vec")
    vectors = F.normalize(model.u_embeddings.weight.detach())
    near = (vectors @ vectors[corpus.ids["sea0"]]).topk(4).indices
    print("near sea0:", [corpus.words[i] for i in near], corpus.rng.rand(), torch.rand(1).item())


if __name__ == "__main__":
    train()
