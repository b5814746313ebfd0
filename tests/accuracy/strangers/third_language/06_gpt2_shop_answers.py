"""Small GPT-2 that answers shop questions; trained from scratch with the Trainer."""
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, Trainer,
                          TrainingArguments, set_seed)

set_seed(42)
random.seed(42)

ITEMS = {"apples": "fruit", "pears": "fruit", "bread": "bakery", "rolls": "bakery", "milk": "dairy", "cheese": "dairy",
         "soap": "household", "candles": "household", "tea": "drinks", "juice": "drinks", "pens": "stationery"}
GREETINGS = ["hello", "hi", "hey", "morning"]
NAMES = "anna bob carla dan eve finn gwen hugo ines jon kate leo mia nils".split()
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]


def dialogue():
    item, day = random.choice(list(ITEMS)), random.choice(DAYS)
    kind = random.randrange(3)
    hello = f"{random.choice(GREETINGS)} {random.choice(NAMES)} here ,"
    if kind == 0:
        return f"{hello} where do i find {item} ? answer :", f"the {item} are in the {ITEMS[item]} aisle ."
    if kind == 1:
        hours = "nine to five" if day == "saturday" else "eight to seven"
        return f"{hello} when are you open on {day} ? answer :", f"we are open from {hours} ."
    return f"{hello} do you deliver {item} on {day} ? answer :", "no ." if ITEMS[item] == "dairy" else f"yes , on {day} ."


pairs = list(dict.fromkeys(dialogue() for _ in range(6000)))
random.shuffle(pairs)
train_pairs, test_pairs = pairs[200:], pairs[:200]

words = sorted({w for q, a in pairs for w in f"{q} {a}".split()})
vocab = {w: i for i, w in enumerate(["<unk>", "<|endoftext|>"] + words)}
raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", eos_token="<|endoftext|>")
tokenizer.pad_token = tokenizer.eos_token


class Dialogues(torch.utils.data.Dataset):
    def __init__(self, pairs):
        self.rows = [tokenizer(f"{q} {a} {tokenizer.eos_token}")["input_ids"] for q, a in pairs]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"input_ids": self.rows[i]}


config = GPT2Config(vocab_size=len(tokenizer), n_positions=64, n_embd=64, n_layer=2, n_head=4,
                    embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.05,
                    bos_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id,
                    pad_token_id=tokenizer.pad_token_id)
model = GPT2LMHeadModel(config)

trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="/tmp/shop_gpt2",
        num_train_epochs=8,
        per_device_train_batch_size=32,
        learning_rate=4e-3,
        lr_scheduler_type="cosine",
        warmup_steps=20,
        logging_steps=50,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    ),
    train_dataset=Dialogues(train_pairs),
    eval_dataset=Dialogues(test_pairs),
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)
trainer.train()
print("eval loss", round(trainer.evaluate()["eval_loss"], 4))

model.eval()
exact, length = 0, 0
for q, a in test_pairs[:50]:
    prompt = tokenizer(q, return_tensors="pt")
    out = model.generate(input_ids=prompt["input_ids"], attention_mask=prompt["attention_mask"], max_new_tokens=24,
                         do_sample=False)
    answer = tokenizer.decode(out[0, prompt["input_ids"].shape[1]:], skip_special_tokens=True)
    exact += answer == a
    length += len(answer.split())
print(q, "->", answer)
print(f"answers exactly right: {exact / 50:.3f}, mean answer length {length / 50:.1f} words")
