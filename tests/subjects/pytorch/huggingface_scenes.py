"""Training through transformers.Trainer and Accelerate; knows nothing of the agent.

usage: python huggingface_scenes.py [NOTES.npz]
"""

import os
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from notes import note, note_model, play
from torch import nn

warnings.simplefilter("ignore")

import transformers
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, TrainingArguments

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def sentences(number):
    ids = torch.randint(0, 50, (number, 6), generator=torch.Generator().manual_seed(number))
    return [{"input_ids": row, "labels": row} for row in ids]


def reviews(number):
    ids = torch.randint(0, 50, (number, 6), generator=torch.Generator().manual_seed(number))
    return [{"input_ids": row, "labels": int(row[0]) % 3} for row in ids]


def gpt2():
    return GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=8, n_embd=8, n_layer=1, n_head=2))


def bert():
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12}
    return BertForSequenceClassification(BertConfig(vocab_size=50, num_labels=3, **sizes))


class Trainer(transformers.Trainer):
    """Notes weights before each forward of training, gradients after each backward, and losses of evaluation."""

    trained = evaluated = part = 0

    def training_step(self, model, inputs, *args, **kwargs):
        name = self.name
        if not self.part:
            note_model(name, self.trained, self.model)
        loss = super().training_step(model, inputs, *args, **kwargs)
        note_model(name, self.trained, self.model, gradients=True)
        self.part = (self.part + 1) % self.args.gradient_accumulation_steps
        self.trained += not self.part
        return loss

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        assert model.training == torch.is_grad_enabled()
        if model.training:
            note(f"{self.loss_name[:-1]}{self.part}", self.trained, outputs["loss"])
        elif self.trained:
            note(self.loss_name, self.evaluated, outputs["loss"], "EVAL")
            note(f"{self.name}_output_1", self.evaluated, outputs["logits"], "EVAL")
            self.evaluated += 1
        return (loss, outputs) if return_outputs else loss


def trainer(model, loss_name="Loss_output_0", folder=None, data=sentences, **options):
    arguments = TrainingArguments(
        output_dir=folder or tempfile.mkdtemp(),
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        num_train_epochs=1,
        learning_rate=0.01,
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
        logging_strategy="no",
        **{"save_strategy": "no", **options},
    )
    made = Trainer(model, arguments, train_dataset=data(24), eval_dataset=data(8))
    made.name = type(model).__name__
    made.loss_name = loss_name
    made.remove_callback(transformers.PrinterCallback)
    return made


def language_model():
    model = gpt2()
    run = trainer(model, eval_strategy="steps", eval_steps=3)
    run.train()
    run.evaluate()
    run.predict(sentences(4))
    return [model], 6, 2 + 2 + 2 + 1


def classifier_with_accumulation():
    model = bert()
    run = trainer(model, "CrossEntropyLoss_output_0", data=reviews, gradient_accumulation_steps=2, max_grad_norm=0.01)
    run.train()
    run.evaluate()
    return [model], 3, 2


def half_precision():
    model = gpt2()
    trainer(model, bf16=True).train()
    return [model], 6, 0


def compiled():
    model = gpt2()
    run = trainer(model, torch_compile=True, torch_compile_backend="aot_eager")
    run.train()
    run.evaluate()
    return [model], 6, 2


def resumed():
    with tempfile.TemporaryDirectory() as folder:
        options = {"folder": folder, "save_strategy": "steps", "save_steps": 2}
        first = gpt2()
        trainer(first, max_steps=4, **options).train()
        second = gpt2()
        run = trainer(second, **options)
        run.trained = 4
        run.name += "_2"
        run.train(resume_from_checkpoint=True)
    return [first, second], 4 + 2, 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(4, 5)
        self.fc2 = nn.Linear(5, 3)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def batches():
    generator = torch.Generator().manual_seed(1)
    data = TensorDataset(torch.randn(24, 4, generator=generator), torch.randint(0, 3, (24,), generator=generator))
    return DataLoader(data, batch_size=4)


def accelerate_loop(precision="no", accumulate=1):
    accelerator = Accelerator(cpu=True, mixed_precision=precision, gradient_accumulation_steps=accumulate)
    model = Net()
    wrapped, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1), batches())
    for k, (x, y) in enumerate(data):
        with accelerator.accumulate(wrapped):
            step, part = divmod(k, accumulate)
            if not part:
                note_model("Net", step, model)
            loss = nn.functional.cross_entropy(wrapped(x), y)
            # What is divided by the number of batches is still this loss.
            note(f"Loss_output_{part}", step, loss / accumulate)
            accelerator.backward(loss)
            note_model("Net", step, model, gradients=True)
            accelerator.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            optimizer.zero_grad()
    wrapped.eval()
    with torch.no_grad():
        note("Net_output_0", 0, wrapped(torch.ones(2, 4)), "EVAL")
    return [model], 6 // accumulate, 1


def accelerate_plain():
    return accelerate_loop()


def accelerate_half_precision_accumulating():
    Accelerator().free_memory()
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(True)
    return accelerate_loop("bf16", 2)


SCENES = [
    language_model,
    classifier_with_accumulation,
    half_precision,
    compiled,
    resumed,
    accelerate_plain,
    accelerate_half_precision_accumulating,
]

if __name__ == "__main__":
    play(SCENES)
