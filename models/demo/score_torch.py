"""Scores of the demo model's detector in PyTorch: phrases, exemplar boxes, and negative boxes on what is asked for and on something else.

    python score_torch.py --size 336 --seeds 8000000 100 --out run          # run/state.pt's averaged weights
    python score_torch.py --size 336 --seeds 8000000 100 --model models/demo  # or an exported folder

score.py scores the same weights as Stencil runs them, phrases only."""
import argparse, json, os, random
import numpy as np, torch, torch.nn.functional as F
import train as T, scenes


def pair(found, truth):
    """Greedy pairing by IoU of masks [M,h,w], [K,h,w]. Returns IoU per truth (0 where none is left above .5)."""
    if not len(found) or not len(truth): return [0.] * len(truth)
    f, t = found.flatten(1).float(), truth.flatten(1).float()
    inter = t @ f.T; iou = inter / (t.sum(1)[:, None] + f.sum(1)[None] - inter).clamp(min=1)
    out = [0.] * len(truth)
    while iou.numel() and float(iou.max()) > .5:
        i = int(iou.argmax()); k, m = divmod(i, iou.shape[1]); out[k] = float(iou[k, m]); iou[k] = -1; iou[:, m] = -1
    return out


@torch.no_grad()
def answer(det, feats, pos, asked, size, cls=True, score=.5):
    """Masks [M,size,size] that the model finds for each question (phrase, boxes, labels)."""
    out = []
    for a in asked:
        prompt, mask = T.encode_prompt(det, [a[0]], [a[1]], [a[2]], feats, pos, cls)
        lg, bx, pr, mk, _, _ = T.detect(det, feats, pos, prompt, mask)
        keep = lg[-1, 0].sigmoid() * pr[-1, 0, 0].sigmoid() > score
        out.append(F.interpolate(mk[0][keep][None], size=(size, size), mode="bilinear", align_corners=False)[0] > 0 if keep.any() else torch.zeros(0, size, size, dtype=torch.bool))
    return out


def detector(det, size, seeds, phrases=3, boxes=1, negatives=1, cls=True):
    c = dict(p_total=0, p_found=0, p_hit=0, none=0, none_ok=0, b_total=0, b_found=0, b_hit=0, n_had=0, n_gone=0, u_had=0, u_kept=0); ious, bious = [], []
    for seed in seeds:
        rgb, objects = scenes.scene(seed, size); rng = random.Random(seed)
        with torch.no_grad(): feats, pos = T.neck_levels(det.vision_encoder.neck, T.picture_tokens(det, T.pixels(rgb)[None]))
        truth = torch.stack([torch.from_numpy(o[1]) for o in objects]) if objects else torch.zeros(0, size, size, dtype=torch.bool)
        asked = [scenes.question(rng, objects) for _ in range(phrases)]
        found = answer(det, feats, pos, [(p, [], []) for p, _ in asked], size, cls)
        for (p, right), m in zip(asked, found):
            if not right: c["none"] += 1; c["none_ok"] += int(len(m) == 0)
            hit = [v for v in pair(m, truth[right]) if v > .5]; ious += hit
            c["p_total"] += len(right); c["p_found"] += len(m); c["p_hit"] += len(hit)
        if not objects: continue
        for _ in range(boxes):                                     # one exemplar, nothing said: all of its kind
            i = rng.randrange(len(objects)); right = [j for j, o in enumerate(objects) if o[0] == objects[i][0]]
            m = answer(det, feats, pos, [("visual", [T.cxcywh(objects[i][2], size)], [1])], size, cls)[0]
            hit = [v for v in pair(m, truth[right]) if v > .5]; bious += hit
            c["b_total"] += len(right); c["b_found"] += len(m); c["b_hit"] += len(hit)
        for _ in range(negatives):                                 # a phrase that finds a kind; the kind's box, negative
            g = rng.choice(sorted({o[0] for o in objects})); names, groups = scenes.CONCEPTS[g]
            phrase = rng.choice(groups) if groups else rng.choice(names)
            mine = [j for j, o in enumerate(objects) if o[0] == g]; j = rng.choice(mine)
            a, b = answer(det, feats, pos, [(phrase, [], []), (phrase, [T.cxcywh(objects[j][2], size)], [0])], size, cls)
            had = sum(v > .5 for v in pair(a, truth[mine])); left = sum(v > .5 for v in pair(b, truth[mine]))
            if had: c["n_had"] += 1; c["n_gone"] += int(left == 0)
        kinds = sorted({o[0] for o in objects})
        if len(kinds) < 2: continue
        g = rng.choice(kinds); phrase = rng.choice(scenes.CONCEPTS[g][0])  # a kind by name; the negative box on something else must change nothing
        mine, other = [j for j, o in enumerate(objects) if o[0] == g], [j for j, o in enumerate(objects) if o[0] not in scenes.PHRASES[phrase]]
        if not other: continue
        a, b = answer(det, feats, pos, [(phrase, [], []), (phrase, [T.cxcywh(objects[rng.choice(other)][2], size)], [0])], size, cls)
        both = list(zip(pair(a, truth[mine]), pair(b, truth[mine])))
        c["u_had"] += sum(x > .5 for x, _ in both); c["u_kept"] += sum(x > .5 and y > .5 for x, y in both)
    r = lambda a, b: round(a / max(b, 1), 3)
    return dict(recall=r(c["p_hit"], c["p_total"]), precision=r(c["p_hit"], c["p_found"]), mean_iou=round(float(np.mean(ious or [0])), 3), nothing_right=r(c["none_ok"], c["none"]),
                box_recall=r(c["b_hit"], c["b_total"]), box_precision=r(c["b_hit"], c["b_found"]), box_iou=round(float(np.mean(bious or [0])), 3),
                negative_removes=r(c["n_gone"], c["n_had"]), unrelated_negative_keeps=r(c["u_kept"], c["u_had"]), counts=dict(c, iou_sum=round(float(sum(ious)), 2), box_iou_sum=round(float(sum(bious)), 2)))


if __name__ == "__main__":
    ap = argparse.ArgumentParser(); ap.add_argument("--size", type=int, default=336)
    ap.add_argument("--seeds", type=int, nargs=2, default=[50, 60]); ap.add_argument("--out", default="run"); ap.add_argument("--model"); ap.add_argument("--no-cls", action="store_true"); ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--phrases", type=int, default=3); args = ap.parse_args(); torch.set_num_threads(args.threads)
    if args.model:                                                 # the weights at any picture size: what depends on it is made, not read
        from safetensors.torch import load_file
        args.out = args.model; model, _ = T.build(args); own = model.state_dict()
        model.load_state_dict({k: v.float() for k, v in load_file(args.model + "/model.safetensors").items() if own[k].shape == v.shape}, strict=False)
    else: model, _ = T.build(args)
    print(json.dumps(detector(model.eval().detector_model, args.size, range(args.seeds[0], args.seeds[0] + args.seeds[1]), phrases=args.phrases, cls=not args.no_cls)))
