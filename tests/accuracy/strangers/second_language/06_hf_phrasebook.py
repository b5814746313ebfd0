"""Tiny GPT-2 that completes 'english = french' phrasebook lines."""
import random

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (DataCollatorForLanguageModeling, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast,
                          Trainer, TrainingArguments, set_seed)

set_seed(0)
random.seed(0)

NOUNS = {"cat": "chat", "dog": "chien", "book": "livre", "garden": "jardin", "bread": "pain", "cheese": "fromage",
         "star": "astre", "bed": "lit", "hat": "chapeau", "wine": "vin"}
ADJS = {"red": "rouge", "big": "grand", "old": "vieux", "black": "noir", "good": "bon", "new": "nouveau"}
DETS = {"the": "le", "a": "un", "my": "mon", "this": "ce"}


def noun_phrase():
    d, n = random.choice(list(DETS)), random.choice(list(NOUNS))
    adjs = random.sample(list(ADJS), random.choice([0, 1, 1, 2]))
    return [d] + adjs + [n], [DETS[d]] + [ADJS[a] for a in adjs] + [NOUNS[n]]


def phrase():
    en, fr = noun_phrase()
    if random.random() < 0.4:
        en2, fr2 = noun_phrase()
        en, fr = en + ["and"] + en2, fr + ["et"] + fr2
    return " ".join(en), " ".join(fr)


pairs = list(dict.fromkeys(phrase() for _ in range(9000)))
random.shuffle(pairs)
test_pairs, train_pairs = pairs[:200], pairs[200:]

words = sorted({w for e, f in pairs for w in (e + " " + f).split()})
vocab = {w: i for i, w in enumerate(["<pad>", "<eos>", "<unk>", "="] + words)}
raw = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", eos_token="<eos>")
tokenizer.pad_token = tokenizer.eos_token
tokenizer.padding_side = "right"

train_set = [tokenizer(f"{e} = {f} <eos>", return_token_type_ids=False) for e, f in train_pairs]
eval_set = [tokenizer(f"{e} = {f} <eos>", return_token_type_ids=False) for e, f in test_pairs]

config = GPT2Config(vocab_size=len(vocab), n_positions=32, n_embd=96, n_layer=2, n_head=4,
                    resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
                    bos_token_id=tokenizer.eos_token_id, eos_token_id=tokenizer.eos_token_id,
                    pad_token_id=tokenizer.pad_token_id)
model = GPT2LMHeadModel(config)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir="phrasebook_out", num_train_epochs=5, per_device_train_batch_size=48,
        per_device_eval_batch_size=100, learning_rate=2e-3, lr_scheduler_type="cosine", warmup_steps=40,
        eval_strategy="epoch", logging_steps=50, save_strategy="no", report_to="none", use_cpu=True,
        disable_tqdm=True, seed=0),
    train_dataset=train_set,
    eval_dataset=eval_set,
    data_collator=DataCollatorForLanguageModeling(tokenizer, mlm=False),
)
trainer.train()

model.eval()
exact, lengths = 0, []
for i, (en, fr) in enumerate(test_pairs):
    prompt = tokenizer(f"{en} =", return_tensors="pt", return_token_type_ids=False)
    out = model.generate(**prompt, max_new_tokens=14, do_sample=False)
    answer = tokenizer.decode(out[0, prompt["input_ids"].size(1):], skip_special_tokens=True)
    lengths.append(len(answer.split()))
    exact += answer == fr
    if i < 5:
        print(f"{en} = {answer}")
print(f"exact translations: {exact / len(test_pairs):.3f}, mean answer length {sum(lengths) / len(lengths):.1f} words")
