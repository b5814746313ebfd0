import torch
from peft import LoraConfig, get_peft_model
from shown import show
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(vocab_size=128, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4)
model = get_peft_model(
    LlamaForCausalLM(config).to(torch.bfloat16), LoraConfig(r=4, target_modules=["q_proj", "v_proj"])
).cuda()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
ids = torch.randint(0, 128, (32, 48), device="cuda")
losses = []
for i in range(30):
    rows = ids[(4 * i) % 32 :][:4]
    loss = model(input_ids=rows, labels=rows).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
show(model, losses=losses[::6])
