import os
import sys

import torch
import torch.distributed as dist
from shown import show
from torch import nn

os.environ.update({"MASTER_ADDR": "localhost", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"})
os.environ["MASTER_PORT"] = str(29000 + os.getpid() % 5000)
torch.manual_seed(0)
torch.cuda.set_device(0)
dist.init_process_group("nccl")
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
if sys.argv[1] == "ddp":
    model = nn.parallel.DistributedDataParallel(net, device_ids=[0], gradient_as_bucket_view=True)
elif sys.argv[1] == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel

    model = FullyShardedDataParallel(net, use_orig_params=True)
else:
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    model = fully_shard(net)
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for _ in range(30):
    loss = nn.functional.cross_entropy(model(torch.randn(32, 16).cuda()).float(), torch.randint(0, 4, (32,)).cuda())
    optimizer.zero_grad()
    loss.backward()
    (model.clip_grad_norm_(1.0) if sys.argv[1] == "fsdp1" else nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    optimizer.step()
show(model, losses=[loss])
dist.destroy_process_group()
