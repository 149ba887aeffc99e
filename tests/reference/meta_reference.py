"""Meta's image model as a source of per-stage tensors.

`forward` runs the model the way sam3/model/sam3_image_processor.py does and collects every stage's output through hooks. `stages`
lists, for each stage, how the same modules turn that stage's input into its output; tests run this once in fp32, where it must repeat
the hooks' tensors, and once in FP64 on the same fp32 input, which gives fp32's own error.
"""
import torch
import torch.nn.functional as F

import meta_on_cpu
from stage import Stage

meta_on_cpu.enable()

from sam3.model.box_ops import box_cxcywh_to_xyxy                                  # noqa: E402
from sam3.model.data_misc import FindStage, interpolate                            # noqa: E402
from sam3.model.geometry_encoders import Prompt                                    # noqa: E402
from sam3.model.model_misc import gen_sineembed_for_position, inverse_sigmoid      # noqa: E402
from sam3.model.sam3_image_processor import Sam3Processor                          # noqa: E402
from sam3.model.vitdet import get_abs_pos                                          # noqa: E402
from torchvision.transforms.v2.functional import _geometry                         # noqa: E402


def pixel_box(box, width, height):
    """(x0, y0, x1, y1) in pixels -> normalised (cx, cy, w, h) in fp32, as the example notebooks do it: centre first, then divide."""
    x0, y0, x1, y1 = (torch.tensor(float(v), dtype=torch.float32) for v in box)
    w, h = x1 - x0, y1 - y0
    return torch.stack([(x0 + w / 2) / width, (y0 + h / 2) / height, w / width, h / height])


def force_resize(path):
    """path "gpu": torchvision casts to fp32, resizes and rounds, as it does on a GPU; "cpu": its uint8 kernel (AVX2 and up)."""
    _geometry._do_native_uint8_resize_on_cpu = lambda interpolation: path == "cpu"
    if path == "cpu" and torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        raise SystemExit("the uint8 resize kernel needs a CPU with AVX2")


class MetaReference:
    layout = "meta"

    def __init__(self, model, joint_score=False):
        self.model = model
        model.supervise_joint_box_scores = joint_score           # SAM 3.1's detector has this on
        self.joint = joint_score
        self.trunk = model.backbone.vision_backbone.trunk
        self.neck = model.backbone.vision_backbone
        self.text = model.backbone.language_backbone
        self.geo = model.geometry_encoder
        self.encoder = model.transformer.encoder
        self.decoder = model.transformer.decoder
        self.head = model.segmentation_head
        self.image_size = self.trunk.patch_embed.proj.kernel_size[0] * self.trunk.blocks[self.trunk.full_attn_ids[-1]].attn.input_size[0]
        self.grid = self.image_size // self.trunk.patch_embed.proj.kernel_size[0]
        self.processor = Sam3Processor(model, resolution=self.image_size, device="cpu")

    # ---------------------------------------------------------------- the model, as the processor runs it

    def pixels(self, rgb, path):
        from PIL import Image
        from torchvision.transforms import v2
        force_resize(path)
        return self.processor.transform(v2.functional.to_image(Image.fromarray(rgb)))[None]

    def tokens(self, phrase):
        """Ids [1,32] as the text encoder gets them."""
        return self.text.tokenizer([phrase], context_length=self.text.context_length)

    @torch.no_grad()
    def forward(self, px, phrase, boxes, labels, reuse=None):
        """px [1,3,S,S]; phrase may be None when there are boxes; boxes: rows of normalised cxcywh; labels: 1 positive, 0 negative.
        reuse: an earlier run's tensors on the same picture. Returns every stage's tensor in the reference's own layout."""
        got, handles = {}, []

        def hook(module, name, pick=lambda args, out: out):
            handles.append(module.register_forward_hook(lambda m, args, out: got.__setitem__(name, pick(args, out))))

        for i, block in enumerate(self.text.encoder.transformer.resblocks):
            hook(block, f"text.block.{i}")
        hook(self.geo.final_proj, "geo.tokens", lambda args, out: args[0])
        for i, layer in enumerate(self.geo.encode):
            hook(layer, f"geo.layer.{i}")
        hook(self.geo.encode_norm, "geo.out")
        for i, layer in enumerate(self.encoder.layers):
            hook(layer, f"fusion.layer.{i}")
        for i, layer in enumerate(self.decoder.layers):
            hook(layer, f"dec.layer.{i}", lambda args, out: torch.cat([out[1], out[0]]))
        rpb = {"x": [], "y": []}
        for axis, mlp in (("x", self.decoder.boxRPB_embed_x), ("y", self.decoder.boxRPB_embed_y)):
            handles.append(mlp.register_forward_hook(lambda m, args, out, axis=axis: rpb[axis].append(out)))
        handles.append(self.decoder.register_forward_hook(lambda m, args, out: got.__setitem__("decoder", out)))
        hook(self.head.pixel_decoder.norms[0], "mask.pix.0", lambda args, out: F.relu(out))
        handles.append(self.head.pixel_decoder.register_forward_hook(
            lambda m, args, out: got.update({"mask.prompt": args[0][-1].flatten(2).permute(2, 0, 1), "mask.pix.1": out})))
        hook(self.head.mask_predictor.mask_embed, "mask.embed")
        hook(self.head.semantic_seg_head, "semantic")
        hook(self.model.dot_prod_scoring, "logits", lambda args, out: out[-1].clone())
        if reuse is None:
            hook(self.trunk.ln_pre, "vit.embed")
            for i, block in enumerate(self.trunk.blocks):
                hook(block, f"vit.block.{i}")

        try:
            with torch.inference_mode():
                if reuse is None:
                    features = self.model.backbone.forward_image(px)
                    got.update({f"neck.{i}": f for i, f in enumerate(features["backbone_fpn"])})
                    got["pos"] = features["vision_pos_enc"][-1]
                else:
                    got.update({s.name: reuse[s.name] for s in self.stages() if s.of_picture})
                    maps = [got[f"neck.{i}"] for i in range(3)]
                    features = {"vision_features": maps[-1], "vision_pos_enc": [None, None, got["pos"]], "backbone_fpn": maps,
                                "sam2_backbone_out": None}
                features.update(self.model.backbone.forward_text([phrase if phrase is not None else "visual"], device="cpu"))
                prompt = self.model._get_dummy_prompt()
                for box, label in zip(boxes, labels):
                    prompt.append_boxes(box.view(1, 1, 4).to(px.dtype), torch.tensor([bool(label)]).view(1, 1))
                out = self.model.forward_grounding(backbone_out=features, find_input=self.processor.find_stage,
                                                   geometric_prompt=prompt, find_target=None)
        finally:
            for handle in handles:
                handle.remove()

        hs, refs, presence, _ = got.pop("decoder")
        boxes_out = out["pred_boxes"].transpose(0, 1)
        for i in range(len(self.decoder.layers)):
            got[f"dec.norm.{i}"] = hs[i]
            got[f"dec.ref.{i}"] = refs[i + 1] if i + 1 < len(refs) else boxes_out
            got[f"dec.rpb.x.{i}"], got[f"dec.rpb.y.{i}"] = rpb["x"][i], rpb["y"][i]
        got.update(px=px, boxes=prompt.box_embeddings, labels=prompt.box_labels, presence=presence[-1], pred_logits=out["pred_logits"])
        got["text.ids"] = self.tokens(phrase if phrase is not None else "visual")
        got["text.out"], got["text.mask"] = features["language_features"], features["language_mask"]
        got["prompt"] = torch.cat([features["language_features"], got["geo.out"]])
        no_pad = torch.zeros(1, len(got["geo.out"]), dtype=torch.bool)                       # no geometry token is padding
        got["prompt.mask"] = torch.cat([features["language_mask"], no_pad], dim=1)
        got["mask.logits"] = out["pred_masks"]
        return {k: (v.clone() if torch.is_tensor(v) else v) for k, v in got.items()}

    def knobs(self):
        """What random_weights.settle turns."""
        score = self.model.dot_prod_scoring
        pooled = lambda g: score.prompt_proj(score.mean_pool_text(score.prompt_mlp(g["prompt"]), g["prompt.mask"]))[0]
        return {"instance": self.head.instance_seg_head, "mask": self.head.mask_predictor.mask_embed.layers[-1],
                "presence": self.decoder.presence_token_head.layers[-1], "query": score.hs_proj, "pooled": pooled}

    # ---------------------------------------------------------------- stage by stage

    def stages(self):
        if hasattr(self, "_stages"):
            return self._stages
        trunk, text, geo, enc, dec, head = self.trunk, self.text, self.geo, self.encoder, self.decoder, self.head
        n, last = self.grid, len(dec.layers) - 1
        tokens = lambda m: m.flatten(2).permute(2, 0, 1)                                       # [1,D,h,w] -> [hw,1,D]
        as_map = lambda t: t.permute(1, 2, 0).view(1, -1, n, n)
        s = []

        def embed(g):
            x = trunk.patch_embed(g["px"])
            x = x + get_abs_pos(trunk.pos_embed.to(x.dtype), trunk.pretrain_use_cls_token, (n, n), False, tiling=trunk.tile_abs_pos)
            return trunk.ln_pre(x)
        s.append(Stage("vit.embed", [trunk.patch_embed, trunk.ln_pre], embed, True))
        for i, block in enumerate(trunk.blocks):
            s.append(Stage(f"vit.block.{i}", [block],
                           lambda g, i=i, block=block: block(g[f"vit.block.{i - 1}"] if i else g["vit.embed"]), True,
                           "vit.windowed" if block.window_size else "vit.global"))
        top = f"vit.block.{len(trunk.blocks) - 1}"
        for i in range(3):
            s.append(Stage(f"neck.{i}", [self.neck.convs[i]], lambda g, i=i: self.neck.convs[i](g[top].permute(0, 3, 1, 2)), True))
        s.append(Stage("pos", [self.neck.position_encoding], lambda g: self.neck.position_encoding(g["neck.2"]), True))

        def text_block(g, i, block):
            if i == 0:
                dtype = block.ln_1.weight.dtype
                x = text.encoder.token_embedding(g["text.ids"]).to(dtype) + text.encoder.positional_embedding.to(dtype)
            else:
                x = g[f"text.block.{i - 1}"]
            return block(x, attn_mask=text.encoder.attn_mask)
        blocks = text.encoder.transformer.resblocks
        for i, block in enumerate(blocks):
            s.append(Stage(f"text.block.{i}", [block], lambda g, i=i, block=block: text_block(g, i, block), group="text"))
        s.append(Stage("text.out", [text.encoder.ln_final, text.resizer],
                       lambda g: text.resizer(text.encoder.ln_final(g[f"text.block.{len(blocks) - 1}"]).transpose(0, 1))))

        def geo_tokens(g):
            seen = {}
            handle = geo.final_proj.register_forward_hook(lambda m, args, out: seen.update(x=args[0]))
            prompt = Prompt(box_embeddings=g["boxes"], box_mask=torch.zeros(1, len(g["boxes"]), dtype=torch.bool), box_labels=g["labels"])
            geo(prompt, [tokens(g["neck.2"])], [(n, n)], [tokens(g["pos"])])
            handle.remove()
            return seen["x"]
        s.append(Stage("geo.tokens", [geo], geo_tokens))
        for i, layer in enumerate(geo.encode):
            s.append(Stage(f"geo.layer.{i}", [geo], lambda g, i=i, layer=layer: layer(
                tgt=g[f"geo.layer.{i - 1}"] if i else geo.norm(geo.final_proj(g["geo.tokens"])), memory=tokens(g["neck.2"]),
                tgt_key_padding_mask=torch.zeros(1, len(g["geo.tokens"]), dtype=torch.bool), pos=tokens(g["pos"])), group="geo"))
        s.append(Stage("geo.out", [geo.encode_norm], lambda g: geo.encode_norm(g[f"geo.layer.{len(geo.encode) - 1}"])))
        s.append(Stage("prompt", [], lambda g: torch.cat([g["text.out"], g["geo.out"]])))

        for i, layer in enumerate(enc.layers):
            s.append(Stage(f"fusion.layer.{i}", [layer], lambda g, i=i, layer=layer: layer(
                tgt=g[f"fusion.layer.{i - 1}"] if i else tokens(g["neck.2"]).transpose(0, 1), memory=g["prompt"].transpose(0, 1),
                memory_key_padding_mask=g["prompt.mask"], query_pos=tokens(g["pos"]).transpose(0, 1)), group="fusion"))
        memory = lambda g: g[f"fusion.layer.{len(enc.layers) - 1}"].transpose(0, 1)
        start_ref = lambda g: dec.reference_points.weight.to(g["pos"].dtype).unsqueeze(1).sigmoid()
        ref_before = lambda g, i: g[f"dec.ref.{i - 1}"] if i else start_ref(g)

        def rpb(g, i, axis):
            seen = {}
            mlp = dec.boxRPB_embed_x if axis == "x" else dec.boxRPB_embed_y
            handle = mlp.register_forward_hook(lambda m, args, out: seen.update(x=out))
            dec._get_rpb_matrix(ref_before(g, i), (n, n))
            handle.remove()
            return seen["x"]

        def dec_layer(g, i, layer):
            ref = ref_before(g, i)
            bias = dec._get_rpb_matrix(ref, (n, n)).flatten(0, 1)
            if i == 0:
                dtype = g["pos"].dtype
                state = torch.cat([dec.presence_token.weight, dec.query_embed.weight]).to(dtype).unsqueeze(1)
            else:
                state = g[f"dec.layer.{i - 1}"]
            out, presence = layer(tgt=state[1:], tgt_query_pos=dec.ref_point_head(gen_sineembed_for_position(ref, dec.d_model)),
                                  memory_text=g["prompt"], text_attention_mask=g["prompt.mask"], memory=memory(g),
                                  memory_pos=tokens(g["pos"]), cross_attn_mask=bias, presence_token=state[:1])
            return torch.cat([presence, out])
        for i, layer in enumerate(dec.layers):
            for axis in "xy":
                s.append(Stage(f"dec.rpb.{axis}.{i}", [dec], lambda g, i=i, axis=axis: rpb(g, i, axis), group="rpb"))
            s.append(Stage(f"dec.layer.{i}", [dec], lambda g, i=i, layer=layer: dec_layer(g, i, layer), group="dec.layer"))
            s.append(Stage(f"dec.norm.{i}", [dec.norm], lambda g, i=i: dec.norm(g[f"dec.layer.{i}"][1:]), group="dec.norm"))
            s.append(Stage(f"dec.ref.{i}", [dec.bbox_embed], lambda g, i=i: (
                dec.bbox_embed(g[f"dec.norm.{i}"]) + inverse_sigmoid(ref_before(g, i))).sigmoid(), group="dec.ref"))
        s.append(Stage("presence", [dec.presence_token_head, dec.presence_token_out_norm], lambda g: dec.presence_token_head(
            dec.presence_token_out_norm(g[f"dec.layer.{last}"][:1])).squeeze(-1)))

        s.append(Stage("logits", [self.model.dot_prod_scoring], lambda g: self.model.dot_prod_scoring(
            g[f"dec.norm.{last}"].transpose(0, 1)[None], g["prompt"], g["prompt.mask"])[0]))

        s.append(Stage("mask.prompt", [head.cross_attn_norm, head.cross_attend_prompt], lambda g: head.cross_attend_prompt(
            query=head.cross_attn_norm(memory(g)), key=g["prompt"], value=g["prompt"], key_padding_mask=g["prompt.mask"])[0] + memory(g)))
        pixel = head.pixel_decoder

        def upsample(low, skip, i):
            x = skip + F.interpolate(low, size=skip.shape[-2:], mode=pixel.interpolation_mode)
            return F.relu(pixel.norms[i](pixel.conv_layers[i](x)))
        s.append(Stage("mask.pix.0", [pixel], lambda g: upsample(as_map(g["mask.prompt"]), g["neck.1"], 0)))
        s.append(Stage("mask.pix.1", [pixel], lambda g: upsample(g["mask.pix.0"], g["neck.0"], 1)))
        s.append(Stage("mask.embed", [head.mask_predictor],
                       lambda g: head.mask_predictor.mask_embed(g[f"dec.norm.{last}"].transpose(0, 1))))
        s.append(Stage("mask.logits", [head.instance_seg_head],
                       lambda g: torch.einsum("bqc,bchw->bqhw", g["mask.embed"], head.instance_seg_head(g["mask.pix.1"]))))
        s.append(Stage("semantic", [head.semantic_seg_head], lambda g: head.semantic_seg_head(g["mask.pix.1"])))
        self._stages = s
        return s

    # ---------------------------------------------------------------- token-major rows, as Stencil holds them

    def rows(self, name, t, got):
        """The stage's tensor as [rows, channels]; text up to its end token, prompt without padding."""
        if name.startswith(("text.ids", "text.block.")):
            return t[0, : self.n_read(got)]
        if name == "text.out":
            return t[: self.n_read(got), 0]
        if name == "prompt":
            return t[~got["prompt.mask"][0], 0]
        if name.startswith(("px", "neck.", "pos", "mask.pix.", "semantic")):
            return t[0].flatten(1).t()
        if name.startswith(("vit.", "fusion.", "dec.rpb.", "mask.logits", "mask.embed", "logits")):
            return t[0].flatten(0, 1) if name.startswith("vit.") else t[0].flatten(1)
        if name == "presence":
            return t.view(1, 1)
        return t[:, 0]                                                                         # sequence first: geo, dec, mask.prompt

    def n_read(self, got):
        """Text positions up to and including the end token: what an encoder without padding computes."""
        ids = got["text.ids"][0].tolist()
        return ids.index(49407) + 1

    # ---------------------------------------------------------------- results

    def scores(self, got):
        """[Q]: sigma(logit) sigma(presence); SAM 3.1's logit already holds the presence."""
        p = got["pred_logits"].sigmoid()
        return (p if self.joint else p * got["presence"].sigmoid().unsqueeze(1))[0, :, 0]

    def pixel_boxes(self, got, width, height):
        boxes = box_cxcywh_to_xyxy(got[f"dec.ref.{len(self.decoder.layers) - 1}"][:, 0])
        return boxes * torch.tensor([width, height, width, height])[None, :]

    def full_logits(self, got, queries, width, height):
        return interpolate(got["mask.logits"][0, queries].unsqueeze(1), (height, width), mode="bilinear", align_corners=False)[:, 0]

    def check_against_processor(self, got, rgb_size, threshold):
        """The processor's own _forward_grounding must give what scores/pixel_boxes/full_logits give."""
        width, height = rgb_size
        self.processor.confidence_threshold = threshold
        features = {"vision_features": got["neck.2"], "vision_pos_enc": [None, None, got["pos"]],
                    "backbone_fpn": [got[f"neck.{i}"] for i in range(3)], "language_features": got["text.out"],
                    "language_mask": got["text.mask"]}
        prompt = self.model._get_dummy_prompt()
        for box, label in zip(got["boxes"], got["labels"]):
            prompt.append_boxes(box.view(1, 1, 4), label.view(1, 1))
        state = self.processor._forward_grounding({"backbone_out": features, "geometric_prompt": prompt, "original_width": width,
                                                   "original_height": height})
        keep = self.scores(got) > threshold
        assert torch.equal(state["scores"], self.scores(got)[keep])
        assert torch.equal(state["boxes"], self.pixel_boxes(got, width, height)[keep])
        assert torch.equal(state["masks"][:, 0], self.full_logits(got, keep, width, height).sigmoid() > .5)
