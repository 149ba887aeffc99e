"""transformers' Sam3Model as a source of per-stage tensors; the same plan as meta_reference.py.

Post-processing is Meta's rule (logits resized, then > 0), so that one comparison serves both layouts.
"""
import torch
import torch.nn.functional as F

from stage import Stage
from transformers.masking_utils import create_bidirectional_mask
from transformers.models.sam3.modeling_sam3 import box_cxcywh_to_xyxy, inverse_sigmoid
from torchvision.transforms.v2.functional import _geometry


class HfReference:
    layout = "hf"

    def __init__(self, model, processor):
        self.model, self.processor = model, processor
        self.vit, self.neck = model.vision_encoder.backbone, model.vision_encoder.neck
        self.text = model.text_encoder.text_model
        self.geo, self.encoder, self.decoder = model.geometry_encoder, model.detr_encoder, model.detr_decoder
        self.head, self.scoring = model.mask_decoder, model.dot_product_scoring
        config = model.config.vision_config.backbone_config
        self.image_size, self.grid = config.image_size, config.image_size // config.patch_size

    # ---------------------------------------------------------------- the model, as its processor feeds it

    def inputs(self, rgb, phrase, boxes, labels, path="cpu"):
        """The processor's own tensors; boxes in pixels. path "gpu" is the resize that a GPU would do."""
        from PIL import Image
        _geometry._do_native_uint8_resize_on_cpu = lambda interpolation: path == "cpu"
        more = {"input_boxes": [[list(map(float, b)) for b in boxes]], "input_boxes_labels": [list(labels)]} if len(boxes) else {}
        return self.processor(images=Image.fromarray(rgb), text=phrase if phrase is not None else "visual", return_tensors="pt", **more)

    @torch.no_grad()
    def forward(self, inputs, reuse=None):
        """Every stage's tensor in the reference's own layout."""
        got, handles = {}, []

        def hook(module, name, pick=lambda args, out: out):
            handles.append(module.register_forward_hook(lambda m, args, out: got.__setitem__(name, pick(args, out))))

        for i, block in enumerate(self.text.encoder.layers):
            hook(block, f"text.block.{i}", lambda args, out: out[0] if isinstance(out, tuple) else out)
        hook(self.geo.final_proj, "geo.tokens", lambda args, out: args[0])
        for i, layer in enumerate(self.geo.layers):
            hook(layer, f"geo.layer.{i}")
        hook(self.geo.output_layer_norm, "geo.out")
        for i, layer in enumerate(self.encoder.layers):
            hook(layer, f"fusion.layer.{i}")
        norms, rpb = [], {"x": [], "y": []}
        for i, layer in enumerate(self.decoder.layers):
            hook(layer, f"dec.layer.{i}")
        for axis, mlp in (("x", self.decoder.box_rpb_embed_x), ("y", self.decoder.box_rpb_embed_y)):
            handles.append(mlp.register_forward_hook(lambda m, args, out, axis=axis: rpb[axis].append(out)))
        handles.append(self.decoder.register_forward_hook(lambda m, args, out: got.__setitem__("decoder", out)))
        handles.append(self.head.pixel_decoder.register_forward_hook(
            lambda m, args, out: got.update({"mask.prompt": args[0][-1].flatten(2).transpose(1, 2), "mask.pix.1": out})))
        hook(self.head.pixel_decoder.norms[0], "mask.pix.0", lambda args, out: F.relu(out))
        hook(self.head.mask_embedder, "mask.embed")
        hook(self.head.semantic_projection, "semantic")
        if reuse is None:
            hook(self.vit.layer_norm, "vit.embed")
            for i, block in enumerate(self.vit.layers):
                hook(block, f"vit.block.{i}")

        boxes, labels = inputs.get("input_boxes"), inputs.get("input_boxes_labels")
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        try:
            if reuse is None:
                vision = self.model.get_vision_features(inputs["pixel_values"])
            else:
                vision = reuse["vision"]
            text = self.model.get_text_features(input_ids=ids, attention_mask=mask, return_dict=True)
            prompt = dict(input_boxes=boxes, input_boxes_labels=labels) if boxes is not None else {}
            out = self.model(vision_embeds=vision, text_embeds=text, attention_mask=mask, **prompt)
        finally:
            for handle in handles:
                handle.remove()
        if reuse is not None:
            got.update({s.name: reuse[s.name] for s in self.stages() if s.of_picture})
        dec = got.pop("decoder")
        got.update({f"neck.{i}": m for i, m in enumerate(vision.fpn_hidden_states[:3])})
        got["pos"] = vision.fpn_position_encoding[2]
        got["px"], got["text.ids"], got["text.valid"] = inputs["pixel_values"], ids, mask.bool()
        got["text.out"] = text.pooler_output
        if boxes is not None:
            got["boxes"], got["labels"] = boxes, torch.where(labels == -10, 0, labels)
            got["box.valid"] = labels != -10
            n_valid = int(got["box.valid"].sum())
            got["geo.valid"] = torch.arange(got["geo.out"].shape[1])[None] < n_valid + 1
            got["prompt"] = torch.cat([got["text.out"], got["geo.out"]], 1)
            got["prompt.valid"] = torch.cat([got["text.valid"], got["geo.valid"]], 1)
        else:
            got["prompt"], got["prompt.valid"] = got["text.out"], got["text.valid"]
        last = len(self.decoder.layers) - 1
        refs = dec.reference_boxes
        for i in range(last + 1):
            got[f"dec.norm.{i}"] = dec.intermediate_hidden_states[i]
            if i < last:
                got[f"dec.ref.{i}"] = refs[i + 1]
            got[f"dec.rpb.x.{i}"], got[f"dec.rpb.y.{i}"] = rpb["x"][i], rpb["y"][i]
        # the model returns xyxy only; the centre form is the same line of Sam3Model.forward before the conversion
        got[f"dec.ref.{last}"] = (inverse_sigmoid(refs) + self.decoder.box_head(dec.intermediate_hidden_states)).sigmoid()[last]
        assert torch.equal(box_cxcywh_to_xyxy(got[f"dec.ref.{last}"]), out.pred_boxes)
        got["presence"], got["logits"], got["mask.logits"] = dec.presence_logits[last], out.pred_logits[..., None], out.pred_masks
        got["vision"], got["pred_boxes"] = vision, out.pred_boxes
        return got

    # ---------------------------------------------------------------- stage by stage

    def stages(self):
        if hasattr(self, "_stages"):
            return self._stages
        vit, text, geo, enc, dec, head = self.vit, self.text, self.geo, self.encoder, self.decoder, self.head
        n, last = self.grid, len(dec.layers) - 1
        tokens = lambda m: m.flatten(2).transpose(1, 2)                                        # [1,D,h,w] -> [1,hw,D]
        s = []

        def embed(g):
            x = vit.embeddings(g["px"])
            return vit.layer_norm(x.view(1, n, n, -1))
        s.append(Stage("vit.embed", [vit.embeddings, vit.layer_norm], embed, True))
        for i, block in enumerate(vit.layers):
            s.append(Stage(f"vit.block.{i}", [block],
                           lambda g, i=i, block=block: block(g[f"vit.block.{i - 1}"] if i else g["vit.embed"]), True,
                           "vit.windowed" if block.window_size else "vit.global"))
        top = f"vit.block.{len(vit.layers) - 1}"
        for i in range(3):
            s.append(Stage(f"neck.{i}", [self.neck.fpn_layers[i]],
                           lambda g, i=i: self.neck.fpn_layers[i](g[top].permute(0, 3, 1, 2)), True))
        s.append(Stage("pos", [], lambda g: self.neck.position_encoding.build_sine_position_embedding.__wrapped__(
            g["neck.2"].shape, g["neck.2"].device, g["neck.2"].dtype, self.neck.position_encoding.num_position_features, True,
            self.neck.position_encoding.scale, self.neck.position_encoding.temperature), True))

        causal = torch.full((32, 32), float("-inf")).triu_(1)

        def text_mask(g):
            return causal.to(g["text.out"].dtype)[None, None].masked_fill(~g["text.valid"][:, None, None, :], float("-inf"))

        def text_block(g, i, block):
            x = text.embeddings(input_ids=g["text.ids"]) if i == 0 else g[f"text.block.{i - 1}"]
            out = block(x, attention_mask=text_mask(g))
            return out[0] if isinstance(out, tuple) else out
        layers = text.encoder.layers
        for i, block in enumerate(layers):
            s.append(Stage(f"text.block.{i}", [block] + ([text.embeddings] if i == 0 else []),
                           lambda g, i=i, block=block: text_block(g, i, block), group="text"))
        s.append(Stage("text.out", [text.final_layer_norm, self.model.text_projection],
                       lambda g: self.model.text_projection(text.final_layer_norm(g[f"text.block.{len(layers) - 1}"]))))

        def geo_tokens(g):
            seen = {}
            handle = geo.final_proj.register_forward_hook(lambda m, args, out: seen.update(x=args[0]))
            geo(box_embeddings=g["boxes"], box_mask=g["box.valid"], box_labels=g["labels"], img_feats=(g["neck.2"],),
                img_pos_embeds=(g["pos"],))
            handle.remove()
            return seen["x"]
        s.append(Stage("geo.tokens", [geo], geo_tokens))

        def keys(config, queries, valid, memory=None):
            return create_bidirectional_mask(config=config, inputs_embeds=queries, attention_mask=valid, encoder_hidden_states=memory)

        for i, layer in enumerate(geo.layers):
            def geo_layer(g, i=i, layer=layer):
                x = g[f"geo.layer.{i - 1}"] if i else geo.prompt_layer_norm(geo.final_proj(g["geo.tokens"]))
                return layer(prompt_feats=x, vision_feats=tokens(g["neck.2"]), vision_pos_encoding=tokens(g["pos"]),
                             prompt_mask=keys(geo.config, x, g["geo.valid"]))
            s.append(Stage(f"geo.layer.{i}", [geo], geo_layer, group="geo"))
        s.append(Stage("geo.out", [geo.output_layer_norm], lambda g: geo.output_layer_norm(g[f"geo.layer.{len(geo.layers) - 1}"])))

        for i, layer in enumerate(enc.layers):
            def fusion(g, i=i, layer=layer):
                x = g[f"fusion.layer.{i - 1}"] if i else tokens(g["neck.2"])
                return layer(x, prompt_feats=g["prompt"], vision_pos_encoding=tokens(g["pos"]),
                             prompt_cross_attn_mask=keys(enc.config, x, g["prompt.valid"], g["prompt"]))
            s.append(Stage(f"fusion.layer.{i}", [layer], fusion, group="fusion"))
        memory = lambda g: g[f"fusion.layer.{len(enc.layers) - 1}"]
        start_ref = lambda g: dec.reference_points.weight.to(g["pos"].dtype)[None].sigmoid()
        ref_before = lambda g, i: g[f"dec.ref.{i - 1}"] if i else start_ref(g)
        size = torch.tensor([[n, n]])

        def rpb_mlp(g, i, axis):
            seen = {}
            mlp = dec.box_rpb_embed_x if axis == "x" else dec.box_rpb_embed_y
            handle = mlp.register_forward_hook(lambda m, args, out: seen.update(x=out))
            dec._get_rpb_matrix(ref_before(g, i), (size[0, 0], size[0, 1]))
            handle.remove()
            return seen["x"]

        def dec_layer(g, i, layer):
            ref = ref_before(g, i)
            if i == 0:
                state = torch.cat([dec.presence_token.weight, dec.query_embed.weight]).to(g["pos"].dtype)[None]
            else:
                state = g[f"dec.layer.{i - 1}"]
            bias = F.pad(dec._get_rpb_matrix(ref, (size[0, 0], size[0, 1])), (0, 0, 1, 0))
            return layer(state, query_pos=dec.ref_point_head(dec.position_encoding.encode_boxes(ref)), text_features=g["prompt"],
                         vision_features=memory(g), vision_pos_encoding=tokens(g["pos"]),
                         text_cross_attn_mask=keys(dec.config, state, g["prompt.valid"], g["prompt"]), vision_cross_attn_mask=bias)
        for i, layer in enumerate(dec.layers):
            for axis in "xy":
                s.append(Stage(f"dec.rpb.{axis}.{i}", [dec], lambda g, i=i, axis=axis: rpb_mlp(g, i, axis), group="rpb"))
            s.append(Stage(f"dec.layer.{i}", [dec], lambda g, i=i, layer=layer: dec_layer(g, i, layer), group="dec.layer"))
            s.append(Stage(f"dec.norm.{i}", [dec.output_layer_norm],
                           lambda g, i=i: dec.output_layer_norm(g[f"dec.layer.{i}"][:, 1:]), group="dec.norm"))
            s.append(Stage(f"dec.ref.{i}", [dec.box_head], lambda g, i=i: (
                dec.box_head(g[f"dec.norm.{i}"]) + inverse_sigmoid(ref_before(g, i))).sigmoid(), group="dec.ref"))
        s.append(Stage("presence", [dec.presence_head, dec.presence_layer_norm], lambda g: dec.presence_head(
            dec.presence_layer_norm(g[f"dec.layer.{last}"][:, :1])).squeeze(-1).clamp(-10, 10)))
        s.append(Stage("logits", [self.scoring], lambda g: self.scoring(
            decoder_hidden_states=g[f"dec.norm.{last}"][None], text_features=g["prompt"], text_mask=g["prompt.valid"])[0]))

        def mask_prompt(g):
            x = head.prompt_cross_attn_norm(memory(g))
            out, _ = head.prompt_cross_attn(query=x, key=g["prompt"], value=g["prompt"],
                                            attention_mask=keys(head.config, x, g["prompt.valid"], g["prompt"]))
            return memory(g) + out
        s.append(Stage("mask.prompt", [head.prompt_cross_attn_norm, head.prompt_cross_attn], mask_prompt))
        pixel = head.pixel_decoder

        def upsample(low, skip, i):
            x = F.interpolate(low, size=skip.shape[-2:], mode="nearest") + skip
            return F.relu(pixel.norms[i](pixel.conv_layers[i](x)))
        s.append(Stage("mask.pix.0", [pixel], lambda g: upsample(g["mask.prompt"].transpose(1, 2).view(1, -1, n, n), g["neck.1"], 0)))
        s.append(Stage("mask.pix.1", [pixel], lambda g: upsample(g["mask.pix.0"], g["neck.0"], 1)))
        s.append(Stage("mask.embed", [head.mask_embedder], lambda g: head.mask_embedder(g[f"dec.norm.{last}"])))
        s.append(Stage("mask.logits", [head.instance_projection],
                       lambda g: torch.einsum("bqc,bchw->bqhw", g["mask.embed"], head.instance_projection(g["mask.pix.1"]))))
        s.append(Stage("semantic", [head.semantic_projection], lambda g: head.semantic_projection(g["mask.pix.1"])))
        self._stages = s
        return s

    # ---------------------------------------------------------------- token-major rows, as Stencil holds them

    def rows(self, name, t, got):
        """The stage's tensor as [rows, channels]; text, geometry and prompt without padding."""
        if name.startswith("text."):
            return t[0][got["text.valid"][0]]
        if name.startswith("geo."):
            return t[0][got["geo.valid"][0]]
        if name == "prompt":
            return t[0][got["prompt.valid"][0]]
        if name.startswith(("px", "neck.", "pos", "mask.pix.", "semantic")):
            return t[0].flatten(1).t()
        if name.startswith("vit."):
            return t[0].flatten(0, 1)
        if name == "presence":
            return t.view(1, 1)
        return t[0].flatten(1)

    def knobs(self):
        score = self.scoring

        def pooled(g):
            x = score.text_mlp_out_norm(score.text_mlp(g["prompt"]) + g["prompt"])
            return score.text_proj(score._pool_text_features(x, g["prompt.valid"]))[0]
        return {"instance": self.head.instance_projection, "mask": self.head.mask_embedder.layers[-1],
                "presence": self.decoder.presence_head.layer3, "query": score.query_proj, "pooled": pooled}

    # ---------------------------------------------------------------- results

    def scores(self, got):
        return (got["logits"][..., 0].sigmoid() * got["presence"].sigmoid())[0]

    def pixel_boxes(self, got, width, height):
        boxes = box_cxcywh_to_xyxy(got[f"dec.ref.{len(self.decoder.layers) - 1}"][0])
        return boxes * torch.tensor([width, height, width, height])[None, :]

    def full_logits(self, got, queries, width, height):
        return F.interpolate(got["mask.logits"][0, queries][:, None], size=(height, width), mode="bilinear", align_corners=False)[:, 0]
