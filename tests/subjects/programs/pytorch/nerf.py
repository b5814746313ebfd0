"""A radiance field: rays are rendered by a coarse network and, where that is dense, by a fine one."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Embedder:
    def __init__(self, input_dims, multires):
        freqs = 2.0 ** torch.linspace(0.0, multires - 1, multires)
        self.embed_fns = [lambda x: x]
        for freq in freqs:
            for fn in (torch.sin, torch.cos):
                self.embed_fns.append(lambda x, fn=fn, freq=freq: fn(x * freq))
        self.out_dim = input_dims * len(self.embed_fns)

    def embed(self, inputs):
        return torch.cat([fn(inputs) for fn in self.embed_fns], -1)


class NeRF(nn.Module):
    def __init__(self, D=3, W=32, input_ch=3, input_ch_views=3, skips=(1,)):
        super().__init__()
        self.skips, self.input_ch, self.input_ch_views = skips, input_ch, input_ch_views
        widths = [W + input_ch if i in skips else W for i in range(D - 1)]
        self.pts_linears = nn.ModuleList([nn.Linear(input_ch, W)] + [nn.Linear(w, W) for w in widths])
        self.views_linears = nn.ModuleList([nn.Linear(input_ch_views + W, W // 2)])
        self.feature_linear = nn.Linear(W, W)
        self.alpha_linear = nn.Linear(W, 1)
        self.rgb_linear = nn.Linear(W // 2, 3)

    def forward(self, x):
        input_pts, input_views = torch.split(x, [self.input_ch, self.input_ch_views], dim=-1)
        h = input_pts
        for i, layer in enumerate(self.pts_linears):
            h = F.relu(layer(h))
            if i in self.skips:
                h = torch.cat([input_pts, h], -1)
        alpha = self.alpha_linear(h)
        h = torch.cat([self.feature_linear(h), input_views], -1)
        for layer in self.views_linears:
            h = F.relu(layer(h))
        return torch.cat([torch.sigmoid(self.rgb_linear(h)), alpha], -1)


embed_pts, embed_dirs = Embedder(3, 4), Embedder(3, 2)


def run_network(pts, viewdirs, fn, netchunk=4096):
    flat = pts.reshape(-1, 3)
    dirs = viewdirs[:, None].expand(pts.shape).reshape(-1, 3)
    embedded = torch.cat([embed_pts.embed(flat), embed_dirs.embed(dirs)], -1)
    outputs = torch.cat([fn(embedded[i : i + netchunk]) for i in range(0, len(embedded), netchunk)], 0)
    return outputs.reshape(*pts.shape[:-1], 4)


def raw2outputs(raw, z_vals):
    dists = torch.cat([z_vals[..., 1:] - z_vals[..., :-1], torch.full_like(z_vals[..., :1], 1e2)], -1)
    alpha = 1.0 - torch.exp(-F.relu(raw[..., 3]) * dists)
    through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
    weights = alpha * through
    return torch.sum(weights[..., None] * raw[..., :3], -2), weights


def sample_pdf(bins, weights, n):
    pdf = (weights + 1e-5) / torch.sum(weights + 1e-5, -1, keepdim=True)
    cdf = torch.cumsum(pdf, -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    inds = torch.searchsorted(cdf, torch.rand(len(cdf), n), right=True).clamp(1, cdf.shape[-1] - 1)
    return torch.gather(bins, 1, inds - 1)


def render_rays(rays_o, rays_d, coarse, fine, n_samples=10, n_importance=8):
    z_vals = torch.linspace(1.0, 3.0, n_samples).expand(len(rays_o), n_samples)
    z_vals = z_vals + torch.rand(z_vals.shape) * (2.0 / n_samples)
    pts = rays_o[:, None] + rays_d[:, None] * z_vals[..., None]
    rgb0, weights = raw2outputs(run_network(pts, rays_d, coarse), z_vals)
    z_samples = sample_pdf(z_vals, weights[..., 1:].detach(), n_importance)
    z_vals, _ = torch.sort(torch.cat([z_vals, z_samples], -1), -1)
    pts = rays_o[:, None] + rays_d[:, None] * z_vals[..., None]
    rgb, _ = raw2outputs(run_network(pts, rays_d, fine), z_vals)
    return rgb, rgb0


def scene_rays(n, rng):
    """Rays towards a ball of three colours, and what they see."""
    origin = rng.normal(size=(n, 3))
    origin *= 2 / np.linalg.norm(origin, axis=1, keepdims=True)
    toward = -origin + rng.uniform(-0.9, 0.9, size=(n, 3))
    toward /= np.linalg.norm(toward, axis=1, keepdims=True)
    b = (origin * toward).sum(1)
    root = b**2 - (origin**2).sum(1) + 0.6**2
    hit = origin + toward * (-b - np.sqrt(np.maximum(root, 0)))[:, None]
    rgb = np.where((root > 0)[:, None], 0.5 + 0.5 * hit / 0.6, 0.0)
    return [torch.tensor(v, dtype=torch.float32) for v in (origin, toward, rgb)]


def train():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    channels = {"input_ch": embed_pts.out_dim, "input_ch_views": embed_dirs.out_dim}
    model, model_fine = NeRF(**channels), NeRF(**channels)
    grad_vars = list(model.parameters()) + list(model_fine.parameters())
    optimizer = torch.optim.Adam(grad_vars, lr=5e-3, betas=(0.9, 0.999))
    global_step = 0
    for i in range(20):
        rays_o, rays_d, target = scene_rays(24, rng)
        rgb, rgb0 = render_rays(rays_o, rays_d, model, model_fine)
        optimizer.zero_grad()
        img_loss = torch.mean((rgb - target) ** 2)
        psnr = -10.0 * torch.log10(img_loss.detach())
        loss = img_loss + torch.mean((rgb0 - target) ** 2)
        loss.backward()
        optimizer.step()
        for param_group in optimizer.param_groups:
            param_group["lr"] = 5e-3 * (0.1 ** (global_step / 100))
        print(f"[TRAIN] Iter: {i} Loss: {loss.item():.6f}  PSNR: {psnr.item():.4f}")
        global_step += 1
    with torch.no_grad():
        rays_o, rays_d, target = scene_rays(16, rng)
        rgb, _ = render_rays(rays_o, rays_d, model, model_fine)
    print(f"Test mse {F.mse_loss(rgb, target).item():.6f}")
    np.save("view.npy", rgb.numpy())
    states = {"network_fn_state_dict": model.state_dict(), "network_fine_state_dict": model_fine.state_dict()}
    torch.save({"global_step": global_step, **states}, "000020.tar")
    print(torch.rand(1).item(), rng.random())


if __name__ == "__main__":
    train()
