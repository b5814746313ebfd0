"""Digits become their negatives and back, without pairs: two generators, two discriminators, a pool of older images."""

import itertools
import random

import torch
import torch.nn as nn
from sklearn.datasets import load_digits


class ResnetGenerator(nn.Module):
    def __init__(self, ngf=8):
        super().__init__()
        self.model = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, ngf, 3),
            nn.InstanceNorm2d(ngf),
            nn.ReLU(True),
            nn.Conv2d(ngf, 1, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.model(x)


class PatchDiscriminator(nn.Module):
    def __init__(self, ndf=8):
        super().__init__()
        self.model = nn.Sequential(nn.Conv2d(1, ndf, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(ndf, 1, 3, 1, 1))

    def forward(self, x):
        return self.model(x)


class ImagePool:
    def __init__(self, size):
        self.size, self.images = size, []

    def query(self, images):
        chosen = []
        for image in images.detach().split(1):
            if len(self.images) < self.size:
                self.images.append(image)
            elif random.random() > 0.5:
                place = random.randrange(self.size)
                self.images[place], image = image, self.images[place]
            chosen.append(image)
        return torch.cat(chosen)


class CycleGAN:
    def __init__(self, lambda_cycle=10.0, lambda_identity=5.0):
        self.netG_A, self.netG_B = ResnetGenerator(), ResnetGenerator()
        self.netD_A, self.netD_B = PatchDiscriminator(), PatchDiscriminator()
        self.fake_A_pool, self.fake_B_pool = ImagePool(24), ImagePool(24)
        self.criterionGAN, self.criterionCycle, self.criterionIdt = nn.MSELoss(), nn.L1Loss(), nn.L1Loss()
        self.optimizer_G = torch.optim.Adam(
            itertools.chain(self.netG_A.parameters(), self.netG_B.parameters()), lr=2e-3, betas=(0.5, 0.999)
        )
        self.optimizer_D = torch.optim.Adam(
            itertools.chain(self.netD_A.parameters(), self.netD_B.parameters()), lr=2e-3, betas=(0.5, 0.999)
        )
        self.lambda_cycle, self.lambda_identity = lambda_cycle, lambda_identity

    def gan_loss(self, prediction, is_real):
        return self.criterionGAN(prediction, torch.full_like(prediction, float(is_real)))

    def set_requires_grad(self, nets, requires_grad):
        for net in nets:
            for param in net.parameters():
                param.requires_grad = requires_grad

    def backward_G(self, real_A, real_B):
        fake_B, fake_A = self.netG_A(real_A), self.netG_B(real_B)
        rec_A, rec_B = self.netG_B(fake_B), self.netG_A(fake_A)
        adversarial = self.gan_loss(self.netD_A(fake_B), True) + self.gan_loss(self.netD_B(fake_A), True)
        cycle = self.criterionCycle(rec_A, real_A) + self.criterionCycle(rec_B, real_B)
        identity = self.criterionIdt(self.netG_A(real_B), real_B) + self.criterionIdt(self.netG_B(real_A), real_A)
        loss_G = adversarial + self.lambda_cycle * cycle + self.lambda_identity * identity
        loss_G.backward()
        return loss_G, fake_A, fake_B

    def backward_D_basic(self, netD, real, fake):
        loss_D = (self.gan_loss(netD(real), True) + self.gan_loss(netD(fake.detach()), False)) * 0.5
        loss_D.backward()
        return loss_D

    def optimize_parameters(self, real_A, real_B):
        self.set_requires_grad([self.netD_A, self.netD_B], False)
        self.optimizer_G.zero_grad()
        loss_G, fake_A, fake_B = self.backward_G(real_A, real_B)
        self.optimizer_G.step()
        self.set_requires_grad([self.netD_A, self.netD_B], True)
        self.optimizer_D.zero_grad()
        loss_D_A = self.backward_D_basic(self.netD_A, real_B, self.fake_B_pool.query(fake_B))
        loss_D_B = self.backward_D_basic(self.netD_B, real_A, self.fake_A_pool.query(fake_A))
        self.optimizer_D.step()
        return {"G": loss_G.item(), "D_A": loss_D_A.item(), "D_B": loss_D_B.item()}


def main():
    random.seed(0)
    torch.manual_seed(0)
    images = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    model = CycleGAN()
    for iters in range(15):
        real_A = images[torch.randint(800, (8,))]
        real_B = -images[800 + torch.randint(800, (8,))]
        losses = model.optimize_parameters(real_A, real_B)
        print(f"(iters: {iters}) " + " ".join(f"{name}: {loss:.6f}" for name, loss in losses.items()))
    for name in ("G_A", "G_B", "D_A", "D_B"):
        torch.save(getattr(model, f"net{name}").state_dict(), f"latest_net_{name}.pth")
    print(random.random(), torch.rand(1).item())


if __name__ == "__main__":
    main()
