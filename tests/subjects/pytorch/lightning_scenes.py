"""Training through Lightning and Fabric; knows nothing of the agent.

usage: python lightning_scenes.py [NOTES.npz]
"""

import logging
import warnings

import torch
from notes import note, note_model, play
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")

import lightning
from lightning.pytorch.callbacks import Callback

for name in ("lightning.pytorch", "lightning.fabric"):
    logging.getLogger(name).setLevel(logging.ERROR)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 5)
        self.drop = nn.Dropout(0.2)
        self.fc2 = nn.Linear(5, 3)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(x))))


def loader(batches):
    generator = torch.Generator().manual_seed(batches)
    rows = 8 * batches
    data = TensorDataset(torch.randn(rows, 4, generator=generator), torch.randint(0, 3, (rows,), generator=generator))
    return DataLoader(data, batch_size=8, shuffle=False)


class Notes(Callback):
    """Notes weights before each batch and gradients after each backward pass."""

    def __init__(self, name):
        self.name = name
        self.step = -1

    def on_train_batch_start(self, trainer, module, batch, index):
        if not index % trainer.accumulate_grad_batches:
            self.step += 1
            note_model(self.name, self.step, self.model_of(module))

    def on_after_backward(self, trainer, module):
        note_model(self.name, self.step, self.model_of(module), gradients=True)

    def model_of(self, module):
        return module if self.name == type(module).__name__ else module.model


class Base(lightning.LightningModule):
    """A classifier; what it notes of evaluation counts from its first step of training on."""

    def __init__(self):
        super().__init__()
        self.model = Net()
        self.loss_fn = nn.CrossEntropyLoss()
        self.trained = self.evaluated = 0

    def classify(self, x):
        return self.model(x)

    def training_step(self, batch, index):
        assert self.training
        loss = self.loss_fn(self.classify(batch[0]), batch[1])
        part = index % self.trainer.accumulate_grad_batches
        self.trained += not part
        note(f"CrossEntropyLoss_output_{part}", self.trained - 1, loss)
        return loss

    def validation_step(self, batch, index):
        assert not self.training
        self.evaluate(batch)

    test_step = validation_step

    def predict_step(self, batch, index):
        return self.evaluate(batch)

    def evaluate(self, batch):
        output = self.classify(batch[0])
        loss = self.loss_fn(output, batch[1])
        # The sanity check comes before anything shows which model is trained.
        if self.trained:
            note("CrossEntropyLoss_output_0", self.evaluated, loss, "EVAL")
            note(f"{self.output_name}_output_0", self.evaluated, output, "EVAL")
            self.evaluated += 1
        return output

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Inner(Base):
    """Calls the model inside."""

    output_name = "Net"


class Outer(Base):
    """Calls itself."""

    output_name = "Outer"

    def forward(self, x):
        return self.model(x)

    def classify(self, x):
        return self(x)


def trainer(*callbacks, **options):
    return lightning.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=list(callbacks),
        **options,
    )


def inner_model():
    module = Inner()
    trainer(Notes("Net")).fit(module, loader(3), loader(2))
    return [module], 6, 4


def module_itself():
    module = Outer()
    run = trainer(Notes("Outer"))
    run.fit(module, loader(3), loader(2))
    run.test(module, loader(2), verbose=False)
    run.predict(module, loader(1))
    return [module], 6, 4 + 2 + 1


def accumulation_and_clipping():
    module = Inner()
    trainer(Notes("Net"), accumulate_grad_batches=2, gradient_clip_val=0.01).fit(module, loader(3))
    # Two steps an epoch, the second one of one batch.
    return [module], 4, 0


def half_precision():
    module = Inner()
    trainer(Notes("Net"), precision="bf16-mixed").fit(module, loader(3), loader(1))
    return [module], 6, 2


class Three(lightning.LightningModule):
    """Calls three parts one after the other, and has a loss without a module."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 5)
        self.middle = nn.Linear(5, 5)
        self.decoder = nn.Linear(5, 3)
        self.trained = 0

    def training_step(self, batch, index):
        output = self.decoder(torch.tanh(self.middle(torch.tanh(self.encoder(batch[0])))))
        loss = nn.functional.cross_entropy(output, batch[1])
        note("Loss_output_0", self.trained, loss)
        self.trained += 1
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def three_parts():
    module = Three()
    trainer(Notes("Three")).fit(module, loader(3))
    return [module], 6, 0


class Gan(lightning.LightningModule):
    """Two models, optimized by hand."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Linear(2, 4)
        self.discriminator = nn.Linear(4, 1)
        self.rounds = 0

    def training_step(self, batch, index):
        first, second = self.optimizers()
        bce = nn.functional.binary_cross_entropy_with_logits
        self.toggle_optimizer(second)
        step = self.rounds
        self.rounds += 1
        note_model("Gan", step, self)
        real = self.discriminator(batch[0])
        fake = self.discriminator(self.generator(torch.randn(len(real), 2)).detach())
        loss = bce(real, torch.ones_like(real)) + bce(fake, torch.zeros_like(fake))
        second.zero_grad()
        self.manual_backward(loss)
        note("Loss_output_0", step, loss)
        note("gradient/Gan_discriminator.weight", step, self.discriminator.weight.grad)
        second.step()
        self.untoggle_optimizer(second)
        self.toggle_optimizer(first)
        fake = self.discriminator(self.generator(torch.randn(len(real), 2)))
        first.zero_grad()
        loss = bce(fake, torch.ones_like(fake))
        self.manual_backward(loss)
        note("Loss_output_1", step, loss)
        note("gradient/Gan_generator.weight", step, self.generator.weight.grad)
        first.step()
        self.untoggle_optimizer(first)

    def configure_optimizers(self):
        return [torch.optim.Adam(part.parameters()) for part in (self.generator, self.discriminator)]


def manual_optimization():
    module = Gan()
    trainer().fit(module, loader(3))
    return [module], 6, 0


def fabric_loop():
    fabric = lightning.Fabric(accelerator="cpu", devices=1, precision="bf16-mixed")
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    wrapped, optimizer = fabric.setup(model, optimizer)
    data = fabric.setup_dataloaders(loader(3))
    for k, (x, y) in enumerate(data):
        note_model("Net", k, model)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(wrapped(x), y)
        note("Loss_output_0", k, loss)
        fabric.backward(loss)
        note_model("Net", k, model, gradients=True)
        optimizer.step()
    wrapped.eval()
    for k, (x, _) in enumerate(data):
        with torch.no_grad():
            note("Net_output_0", k, wrapped(x), "EVAL")
    return [model], 3, 3


SCENES = [
    inner_model,
    module_itself,
    accumulation_and_clipping,
    half_precision,
    three_parts,
    manual_optimization,
    fabric_loop,
]

if __name__ == "__main__":
    play(SCENES)
