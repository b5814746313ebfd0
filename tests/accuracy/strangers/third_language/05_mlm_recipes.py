"""Pre-train a tiny BERT with masked language modelling on recipe steps."""
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (BertConfig, BertForMaskedLM, PreTrainedTokenizerFast, Trainer, TrainingArguments, set_seed)

set_seed(11)

INGREDIENTS = {"onion": "chop", "garlic": "crush", "carrot": "grate", "potato": "peel", "egg": "beat", "butter": "melt",
               "flour": "sift", "tomato": "slice", "basil": "tear", "cream": "whip", "lemon": "squeeze", "rice": "rinse"}
TOOLS = {"chop": "knife", "crush": "press", "grate": "grater", "peel": "peeler", "beat": "fork", "melt": "pan",
         "sift": "sieve", "slice": "mandoline", "tear": "hands", "whip": "whisk", "squeeze": "juicer", "rinse": "colander"}


def step():
    item = random.choice(list(INGREDIENTS))
    verb = INGREDIENTS[item]
    return random.choice([f"{verb} the {item} with the {TOOLS[verb]}", f"take the {TOOLS[verb]} and {verb} the {item}",
                          f"the {item} goes to the {TOOLS[verb]} now {verb} it"])


lines = list(dict.fromkeys(" then ".join([step(), step()]) for _ in range(8000)))[:1250]
words = sorted({w for line in lines for w in line.split()})
vocab = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + words)}
raw = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
raw.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocab["[CLS]"]), ("[SEP]", vocab["[SEP]"])])
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                    sep_token="[SEP]", mask_token="[MASK]")


class MaskingCollator:
    def __init__(self, tokenizer, probability=0.2):
        self.tokenizer = tokenizer
        self.probability = probability

    def __call__(self, texts):
        enc = self.tokenizer([t["text"] for t in texts], padding=True, return_tensors="pt")
        labels = enc["input_ids"]
        special = torch.isin(labels, torch.tensor(self.tokenizer.all_special_ids))
        picked = (torch.rand(labels.shape) < self.probability) & ~special
        dice = torch.rand(labels.shape)
        enc["input_ids"][picked & (dice < 0.8)] = self.tokenizer.mask_token_id
        random_ids = torch.randint(5, len(self.tokenizer), labels.shape)
        swap = picked & (dice >= 0.9)
        enc["input_ids"][swap] = random_ids[swap]
        return {"input_ids": enc["input_ids"], "attention_mask": enc["attention_mask"], "labels": labels.masked_fill(~picked, -100)}


class Lines(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {"text": self.rows[i]}


config = BertConfig(vocab_size=len(tokenizer), hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                    intermediate_size=128, max_position_embeddings=64)
model = BertForMaskedLM(config)
args = TrainingArguments(output_dir="/tmp/mlm_recipes", num_train_epochs=20, per_device_train_batch_size=32,
                         learning_rate=2e-3, warmup_steps=50, logging_steps=100, save_strategy="no", report_to=[],
                         use_cpu=True, disable_tqdm=True, remove_unused_columns=False)
trainer = Trainer(model=model, args=args, train_dataset=Lines(lines[:1100]), data_collator=MaskingCollator(tokenizer))
trainer.train()

# fill in one hidden word in each of the held-out lines
model.eval()
random.seed(5)
right = 0
for line in lines[1100:]:
    tokens = line.split()
    at = random.randrange(len(tokens))
    answer, tokens[at] = tokens[at], tokenizer.mask_token
    enc = tokenizer(" ".join(tokens), return_tensors="pt")
    with torch.no_grad():
        logits = model(input_ids=enc["input_ids"], attention_mask=enc["attention_mask"]).logits
    where = (enc["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
    right += logits[0, where].argmax().item() == vocab[answer]
print(f"hidden words guessed: {right / 150:.3f}")
