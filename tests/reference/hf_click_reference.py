"""transformers' Sam3TrackerModel, as its processor feeds it, watched by hooks."""
from types import SimpleNamespace

import torch
from torchvision.transforms.v2.functional import _geometry

from click_reference import ClickReference


class HfClickReference(ClickReference):
    layout = "hf"

    def __init__(self, model, processor):
        self.model, self.processor = model, processor
        self.head, self.prompts, self.decoder = model, model.prompt_encoder, model.mask_decoder
        self.vision = model.vision_encoder
        self.top = f"vit.block.{len(self.vision.backbone.layers) - 1}"
        self.image_size = self.prompts.input_image_size
        self.grid, self.mask_size = self.prompts.image_embedding_size[0], self.prompts.mask_input_size[0]

    def pixels(self, rgb):
        from PIL import Image
        _geometry._do_native_uint8_resize_on_cpu = lambda interpolation: True      # what a CPU with AVX2 does
        return self.processor.image_processor(Image.fromarray(rgb), return_tensors="pt")["pixel_values"]

    def parts(self):
        d, t = self.decoder, self.decoder.transformer
        one = lambda x: x[:, None]                                                 # this port has one more axis: several prompts for one picture

        def layer(module):
            def run(tokens, image, start, grid_code):
                out = module(queries=one(tokens), keys=one(image), query_point_embedding=one(start), key_point_embedding=one(grid_code),
                             attention_similarity=None)
                return out[0][:, 0], out[1][:, 0]
            return run
        final = lambda q, k, v: t.final_attn_token_to_image(query=one(q), key=one(k), value=one(v))[0][:, 0]
        return SimpleNamespace(
            neck=self.vision.neck.fpn_layers, skips=[d.conv_s0, d.conv_s1], layers=[layer(module) for module in t.layers], final=final,
            final_norm=t.layer_norm_final_attn,
            features=lambda level: level,                                          # no_memory_embedding goes to a level that is dropped
            first_tokens=lambda: torch.cat([d.obj_score_token.weight, d.iou_token.weight, d.mask_tokens.weight])[None],
            grid_code=self.model.get_image_wide_positional_embeddings, ups=[d.upscale_conv1, d.upscale_conv2], up_norm=d.upscale_layer_norm,
            gelu=d.activation, hyper=d.output_hypernetworks_mlps, iou=d.iou_prediction_head, score=d.pred_obj_score_head)

    # ---------------------------------------------------------------- the model

    def set_picture(self, px, width, height):
        got, handles = {}, []
        hook = lambda module, name: handles.append(module.register_forward_hook(lambda m, args, out: got.__setitem__(name, out)))
        hook(self.vision.backbone.layers[-1], self.top)
        for i in range(3):
            hook(self.vision.neck.fpn_layers[i], f"click_neck.{i}")
        try:
            self.embeddings = self.model.get_image_embeddings(px)
        finally:
            for handle in handles:
                handle.remove()
        self.size = width, height
        got["click.skip0"], got["click.skip1"], got["click.features"] = self.embeddings
        return {k: v.clone() for k, v in got.items()}

    def inputs(self, prompt):
        """What the processor makes of a prompt."""
        how, points = {}, prompt["points"]
        if points:
            how.update(input_points=[[[list(map(float, p[:2])) for p in points]]])
            how.update(input_labels=[[[int(p[2]) for p in points]]])
        if prompt["region"]:
            how.update(input_boxes=[[list(map(float, prompt["region"]))]])
        made = self.processor(original_sizes=[[self.size[1], self.size[0]]], return_tensors="pt", **how) if how else {}
        mask = {"input_masks": prompt["mask"][None, None]} if prompt["mask"] is not None else {}
        return {**{k: v for k, v in made.items() if k != "original_sizes"}, **mask}

    @torch.no_grad()
    def ask(self, prompt, multimask):
        return self.model(image_embeddings=self.embeddings, multimask_output=multimask, **self.inputs(prompt))

    @torch.no_grad()
    def forward(self, of_picture, prompt):
        got, handles = dict(of_picture), []

        def hook(module, name, pick=lambda out: out[:, 0]):
            handles.append(module.register_forward_hook(lambda m, args, out: got.__setitem__(name, pick(out))))
        hook(self.prompts, "prompt", lambda out: out)
        for i, layer in enumerate(self.decoder.transformer.layers):
            hook(layer, f"click.tokens.{i}", lambda out: out[0][:, 0])
            hook(layer, f"click.image.{i}", lambda out: out[1][:, 0])
        hook(self.decoder.transformer, "click.tokens.final", lambda out: out[0][:, 0])
        ups = []
        handles.append(self.decoder.activation.register_forward_hook(lambda m, args, out: ups.append(out)))
        hook(self.decoder.iou_prediction_head, "click.iou")
        hook(self.decoder.pred_obj_score_head, "click.score")
        choice = self.decoder.dynamic_multimask_via_stability
        try:
            several = self.ask(prompt, True).pred_masks
            self.decoder.dynamic_multimask_via_stability = False                   # the single mask itself, which is otherwise chosen or not
            single = self.ask(prompt, False).pred_masks
        finally:
            self.decoder.dynamic_multimask_via_stability = choice
            for handle in handles:
                handle.remove()
        got["click.up.0"], got["click.up.1"] = ups[:2]
        got["click.masks"] = torch.cat([single, several], 2)[:, 0]
        sparse, got["click.dense"] = got.pop("prompt")
        got["click.sparse"] = sparse[:, 0]
        return {**{k: v.clone() for k, v in got.items()}, **prompt}

    def embed_prompt(self, got):
        given = self.inputs(got)
        if "input_points" not in given and "input_boxes" not in given:             # as Sam3TrackerModel.forward does
            given.update(input_points=torch.zeros(1, 1, 1, 2), input_labels=-torch.ones(1, 1, 1, dtype=torch.int32))
        sparse, dense = self.prompts(*[given.get(k) for k in ("input_points", "input_labels", "input_boxes", "input_masks")])
        return sparse[:, 0], dense

    # ---------------------------------------------------------------- results

    def returned(self, masks):
        return masks

    def predict(self, prompt, multimask, hole_area):
        assert hole_area == 0
        out, size = self.ask(prompt, multimask), [[self.size[1], self.size[0]]]
        inside = self.processor.post_process_masks(out.pred_masks, size)[0][0]
        logits = self.processor.post_process_masks(out.pred_masks, size, binarize=False)[0][0]
        assert torch.equal(inside, logits > 0)
        return out.iou_scores[0, 0], out.pred_masks[0, 0], logits

    def full(self, masks, width, height):
        return self.processor.post_process_masks(masks[None, None], [[height, width]], binarize=False)[0][0]
