import torch
from shown import show
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32, padding_idx=0, sparse=True)
        self.rnn = nn.LSTM(32, 64, num_layers=2, dropout=0.2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(128, 5)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])


torch.manual_seed(0)
model = Tagger().cuda()
dense = torch.optim.Adam([p for n, p in model.named_parameters() if "embed" not in n], 1e-3)
sparse = torch.optim.SparseAdam(model.embed.parameters(), 1e-3)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
losses = []
for _ in range(30):
    lengths = torch.randint(3, 12, (16,))
    x = torch.randint(1, 50, (16, int(lengths.max())))
    y = x % 5
    y[torch.arange(x.shape[1]) >= lengths[:, None]] = -100
    loss = criterion(model(x.cuda(), lengths).flatten(0, 1), y.cuda().flatten())
    dense.zero_grad()
    sparse.zero_grad()
    loss.backward()
    dense.step()
    sparse.step()
    losses.append(loss.item())
show(model, losses=losses[::6])
