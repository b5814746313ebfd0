import argparse
import logging
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

logger = logging.getLogger(__name__)


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--micro_batch", type=int, default=16)
    p.add_argument("--accum_steps", type=int, default=8)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--momentum", type=float, default=0.9)
    p.add_argument("--seed", type=int, default=17)
    return p.parse_args()


def get_loaders(args):
    X, y = make_classification(n_samples=5400, n_features=30, n_informative=12, n_redundant=4,
                               n_classes=4, n_clusters_per_class=2, class_sep=1.1,
                               flip_y=0.08, random_state=args.seed)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=1200, random_state=args.seed)
    mean, std = X_tr.mean(0), X_tr.std(0)
    to_ds = lambda a, b: TensorDataset(torch.tensor((a - mean) / std, dtype=torch.float32), torch.tensor(b))
    g = torch.Generator().manual_seed(args.seed)
    train = DataLoader(to_ds(X_tr, y_tr), batch_size=args.micro_batch, shuffle=True, drop_last=True, generator=g)
    return train, DataLoader(to_ds(X_te, y_te), batch_size=400)


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for xb, yb in loader:
            correct += (model(xb).argmax(dim=1) == yb).sum().item()
            total += yb.size(0)
    return correct / total


def train(args):
    torch.manual_seed(args.seed)
    train_loader, test_loader = get_loaders(args)
    model = nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=1e-3)
    criterion = nn.CrossEntropyLoss()
    updates = 0
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for step, (xb, yb) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            (loss / args.accum_steps).backward()
            running += loss.item()
            if (step + 1) % args.accum_steps == 0:
                optimizer.step()
                updates += 1
        logger.info("epoch %d updates %d loss %.4f test acc %.4f", epoch + 1, updates,
                    running / len(train_loader), evaluate(model, test_loader))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    train(get_args())
