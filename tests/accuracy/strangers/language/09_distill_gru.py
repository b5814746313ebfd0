import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)
rng = np.random.default_rng(21)

N_CLASS, VOCAB, LEN = 6, 240, 16
TEMPERATURE = 2.0
ALPHA = 0.9


def utterances(n):
    """intents; every intent has its words, neighbouring intents share some of them"""
    y = rng.integers(0, N_CLASS, n)
    x = rng.integers(N_CLASS * 20, VOCAB, (n, LEN))
    for i in range(n):
        k = rng.integers(2, 5)
        spot = rng.choice(LEN, k, replace=False)
        who = np.where(rng.random(k) < 0.7, y[i], (y[i] + 1) % N_CLASS)
        x[i, spot] = who * 20 + rng.integers(0, 20, k)
    return torch.from_numpy(x), torch.from_numpy(y)


class IntentGRU(nn.Module):
    def __init__(self, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, emb)
        self.gru = nn.GRU(emb, hid, batch_first=True)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(hid, N_CLASS)

    def forward(self, x):
        out, _ = self.gru(self.drop(self.emb(x)))
        return self.fc(self.drop(out.mean(1)))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        logits = net(x)
    net.train()
    return F.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean().item()


x_big, y_big = utterances(3000)        # the teacher's data
x_few, y_few = utterances(160)         # labelled data of the student
x_pool, _ = utterances(2400)           # unlabelled traffic
x_test, y_test = utterances(800)

teacher = IntentGRU(40, 48)
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for epoch in range(3):
    for idx in torch.randperm(len(x_big)).split(50):
        loss = F.cross_entropy(teacher(x_big[idx]), y_big[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("teacher epoch %d test loss %.4f acc %.3f" % (epoch, *accuracy(teacher, x_test, y_test)))

teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)


def distillation_loss(student_logits, teacher_logits):
    soft_student = F.softmax(student_logits / TEMPERATURE, dim=-1)
    soft_teacher = F.softmax(teacher_logits / TEMPERATURE, dim=-1)
    return F.kl_div(soft_student, soft_teacher, reduction="batchmean") * TEMPERATURE ** 2


student = IntentGRU(24, 24)
opt = torch.optim.Adam(student.parameters(), lr=4e-3)
for epoch in range(6):
    kd_sum = ce_sum = 0.0
    chunks = torch.randperm(len(x_pool)).split(40)
    for idx in chunks:
        few = torch.randint(len(x_few), (16,))
        with torch.no_grad():
            t_logits = teacher(x_pool[idx])
        kd = distillation_loss(student(x_pool[idx]), t_logits)
        ce = F.cross_entropy(student(x_few[few]), y_few[few])
        loss = ALPHA * kd + (1 - ALPHA) * ce
        opt.zero_grad()
        loss.backward()
        opt.step()
        kd_sum += kd.item()
        ce_sum += ce.item()
    tl, ta = accuracy(student, x_test, y_test)
    print("student epoch %d kd %.4f ce %.4f | test loss %.4f acc %.3f"
          % (epoch, kd_sum / len(chunks), ce_sum / len(chunks), tl, ta))
