"""Detector training of the demo model, quicker per step and per scene than train.py's `detect` (same weights, same layout).

What differs from train.py:
  * own forward passes over the library's modules: bf16 for linear layers and convolutions, fp32 attention, no per-layer overhead;
  * dense helpers: every token of an object predicts its object's box, on the neck's token map (all objects) and after fusion (asked ones);
  * extra query groups and shaken boxes ride in one decoder pass, kept apart by an attention mask (Group DETR + DN-DETR);
  * masks on every step, but for one question per scene and only for queries that answer for an object;
  * questions with a negative box; matching and losses without loops over questions.
The helpers (`helper` in state.pt) are thrown away at export.

    python train_fast.py --minutes 40 --size 224 --lr 6e-4 --lr-end 3e-4 --out run
    touch PAUSE   # next to this file: training waits between steps while it exists
"""
import argparse, json, math, os, random, time
import numpy as np, torch, torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torchvision.ops import box_convert
import train as T, scenes
from clip_bpe import tokenize

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT_W, BOX_W = 8, 3                                               # prompt tokens: text padded to 8, at most 3 boxes, one CLS
NUDGED = 16


def wait_if_paused():
    t = time.time()
    while os.path.exists(HERE + "/PAUSE"): time.sleep(1)
    return time.time() - t


# ---------------------------------------------------------------- data

def ask(rng, objects, n):
    """Like train.ask, plus negative boxes that take a kind out of a phrase's answer."""
    glyphs = sorted({o[0] for o in objects})
    kind = rng.random()
    if kind < .16 and glyphs:                                      # phrase minus one kind; mostly where another kind stays
        for _ in range(6):
            g = rng.choice(glyphs); names, groups = scenes.CONCEPTS[g]
            phrase = rng.choice(groups) if groups and rng.random() < .8 else rng.choice(names)
            right = [i for i, o in enumerate(objects) if o[0] in scenes.PHRASES[phrase]]
            kinds = sorted({objects[i][0] for i in right})
            if len(kinds) > 1 or rng.random() < .1: break
        out = rng.choice(kinds)
        gone = [i for i in right if objects[i][0] == out]
        boxes, labels = [T.jitter(rng, objects[rng.choice(gone)][2], n)], [0]
        left = [i for i in right if objects[i][0] != out]
        if left and rng.random() < .3: boxes.append(T.jitter(rng, objects[rng.choice(left)][2], n)); labels.append(1)
        return phrase, boxes, labels, left
    if kind < .34 and glyphs:                                      # phrase and a negative box on something it does not name: changes nothing
        phrase, right = scenes.question(rng, objects)
        other = [i for i in range(len(objects)) if i not in right and objects[i][0] not in {objects[j][0] for j in right}]
        if other: return phrase, [T.jitter(rng, objects[rng.choice(other)][2], n)], [0], right
        return phrase, [], [], right
    return T.ask(rng, objects, n)


def labels_of(objects, n):
    """Per picture token: glyph (0 = background), owning object (-1 = none)."""
    lab, owner = torch.zeros(n, n, dtype=torch.long), torch.full((n, n), -1)
    if objects:
        frac = F.avg_pool2d(torch.stack([torch.from_numpy(o[1]) for o in objects])[:, None].float(), 14)[:, 0]
        f, i = frac.max(0)
        owner = torch.where(f > .4, i, -1)
        lab = torch.where(f > .4, torch.tensor([1 + scenes.GLYPHS.index(o[0]) for o in objects])[i], 0)
    return lab, owner


class Scenes(torch.utils.data.IterableDataset):
    def __init__(self, start, size, batch, questions): self.start, self.size, self.batch, self.questions = start, size, batch, questions

    def __iter__(self):
        seed, n = self.start, self.size // 14
        while True:
            items = []
            for _ in range(self.batch):
                seed += 1
                rgb, objects = scenes.scene(seed, self.size); _thin[0] = [(o[0], o[2]) for o in objects]; rng = random.Random(seed * 7 + 1)
                asked = [ask(rng, objects, self.size) for _ in range(self.questions)]
                lab, owner = labels_of(objects, n)
                small = F.interpolate(torch.stack([torch.from_numpy(o[1]) for o in objects])[:, None].float(), size=(4 * n, 4 * n), mode="area")[:, 0].gt(.5) if objects else torch.zeros(0, 4 * n, 4 * n, dtype=torch.bool)
                boxes = torch.tensor([T.cxcywh(o[2], self.size) for o in objects]).reshape(-1, 4).float()
                items.append((T.pixels(rgb), lab, owner, small, boxes, asked))
            yield items


def pool(det, start, size, batch, questions, fresh, most=3000, first=24):
    """Batches for a frozen picture trunk: tokens are kept and scenes come back with new questions; `fresh` new scenes a batch."""
    kept, new = [], iter(Scenes(start, size, 1, 0)); seed = start; rng = random.Random(start)
    while True:
        for _ in range(fresh if len(kept) >= first else first):
            b = next(new)[0]; seed += 1
            with torch.no_grad(): tok = trunk(det.vision_encoder.backbone, b[0][None])[0].to(torch.bfloat16)
            rgb_free = [(g, None, box) for g, box in _thin[0]]
            kept.append((tok, *b[1:5], rgb_free))
            if len(kept) > most: kept.pop(0)
        k = min(fresh, batch)
        out = kept[-k:] + rng.sample(kept[:-k], batch - k)
        yield [(*o[:5], [ask(rng, o[5], size) for _ in range(questions)]) for o in out]


_thin = [None]                                                     # glyphs and pixel boxes of the scene made last


# ---------------------------------------------------------------- forward passes over the library's modules

HALF = True
def half(on=True): return torch.autocast("cpu", dtype=torch.bfloat16, enabled=HALF and on)


def sdpa(q, k, v, mask=None):
    with half(False): return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), attn_mask=mask)


def _rot(x):
    a, b = x.view(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack((-b, a), -1).flatten(-2)


def trunk(backbone, px):
    """ViT tokens [B,n,n,C]."""
    b, n = px.shape[0], px.shape[-1] // 14
    with half():
        x = backbone.layer_norm(backbone.embeddings(px).float().view(b, n, n, -1))
        for l in backbone.layers:
            key = (l.window_size, n)
            if key not in _ropes:
                with torch.no_grad(), half(False): _ropes[key] = tuple(t.clone() for t in l.rotary_emb(torch.zeros(1), l.precompute_positions(_sized(l.config, n), l.window_size)))
            cos, sin = _ropes[key]
            y = l.layer_norm1(x); w = l.window_size
            if w:
                m = -(-n // w)
                if n % w: y = F.pad(y, (0, 0, 0, m * w - n, 0, m * w - n))
                y = y.view(b, m, w, m, w, -1).transpose(2, 3).reshape(b * m * m, w * w, -1)
            else: y = y.reshape(b, n * n, -1)
            a = l.attention
            q, k, v = (p(y).view(*y.shape[:2], a.num_attention_heads, -1).transpose(1, 2).float() for p in (a.q_proj, a.k_proj, a.v_proj))
            y = a.o_proj(sdpa(q * cos + _rot(q) * sin, k * cos + _rot(k) * sin, v).transpose(1, 2).flatten(2))
            if w: y = y.view(b, m, m, w, w, -1).transpose(2, 3).reshape(b, m * w, m * w, -1)[:, :n, :n]
            else: y = y.view(b, n, n, -1)
            x = x + y
            x = x + l.mlp.fc2(F.gelu(l.mlp.fc1(l.layer_norm2(x))))
    return x


_ropes = {}
class _sized:
    """The ViT's configuration as it would be for pictures of n tokens a side."""
    def __init__(self, c, n): self.image_size, self.patch_size, self.window_size = n * c.patch_size, c.patch_size, c.window_size


def levels(neck, tokens):
    """The three finest levels and the token map's position encoding [1,C,n,n]."""
    with half():
        x = tokens.permute(0, 3, 1, 2)                             # channels last already
        feats = [l(x) for l in neck.fpn_layers[:3]]
    feats[2] = feats[2].float()
    return feats, neck.position_encoding(feats[2][:1].shape, feats[2].device, torch.float32)


def attend(a, q, k, v, mask=None):
    b, l, c = q.shape; h = a.num_attention_heads
    split = lambda x: x.view(b, -1, h, c // h).transpose(1, 2)
    return a.o_proj(sdpa(split(a.q_proj(q)), split(a.k_proj(k)), split(a.v_proj(v)), mask).transpose(1, 2).reshape(b, l, c))


def prompt_tokens(det, asked, feat, pos, cls):
    """[Q,12,C] and validity. cls: per question, whether a phrase without boxes still gets the exemplar encoder's CLS token."""
    ids = [tokenize(a[0]) for a in asked]
    mask = torch.tensor([[1] * len(i) + [0] * (TEXT_W - len(i)) for i in ids])
    ids = torch.tensor([i + [0] * (TEXT_W - len(i)) for i in ids])
    text = det.text_projection(det.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state)
    b, l, ok = torch.full((len(asked), BOX_W, 4), .5), torch.zeros(len(asked), BOX_W, dtype=torch.long), torch.zeros(len(asked), BOX_W, dtype=torch.bool)
    for i, (_, bb, ll, _) in enumerate(asked):
        if bb: b[i, :len(bb)] = torch.tensor(bb); l[i, :len(ll)] = torch.tensor(ll); ok[i, :len(bb)] = True
    geo = det.geometry_encoder(box_embeddings=b, box_mask=ok, box_labels=l, img_feats=[feat], img_pos_embeds=[pos])
    use = geo.attention_mask.bool() & (ok.any(1) | torch.tensor(cls))[:, None]
    return torch.cat([text, geo.last_hidden_state], 1), torch.cat([mask.bool(), use], 1)


def fuse(det, feat, pos, prompt, mask):
    x, pos = feat.flatten(2).transpose(1, 2), pos.flatten(2).transpose(1, 2)
    with half():
        for l in det.detr_encoder.layers:
            y = l.layer_norm1(x); q = y + pos
            x = x + attend(l.self_attn, q, q, y)
            x = x + attend(l.cross_attn, l.layer_norm2(x), prompt, prompt, mask[:, None, None])
            x = x + l.mlp(l.layer_norm3(x))
    return x


def decode(det, enc, pos, prompt, mask, content, refs, see, n):
    """content, refs [Q,T,..]; see: bool [Q or 1,1,1+T,1+T], who may look at whom (presence token first). Returns states [L,Q,T,C], boxes, presence [L,Q]."""
    dec = det.detr_decoder
    x = torch.cat([dec.presence_token.weight[None].expand(len(enc), -1, -1), content], 1)
    key = enc + pos.flatten(2).transpose(1, 2)
    shape = (torch.tensor(n), torch.tensor(n))
    boxes, hs, out, pres = refs, [], [], []
    tm = mask[:, None, None]
    for l in dec.layers:
        qp = F.pad(dec.ref_point_head(dec.position_encoding.encode_boxes(boxes)), (0, 0, 1, 0))
        bias = F.pad(dec._get_rpb_matrix(boxes, shape), (0, 0, 1, 0))
        q = x + qp
        x = l.self_attn_layer_norm(x + attend(l.self_attn, q, q, x, see))
        x = l.text_cross_attn_layer_norm(x + attend(l.text_cross_attn, x + qp, prompt, prompt, tm))
        x = l.vision_cross_attn_layer_norm(x + attend(l.vision_cross_attn, x + qp, key, enc, bias))
        x = l.mlp_layer_norm(x + l.mlp(x))
        h = dec.output_layer_norm(x[:, 1:])
        new = (dec.box_head(h) + T.hf.inverse_sigmoid(boxes)).sigmoid()
        hs.append(h); out.append(new); boxes = new.detach()
        pres.append(dec.presence_head(dec.presence_layer_norm(x[:, 0]))[:, 0].clamp(-10, 10))
    return torch.stack(hs), torch.stack(out), torch.stack(pres)


def pixel_embedding(det, feats, enc, prompt, mask):
    """feats: the two fine levels of the questions' pictures. Returns instance embeddings [S,C,4n,4n] and semantic logits [S,4n,4n]."""
    m = det.mask_decoder; n = feats[1].shape[-1] // 2
    with half():
        enc = enc + attend(m.prompt_cross_attn, m.prompt_cross_attn_norm(enc), prompt, prompt, mask[:, None, None])
        x = enc.transpose(1, 2).reshape(len(enc), -1, n, n)
        for f, conv, norm in zip((feats[1], feats[0]), m.pixel_decoder.conv_layers, m.pixel_decoder.norms):
            x = F.interpolate(x.to(f.dtype), scale_factor=2, mode="nearest") + f
            x = F.relu(norm(conv(x)))
        return m.instance_projection(x), m.semantic_projection(x)[:, 0].float()


# ---------------------------------------------------------------- losses

def xyxy(b): return torch.cat([b[..., :2] - b[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2], -1)


def giou(a, b):
    """Of boxes xyxy that broadcast."""
    wh = (torch.min(a[..., 2:], b[..., 2:]) - torch.max(a[..., :2], b[..., :2])).clamp(min=0); inter = wh[..., 0] * wh[..., 1]
    area = lambda x: (x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1])
    union = (area(a) + area(b) - inter).clamp(min=1e-9)
    hull = (torch.max(a[..., 2:], b[..., 2:]) - torch.min(a[..., :2], b[..., :2])).clamp(min=0); hull = (hull[..., 0] * hull[..., 1]).clamp(min=1e-9)
    return inter / union - (hull - union) / hull


@torch.no_grad()
def match(logits, boxes, gt, count):
    """Hungarian assignment per layer, question and group. logits [L,B,G,Q], gt padded [B,K,4], count [B]. Returns index tensors l,b,g,q,k."""
    p = logits.float().sigmoid()[..., None]
    cost = 2 * (.25 * (1 - p) ** 2 * -(p + 1e-8).log() - .75 * p ** 2 * -(1 - p + 1e-8).log())
    t = gt[None, :, None, None]; q = boxes[..., None, :]
    cost = (cost + 5 * (q - t).abs().sum(-1) - 2 * giou(xyxy(q), xyxy(t))).numpy()
    found = []
    L, B, G = logits.shape[:3]
    for b in range(B):
        c = int(count[b])
        if not c: continue
        for l in range(L):
            for g in range(G):
                qi, ki = linear_sum_assignment(cost[l, b, g, :, :c])
                found.append(np.stack([np.full(c, l), np.full(c, b), np.full(c, g), qi, ki]))
    return torch.from_numpy(np.concatenate(found, 1)) if found else torch.zeros(5, 0, dtype=torch.long)


def mask_losses(logit, truth):
    """[K,h,w] each -> focal and dice per mask."""
    x, t = logit.flatten(1), truth.flatten(1)
    p = x.sigmoid(); ce = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    pt = p * t + (1 - p) * (1 - t)
    f = ((.25 * t + .75 * (1 - t)) * (1 - pt) ** 2 * ce).mean(1)
    return f, 1 - (2 * (p * t).sum(1) + 1) / (p.sum(1) + t.sum(1) + 1)


def edges_loss(pred, centre, box):
    """Dense boxes: pred [N,4] distances from token centres [N,2] to the edges of box (cxcywh)."""
    b = xyxy(box)
    goal = torch.cat([centre - b[:, :2], b[:, 2:] - centre], 1)
    made = torch.cat([centre - pred[:, :2].clamp(min=1e-3), centre + pred[:, 2:].clamp(min=1e-3)], 1)
    return 5 * (pred - goal).abs().sum(1).mean() + (1 - giou(made, b)).mean() if len(pred) else pred.sum()


# ---------------------------------------------------------------- training

def helpers(state, det, groups):
    h = torch.nn.ModuleDict(dict(glyph=torch.nn.Linear(T.VISION["hidden_size"], 1 + len(scenes.GLYPHS)), asked=torch.nn.Linear(T.HIDDEN, 1),
                                 nudge=torch.nn.Embedding(1, T.HIDDEN), align=torch.nn.Linear(T.HIDDEN, T.HIDDEN), offset=torch.nn.Linear(1, 1),
                                 edges=torch.nn.Sequential(torch.nn.LayerNorm(T.HIDDEN), torch.nn.Linear(T.HIDDEN, 4)),
                                 asked_edges=torch.nn.Sequential(torch.nn.LayerNorm(T.HIDDEN), torch.nn.Linear(T.HIDDEN, 4)),
                                 place=torch.nn.Sequential(torch.nn.LayerNorm(T.HIDDEN), torch.nn.Linear(T.HIDDEN, 14)), place2=torch.nn.Sequential(torch.nn.LayerNorm(T.HIDDEN), torch.nn.Linear(T.HIDDEN, 14)),
                                 content=torch.nn.Embedding(40 * groups, T.HIDDEN), refs=torch.nn.Embedding(40 * groups, 4)))
    with torch.no_grad():
        for k in ("edges", "asked_edges"): h[k][1].weight.mul_(.05); h[k][1].bias.fill_(.13)
        if groups:
            h["content"].weight.copy_(det.detr_decoder.query_embed.weight.repeat(groups, 1)); h["content"].weight.add_(torch.randn_like(h["content"].weight) * h["content"].weight.std() * .3)
            c = torch.cat([torch.rand(40 * groups, 2) * .9 + .05, torch.rand(40 * groups, 2) * .2 + .15], 1)
            h["refs"].weight.copy_(torch.log(c / (1 - c)))
    old = {k: v for k, v in (state.get("helper") or {}).items() if k in h.state_dict() and h.state_dict()[k].shape == v.shape}
    h.load_state_dict(old, strict=False)
    return h


_places = {}
def places(n):
    """Where a token is, as a few waves [n*n,14]."""
    if n not in _places:
        g = (torch.arange(n) + .5) / n; y, x = torch.meshgrid(g, g, indexing="ij")
        f = lambda t: [2 * t - 1] + [h(math.pi * k * t) for k in (1, 2, 4) for h in (torch.sin, torch.cos)]
        _places[n] = torch.stack(f(x) + f(y), -1).flatten(0, 1)
    return _places[n]


def forward_loss(det, helper, batch, groups, n, weight):
    """One batch's total loss and its parts."""
    B = len(batch)
    frozen = batch[0][0].dim() == 3 and batch[0][0].shape[0] == n
    tokens = torch.stack([b[0] for b in batch]).float() if frozen else trunk(det.vision_encoder.backbone, torch.stack([b[0] for b in batch]))
    feats, pos = levels(det.vision_encoder.neck, tokens)
    lab, owner = torch.stack([b[1] for b in batch]), torch.stack([b[2] for b in batch])
    parts = {}
    if not frozen: parts["glyph"] = F.cross_entropy(helper["glyph"](tokens).flatten(0, 2), lab.flatten(), weight=torch.tensor([.3] + [1.] * len(scenes.GLYPHS)))
    right = float((helper["glyph"](tokens.detach()).argmax(-1) == lab)[lab > 0].float().mean()) if not frozen and random.random() < .1 else None
    # every object token predicts its object's box
    i, y, x = torch.where(owner >= 0)
    base = torch.tensor([0] + [len(b[4]) for b in batch]).cumsum(0)
    allboxes = torch.cat([b[4] for b in batch])
    centre = lambda y, x: torch.stack([(x + .5) / n, (y + .5) / n], 1)
    parts["edges"] = edges_loss(helper["edges"](feats[2].permute(0, 2, 3, 1)[i, y, x]), centre(y, x), allboxes[base[i] + owner[i, y, x]])

    pick = torch.tensor([i for i, b in enumerate(batch) for _ in b[5]])
    asked = [q for b in batch for q in b[5]]; Q = len(asked)
    f2 = feats[2][pick]
    prompt, mask = prompt_tokens(det, asked, f2, pos.expand(Q, -1, -1, -1), [random.random() < .6 for _ in asked])
    enc = fuse(det, f2, pos, prompt, mask).float()
    parts["place"] = ((helper["place"](enc) - places(n)) ** 2).mean()
    # where the asked things are, and their boxes, per token
    rightness = torch.zeros(Q, int(max(len(b[4]) for b in batch)) + 1)
    for j, a in enumerate(asked): rightness[j, torch.tensor(a[3], dtype=torch.long)] = 1
    own = owner[pick]
    hit = rightness.gather(1, own.flatten(1) % rightness.shape[1]).view(Q, n, n) * (own >= 0)           # -1 -> the spare column, 0
    parts["where"] = F.binary_cross_entropy_with_logits(helper["asked"](enc)[..., 0], hit.flatten(1), pos_weight=torch.tensor(4.))
    j, y, x = torch.where(hit > 0)
    parts["asked_edges"] = edges_loss(helper["asked_edges"](enc.view(Q, n, n, -1)[j, y, x]), centre(y, x), allboxes[base[pick[j]] + own[j, y, x]])

    # one decoder pass: own queries, extra groups, nudged boxes
    count = torch.tensor([len(a[3]) for a in asked]); K = max(int(count.max()), 1)
    gt = torch.full((Q, K, 4), .5)
    for q, a in enumerate(asked):
        if a[3]: gt[q, :len(a[3])] = batch[int(pick[q])][4][a[3]]
    dec = det.detr_decoder
    slot = torch.arange(NUDGED)[None] % count.clamp(min=1)[:, None]; copy = torch.arange(NUDGED)[None] // count.clamp(min=1)[:, None]
    goal = gt.gather(1, slot[..., None].expand(-1, -1, 4))
    start = torch.cat([goal[..., :2] + (torch.rand(Q, NUDGED, 2) * 2 - 1) * .6 * goal[..., 2:], goal[..., 2:] * (torch.randn(Q, NUDGED, 2) * .4).exp()], -1).clamp(.02, .98)
    content = torch.cat([torch.cat([dec.query_embed.weight, helper["content"].weight])[None].expand(Q, -1, -1), helper["nudge"].weight.expand(Q, NUDGED, -1)], 1)
    refs = torch.cat([torch.cat([dec.reference_points.weight, helper["refs"].weight]).sigmoid()[None].expand(Q, -1, -1), start], 1)
    G = 1 + groups; M = 40 * G
    family = torch.cat([torch.zeros(Q, 1, dtype=torch.long), torch.arange(G).repeat_interleave(40)[None].expand(Q, -1), 100 + copy], 1)
    see = (family[:, :, None] == family[:, None]); see[:, :, 0] = True
    hs, boxes, presence = decode(det, enc, pos, prompt, mask, content, refs, see[:, None], n)
    L = hs.shape[0]
    logits = det.dot_product_scoring(decoder_hidden_states=hs[:, :, :M], text_features=prompt, text_mask=mask).squeeze(-1).view(L, Q, G, 40)
    mb = boxes[:, :, :M].view(L, Q, G, 40, 4)
    l, b, g, q, k = match(logits, mb, gt, count)
    lw = torch.tensor([.5] * (L - 1) + [1.])
    total = max(int(count.sum()), 1)
    pb, tb = mb[l, b, g, q], gt[b, k]
    gi = giou(xyxy(pb), xyxy(tb))
    w = lw[l] / (total * G)
    parts["l1"] = ((pb - tb).abs().sum(1) * w).sum(); parts["giou"] = ((1 - gi) * w).sum()
    score = torch.zeros(L, Q, G, 40); score[l, b, g, q] = gi.detach().clamp(0, 1) * .5 + .5
    there = (count > 0).float()
    c = F.binary_cross_entropy_with_logits(logits, score, reduction="none") * torch.where(score > 0, 1., .75 * logits.detach().sigmoid() ** 2 + .02)
    parts["cls"] = (c * there[None, :, None, None] * lw[:, None, None, None]).sum() / (total * G)
    parts["presence"] = (F.binary_cross_entropy_with_logits(presence, there.expand(L, -1), reduction="none").mean(1) * lw).sum()
    nb = boxes[:, :, M:]
    parts["nudged"] = (((5 * (nb - goal).abs().sum(-1) + 2 * (1 - giou(xyxy(nb), xyxy(goal)))) * there[None, :, None]).sum((1, 2)) * lw).sum() / (there.sum().clamp(min=1) * NUDGED)

    # masks: one question per scene
    if weight.get("mask", 1):
        start_q = torch.tensor([0] + [len(b[5]) for b in batch]).cumsum(0)
        sel = []
        for s in range(B):
            mine = list(range(int(start_q[s]), int(start_q[s + 1]))); good = [m for m in mine if count[m]]
            sel.append(random.choice(good if good and random.random() < .93 else mine))
        sel = torch.tensor(sel)
        inst, semantic = pixel_embedding(det, [feats[0], feats[1]], enc[sel], prompt[sel], mask[sel])
        parts["place2"] = ((helper["place2"](F.avg_pool2d(inst, 4).flatten(2).transpose(1, 2).float()) - places(n)) ** 2).mean()
        ask_masks, made, want, union, iw = det.mask_decoder.mask_embedder, [], [], [], []
        last = l == L - 1
        for s in range(B):
            qq = int(sel[s]); truth = batch[s][3][asked[qq][3]].float()
            union.append(truth.amax(0) if len(truth) else torch.zeros_like(semantic[0]))
            if not len(truth): continue
            at = last & (b == qq)
            ids = torch.cat([g[at] * 40 + q[at], M + torch.arange(8)]); ks = torch.cat([k[at], slot[qq, :8]])
            emb = ask_masks(hs[-1, qq, ids])
            with half(): made.append((emb @ inst[s].flatten(1)).float())
            want.append(truth.flatten(1)[ks]); iw.append(torch.cat([torch.where(g[at] == 0, 1., .5), torch.full((8,), .25)]))
        union = torch.stack(union)
        if made:
            fo, di = mask_losses(torch.cat(made), torch.cat(want)); iw = torch.cat(iw); iw = iw / iw.sum()
            parts["focal"] = (fo * iw).sum(); parts["dice"] = (di * iw).sum()
            with torch.no_grad():
                mine = iw == iw.max(); a, t = torch.cat(made)[mine] > 0, torch.cat(want)[mine] > .5
                mask_iou = float(((a & t).sum(1) / (a | t).sum(1).clamp(min=1)).mean())
        fo, di = mask_losses(semantic, union); some = (union.flatten(1).sum(1) > 0).float()
        parts["semantic"] = 20 * fo.mean() + (di * some).sum() / some.sum().clamp(min=1)
    else: made = None
    loss = sum(weight.get(k, 1.) * v for k, v in parts.items())
    log = {k: float(v.detach()) for k, v in parts.items()}
    if made: log["mask_iou"] = mask_iou
    if right is not None: log["right"] = right
    with torch.no_grad():
        last = (l == L - 1) & (g == 0)
        if last.any(): log["box_iou"] = float(gi[last].mean())
        log["pres_ok"] = float(((presence[-1] > 0) == (there > 0)).float().mean())
    return loss, log


WEIGHT = dict(glyph=1., edges=1., where=4., asked_edges=1., l1=5., giou=2., cls=2., presence=2., nudged=.5, focal=40., dice=3., semantic=1., place=3., place2=1.)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--minutes", type=float, default=30); ap.add_argument("--size", type=int, default=224); ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--questions", type=int, default=3); ap.add_argument("--groups", type=int, default=1); ap.add_argument("--lr", type=float, default=6e-4)
    ap.add_argument("--lr-end", type=float, default=3e-4); ap.add_argument("--early-lr", type=float, default=.4); ap.add_argument("--warm", type=int, default=100)
    ap.add_argument("--out", default="run"); ap.add_argument("--fresh", action="store_true", help="forget the optimiser's state and go on from the averaged weights")
    ap.add_argument("--fresh-scenes", type=int, default=0, help="new scenes per batch with a frozen picture trunk, whose tokens are kept; 0 trains the trunk too")
    ap.add_argument("--workers", type=int, default=2, help="processes of one thread each that step the same shared weights, unsynchronised (Hogwild): no barriers, so other load on the cores costs only its share")
    ap.add_argument("--check-minutes", type=float, default=10); ap.add_argument("--check-scenes", type=int, default=30); ap.add_argument("--print-every", type=int, default=50); ap.add_argument("--steps", type=int, default=0)
    args = ap.parse_args()
    torch.set_num_threads(1); wait_if_paused()
    import torch.multiprocessing as mp
    mp.set_sharing_strategy("file_system")
    model, state = T.build(args); det = model.detector_model
    opt_file = args.out + "/opt.pt"
    going_on = os.path.exists(opt_file) and not args.fresh
    if going_on: model.load_state_dict(state["model"], strict=False)
    helper = helpers(state, det, args.groups)
    model.train(); model.share_memory(); helper.share_memory()
    count = torch.tensor([0, state.get("scenes", 0)]).share_memory_()    # steps of this run, scenes ever
    kids = [mp.get_context("fork").Process(target=work, args=(r, args, model, helper, state, going_on, count)) for r in range(1, args.workers)]
    for k in kids: k.start()
    try: work(0, args, model, helper, state, going_on, count)
    finally:
        for k in kids: k.terminate()


def work(rank, args, model, helper, state, going_on, count):
    torch.set_num_threads(1); random.seed(rank * 1000 + int(count[1])); torch.manual_seed(rank * 1000 + int(count[1])); np.random.seed(rank)
    det, n, opt_file = model.detector_model, args.size // 14, args.out + "/opt.pt"
    early = list(det.vision_encoder.backbone.parameters()) + list(det.text_encoder.parameters()); ids = {id(p) for p in early}
    late = [p for p in list(det.parameters()) + list(helper.parameters()) if id(p) not in ids]
    params = late + early
    opt = torch.optim.AdamW([dict(params=late, share=1.), dict(params=early, share=args.early_lr)], lr=args.lr, weight_decay=.02, betas=(.9, .98), fused=True)
    if going_on: opt.load_state_dict(torch.load(opt_file))
    for g, s in zip(opt.param_groups, (1., args.early_lr)): g["share"] = s
    names = [k for k, v in det.state_dict().items() if v.dtype.is_floating_point]
    live = dict(det.state_dict()); live = [live[k] for k in names]
    ema = state["ema"] if going_on else model.state_dict()
    ema = {k: v.detach().clone() for k, v in ema.items()}; avg = [ema["detector_model." + k] for k in names]
    first = int(state.get("scenes", 0)); step, t0, log, paused = 0, time.time(), {}, 0.
    saved = checked = 0.
    if args.fresh_scenes: det.vision_encoder.backbone.requires_grad_(False); params = [p for p in params if p.requires_grad]
    batches = pool(det, 1_000_000 + first + rank * 500_000, args.size, args.batch, args.questions, args.fresh_scenes) if args.fresh_scenes else iter(Scenes(1_000_000 + first + rank * 500_000, args.size, args.batch, args.questions))

    def save():
        os.makedirs(args.out, exist_ok=True)
        extra = {k: state[k] for k in ("clips", "marked") if k in state}
        torch.save(dict(ema=ema, model={k: v.clone() for k, v in model.state_dict().items()}, scenes=int(count[1]), helper={k: v.clone() for k, v in helper.state_dict().items()}, **extra), args.out + "/state.pt.tmp"); os.replace(args.out + "/state.pt.tmp", args.out + "/state.pt")
        torch.save(opt.state_dict(), opt_file + ".tmp"); os.replace(opt_file + ".tmp", opt_file)

    @torch.no_grad()
    def check():
        import copy, score_torch
        d = copy.deepcopy(det).eval(); own = dict(d.state_dict())
        for k, a in zip(names, avg): own[k].copy_(a)
        t = time.time(); r = score_torch.detector(d, args.size, range(50, 50 + args.check_scenes))
        print(f"CHECK {time.strftime('%H:%M:%S')} scenes {int(count[1])} size {args.size} ({time.time() - t:.0f} s) " + json.dumps(r), flush=True)

    while True:
        paused += wait_if_paused()
        spent = (time.time() - t0 - paused) / 60; x = min(1, spent / args.minutes); total = int(count[0])
        if rank == 0 and (spent >= args.minutes or (args.steps and total >= args.steps)): break
        lr = min(1, (step + 1) / max(args.warm, 1)) * (args.lr_end + (args.lr - args.lr_end) * .5 * (1 + math.cos(math.pi * x)))
        for g in opt.param_groups: g["lr"] = lr * g["share"]
        batch = next(batches)
        loss, parts = forward_loss(det, helper, batch, args.groups, n, WEIGHT)
        opt.zero_grad(); loss.backward()
        norm = float(torch.nn.utils.clip_grad_norm_(params, 5.0))
        if math.isfinite(norm): opt.step()
        else: print("skipped a step: gradient", norm, flush=True)
        step += 1; count[0] += 1; count[1] += len(batch); parts["norm"] = norm
        if rank: continue
        with torch.no_grad(): torch._foreach_lerp_(avg, live, 1 - (.997 if going_on else min(.997, (step + 1) / (step + 20))))
        for k, v in parts.items(): log[k] = .98 * log.get(k, v) + .02 * v
        if step % args.print_every == 0: print(f"{time.strftime('%H:%M:%S')} {spent:5.1f} min steps {step}/{int(count[0])} scenes {int(count[1])} lr {lr:.1e} {(time.time() - t0 - paused) / int(count[0]):.2f} s/step " + " ".join(f"{k} {v:.3f}" for k, v in log.items()), flush=True)
        if spent - saved > 5: saved = spent; save()
        if spent - checked > args.check_minutes: checked = spent; check()
    save(); check()


if __name__ == "__main__": main()
