"""Puts absolute position into the fusion encoder's output, quickly: markers at the border tokens (the neck's 3x3 convolution sees its zero
padding), then a few hundred cheap steps of neck level 2 + fusion encoder on cached trunk tokens, with a loss that reads the position back."""
import sys, time, random, math, torch, torch.nn.functional as F
import train as T, train_fast as X, scenes
torch.set_num_threads(1); torch.manual_seed(0); random.seed(0)
class A: size = 224; out = sys.argv[1]
minutes, lr0 = float(sys.argv[2]), float(sys.argv[3])
model, state = T.build(A); det = model.detector_model.train(); n = A.size // 14
helper = X.helpers(state, det, 1)
def fourier(n):
    g = (torch.arange(n) + .5) / n; y, x = torch.meshgrid(g, g, indexing="ij")
    f = lambda t: [2 * t - 1] + [h(math.pi * k * t) for k in (1, 2, 4) for h in (torch.sin, torch.cos)]
    return torch.stack(f(x) + f(y), -1).flatten(0, 1)              # [n*n,14]
it = iter(X.Scenes(2_000_000, A.size, 16, 2)); cache = []
with torch.no_grad():
    for _ in range(6):
        b = next(it); tok = X.trunk(det.vision_encoder.backbone, torch.stack([x[0] for x in b])).float(); cache += [(t, x) for t, x in zip(tok, b)]
    layer = det.vision_encoder.neck.fpn_layers[2]
    f2 = layer(cache[0][0][None].permute(0, 3, 1, 2)); rms = float(f2.square().mean().sqrt())
    if not state.get("marked"):
        j = int(layer.proj1.weight.flatten(1).norm(dim=1).argmin()); print("neck rms", rms, "channel", j)
        layer.proj1.weight[j] = 0; layer.proj1.bias[j] = 1; layer.proj2.weight[:, j] = 0
        d = torch.linalg.qr(torch.randn(128, 4))[0].T * 128 ** .5 * rms * .8
        for v, (r, c) in zip(d, ((1, 0), (1, 2), (0, 1), (2, 1))): layer.proj2.weight[:, j, r, c] = v; layer.proj2.bias -= v
head = torch.nn.Sequential(torch.nn.LayerNorm(128), torch.nn.Linear(128, 14))
params = list(layer.parameters()) + list(det.detr_encoder.parameters())
opt = torch.optim.AdamW([dict(params=params), dict(params=list(head.parameters()) + list(helper["asked"].parameters()) + list(helper["asked_edges"].parameters()), k=3)], lr=lr0, betas=(.9, .98), weight_decay=.01, fused=True)
goal = fourier(n); t0 = time.time(); step = 0; log = {}; paused = 0.
while (spent := (time.time() - t0 - paused) / 60) < minutes:
    paused += X.wait_if_paused()
    for g in opt.param_groups: g["lr"] = lr0 * g.get("k", 1) * min(1, (step + 1) / 20) * (.1 + .9 * .5 * (1 + math.cos(math.pi * min(1, spent / minutes))))
    pick = random.sample(range(len(cache)), 4); tok = torch.stack([cache[i][0] for i in pick])
    with X.half(): f2 = layer(tok.permute(0, 3, 1, 2)).float()
    pos = det.vision_encoder.neck.position_encoding(f2[:1].shape, f2.device, torch.float32)
    asked = [random.choice(cache[i][1][5]) for i in pick]
    with torch.no_grad(): prompt, mask = X.prompt_tokens(det, asked, f2.detach(), pos.expand(4, -1, -1, -1), [True] * 4)
    enc = X.fuse(det, f2, pos, prompt, mask).float()
    place = ((head(enc) - goal) ** 2).mean()
    own = torch.stack([cache[i][1][2] for i in pick]); ok = torch.stack([torch.isin(own[q], torch.tensor(a[3], dtype=torch.long)) if a[3] else torch.zeros_like(own[q], dtype=torch.bool) for q, a in enumerate(asked)])
    where = F.binary_cross_entropy_with_logits(helper["asked"](enc)[..., 0], ok.flatten(1).float(), pos_weight=torch.tensor(4.))
    q, y, x = torch.where(ok)
    box = torch.stack([cache[pick[int(a)]][1][4][own[a, b, c]] for a, b, c in zip(q, y, x)]) if len(q) else torch.zeros(0, 4)
    edges = X.edges_loss(helper["asked_edges"](enc.view(4, n, n, -1)[q, y, x]), torch.stack([(x + .5) / n, (y + .5) / n], 1), box)
    opt.zero_grad(); (4 * place + 4 * where + .5 * edges).backward(); torch.nn.utils.clip_grad_norm_(params, 2.); opt.step(); step += 1
    with torch.no_grad(): r2 = 1 - ((head(enc) - goal) ** 2).mean((0, 1)) / goal.var(0)
    for k, v in dict(place=float(place.detach()), r2x=float(r2[0]), r2y=float(r2[7]), r2x4=float(r2[5]), where=float(where.detach()), edges=float(edges.detach())).items(): log[k] = .9 * log.get(k, v) + .1 * v
    if step % 20 == 0: print(f"{time.strftime('%H:%M:%S')} {spent:.1f} min step {step} cpu {time.process_time():.0f} " + " ".join(f"{k} {v:.3f}" for k, v in log.items()), flush=True)
sd = {k: v.clone() for k, v in model.state_dict().items()}
h = helper.state_dict(); h.update({"place." + k: v for k, v in head.state_dict().items()})
torch.save(dict(state, ema=sd, model=sd, helper=h, marked=True), A.out + "/state.pt")
