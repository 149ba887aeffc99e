"""Meta's interactive head, run as sam3/model/sam3_image.py does (predict_inst), watched by hooks."""
from types import SimpleNamespace

import numpy as np
import torch

import meta_on_cpu
from click_reference import ClickReference

meta_on_cpu.enable()

from sam3.model.sam3_image_processor import Sam3Processor                          # noqa: E402
from torchvision.transforms import v2                                              # noqa: E402

from meta_reference import force_resize                                            # noqa: E402


class Embedded(Exception):
    """Ends a run when the prompt is embedded."""


class MetaClickReference(ClickReference):
    layout = "meta"

    def __init__(self, model):
        self.model, self.predictor = model, model.inst_interactive_predictor
        self.tracker = self.predictor.model
        self.head, self.prompts, self.decoder = self.tracker, self.tracker.sam_prompt_encoder, self.tracker.sam_mask_decoder
        self.vision = model.backbone.vision_backbone
        self.top = f"vit.block.{len(self.vision.trunk.blocks) - 1}"
        self.image_size, self.grid = self.tracker.image_size, self.tracker.sam_image_embedding_size
        self.mask_size = 4 * self.grid
        self.processor = Sam3Processor(model, resolution=self.image_size, device="cpu")

    def pixels(self, rgb):
        """As on a GPU: resized in fp32, rounded."""
        from PIL import Image
        force_resize("gpu")
        return self.processor.transform(v2.functional.to_image(Image.fromarray(rgb)))[None]

    def parts(self):
        d, t = self.decoder, self.decoder.transformer
        dc1, ln1, act1, dc2, _ = d.output_upscaling
        return SimpleNamespace(
            neck=self.vision.sam2_convs, skips=[d.conv_s0, d.conv_s1], layers=t.layers, final=t.final_attn_token_to_image,
            final_norm=t.norm_final_attn, features=lambda level: level + self.tracker.no_mem_embed.view(1, -1, 1, 1),
            first_tokens=lambda: torch.cat([d.obj_score_token.weight, d.iou_token.weight, d.mask_tokens.weight])[None],
            grid_code=self.prompts.get_dense_pe, ups=[dc1, dc2], up_norm=ln1, gelu=act1, hyper=d.output_hypernetworks_mlps,
            iou=d.iou_prediction_head, score=d.pred_obj_score_head)

    # ---------------------------------------------------------------- the model, as its processor and predictor run it

    def set_picture(self, px, width, height):
        """Tensors of the picture's own stages; px [1,3,S,S]."""
        got, handles = {}, []
        hook = lambda module, name: handles.append(module.register_forward_hook(lambda m, args, out: got.__setitem__(name, out)))
        hook(self.vision.trunk.blocks[-1], self.top)
        for i in range(3):
            hook(self.vision.sam2_convs[i], f"click_neck.{i}")
        transform, self.processor.transform = self.processor.transform, lambda image: px[0]
        try:
            self.state = self.processor.set_image(torch.zeros(3, height, width, dtype=torch.uint8))
        finally:
            self.processor.transform = transform
            for handle in handles:
                handle.remove()
        maps = self.state["backbone_out"]["sam2_backbone_out"]["backbone_fpn"]
        got["click.skip0"], got["click.skip1"] = maps[0], maps[1]
        return {k: v.clone() for k, v in got.items()}

    def ask(self, prompt, **how):
        points = prompt["points"]
        return self.model.predict_inst(
            self.state, point_coords=np.array([p[:2] for p in points]) if points else None,
            point_labels=np.array([int(p[2]) for p in points]) if points else None,
            box=np.array(prompt["region"]) if prompt["region"] else None,
            mask_input=prompt["mask"][None] if prompt["mask"] is not None else None, **how)

    @torch.no_grad()
    def forward(self, of_picture, prompt):
        """Every stage of the set picture for one prompt."""
        got, handles = dict(of_picture), []

        def hook(module, name, pick=lambda out: out):
            handles.append(module.register_forward_hook(lambda m, args, out: got.__setitem__(name, pick(out))))
        hook(self.prompts, "prompt")
        handles.append(self.decoder.register_forward_pre_hook(
            lambda m, args, kwargs: got.__setitem__("click.features", kwargs["image_embeddings"]), with_kwargs=True))
        for i, layer in enumerate(self.decoder.transformer.layers):
            hook(layer, f"click.tokens.{i}", lambda out: out[0])
            hook(layer, f"click.image.{i}", lambda out: out[1])
        hook(self.decoder.transformer, "click.tokens.final", lambda out: out[0])
        hook(self.decoder.output_upscaling[2], "click.up.0")
        hook(self.decoder.output_upscaling[4], "click.up.1")
        hook(self.decoder.iou_prediction_head, "click.iou")
        hook(self.decoder.pred_obj_score_head, "click.score")
        whole = self.decoder.predict_masks

        def predict_masks(**kwargs):
            out = whole(**kwargs)
            got["click.masks"] = out[0]
            return out
        self.decoder.predict_masks = predict_masks
        try:
            self.ask(prompt)
        finally:
            del self.decoder.predict_masks
            for handle in handles:
                handle.remove()
        got["click.sparse"], got["click.dense"] = got.pop("prompt")
        got = {k: v.clone() for k, v in got.items()}
        return {**got, "points": prompt["points"], "region": prompt["region"], "mask": prompt["mask"]}

    def embed_prompt(self, got):
        """(sparse, dense) for got's prompt; in FP64 from the pixel coordinates on."""
        points, region, mask = got["points"], got["region"], got["mask"]
        mask, coords, labels, box = self.predictor._prep_prompts(
            np.array([p[:2] for p in points]) if points else None, np.array([int(p[2]) for p in points]) if points else None,
            np.array(region) if region else None, mask[None] if mask is not None else None, True)

        def hook(module, args, out):
            raise Embedded(out)
        handle = self.prompts.register_forward_hook(hook)
        self.predictor._is_image_set = True
        try:
            self.predictor._predict(coords, labels, box, mask)
        except Embedded as stop:
            return stop.args[0]
        finally:
            handle.remove()
            self.predictor._is_image_set = False

    # ---------------------------------------------------------------- results

    def returned(self, masks):
        return masks.clamp(-32, 32)

    def predict(self, prompt, multimask, hole_area):
        """(IoU [C], low-resolution logits [C,M,M], full-size logits [C,H,W]) as the predictor returns them."""
        self.predictor._transforms.max_hole_area = hole_area
        inside, iou, low = self.ask(prompt, multimask_output=multimask)
        logits, again, _ = self.ask(prompt, multimask_output=multimask, return_logits=True)
        assert (iou == again).all() and ((logits > 0) == (inside > 0)).all()
        return torch.from_numpy(iou), torch.from_numpy(low), torch.from_numpy(logits)

    def full(self, masks, width, height):
        """Holes (of the area last asked for) filled, then resized."""
        return self.predictor._transforms.postprocess_masks(masks[None], (height, width))[0]
