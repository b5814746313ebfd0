import tempfile

import torch
from shown import show
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments, set_seed

set_seed(0)
config = GPT2Config(vocab_size=128, n_positions=64, n_embd=64, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0)
model = GPT2LMHeadModel(config)
rows = [{"input_ids": (ids := torch.randint(0, 128, (64,))), "labels": ids} for _ in range(128)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=8,
        num_train_epochs=2,
        bf16=True,
        gradient_checkpointing=True,
        gradient_accumulation_steps=2,
        logging_steps=4,
        report_to=[],
        save_steps=8,
        disable_tqdm=True,
        full_determinism=True,
        eval_strategy="epoch",
        optim="adamw_torch_fused",
        dataloader_pin_memory=True,
    )
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:16])
    # It prints times.
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    print([round(entry["loss"], 10) for entry in trainer.state.log_history if "loss" in entry])
show(model)
