"""The interactive head as a source of per-stage tensors: what both references share.

A prompt is a dict: `points` [(x, y, positive)] and `region` (x0, y0, x1, y1) in pixels of the picture, `mask` [M, M] logits; None or empty where
there is none. A run's tensors have no batch of prompts: [1, channels, height, width] for maps, [1, tokens, channels] for tokens.
"""
import torch

from stage import Stage


class ClickReference:
    """Subclasses run the model (`set_picture`, `forward`, `predict`) and name its parts; the list of stages is here."""
    layout = ""

    def stages(self):
        if hasattr(self, "_stages"):
            return self._stages
        p, head = self.parts(), [self.head]
        as_tokens = lambda m: m.flatten(2).transpose(1, 2)                                     # [1,D,n,n] -> [1,N,D]
        start = lambda g: torch.cat([p.first_tokens(), g["click.sparse"]], 1)
        last = len(p.layers) - 1
        s = []
        for i in range(3):
            s.append(Stage(f"click_neck.{i}", [p.neck[i]], lambda g, i=i: p.neck[i](g[self.top].permute(0, 3, 1, 2)), True, "neck"))
        s.append(Stage("click.skip0", head, lambda g: p.skips[0](g["click_neck.0"]), True))
        s.append(Stage("click.skip1", head, lambda g: p.skips[1](g["click_neck.1"]), True))
        s.append(Stage("click.features", head, lambda g: p.features(g["click_neck.2"]), True))
        s.append(Stage("click.sparse", head, lambda g: self.embed_prompt(g)[0]))
        s.append(Stage("click.dense", head, lambda g: self.embed_prompt(g)[1]))
        for i, layer in enumerate(p.layers):
            def run(g, i=i, layer=layer):
                tokens = g[f"click.tokens.{i - 1}"] if i else start(g)
                image = g[f"click.image.{i - 1}"] if i else as_tokens(g["click.features"] + g["click.dense"])
                return layer(tokens, image, start(g), as_tokens(p.grid_code()))
            s.append(Stage(f"click.tokens.{i}", head, lambda g, run=run: run(g)[0], group="tokens"))
            s.append(Stage(f"click.image.{i}", head, lambda g, run=run: run(g)[1], group="image"))

        def final(g):
            tokens, image = g[f"click.tokens.{last}"], g[f"click.image.{last}"]
            return p.final_norm(tokens + p.final(tokens + start(g), image + as_tokens(p.grid_code()), image))
        s.append(Stage("click.tokens.final", head, final))

        def up0(g):
            image = g[f"click.image.{last}"].transpose(1, 2).reshape(1, -1, self.grid, self.grid)
            return p.gelu(p.up_norm(p.ups[0](image) + g["click.skip1"]))
        s.append(Stage("click.up.0", head, up0))
        s.append(Stage("click.up.1", head, lambda g: p.gelu(p.ups[1](g["click.up.0"]) + g["click.skip0"])))

        def masks(g):
            weights = torch.stack([mlp(g["click.tokens.final"][:, 2 + i]) for i, mlp in enumerate(p.hyper)], 1)
            fine = g["click.up.1"]
            return (weights @ fine.flatten(2)).view(1, len(p.hyper), *fine.shape[2:])
        s.append(Stage("click.masks", head, masks))
        s.append(Stage("click.iou", head, lambda g: p.iou(g["click.tokens.final"][:, 1])))
        s.append(Stage("click.score", head, lambda g: p.score(g["click.tokens.final"][:, 0])))
        self._stages = s
        return s

    def rows(self, name, t, got):
        """The stage's tensor as [rows, channels]."""
        if name.startswith("vit."):
            return t[0].flatten(0, 1)
        if name == "click.masks":
            return t[0].flatten(1)
        if name.startswith(("click_neck.", "click.skip", "click.features", "click.dense", "click.up.")):
            return t[0].flatten(1).t()
        return t if name in ("click.iou", "click.score") else t[0]

    def candidates(self, got, prompt, multimask, hole_area):
        """What a user gets, by falling predicted IoU, ties by index: (index of the mask token, IoU, low-resolution logits, full-size logits)."""
        iou, low, full = self.predict(prompt, multimask, hole_area)
        own = self.returned(got["click.masks"][0])
        found = []
        for i, logits, whole in zip(iou.tolist(), low, full):
            index = [k for k in range(len(own)) if torch.equal(own[k], logits)]
            assert len(index) == 1 and got["click.iou"][0, index[0]].item() == i, (index, i)
            found.append((index[0], i, logits, whole))
        assert [f[0] for f in found] == list(range(1, len(own))) if multimask else len(found) == 1
        return sorted(found, key=lambda f: (-f[1], f[0]))
