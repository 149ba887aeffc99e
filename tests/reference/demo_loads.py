"""Does stock transformers load the demo model as it is: no key missing, none left over, no shape off, no value changed, and does every class run?

    python demo_loads.py [--model models/demo]

Sam3Model, Sam3TrackerModel, Sam3TrackerVideoModel and Sam3VideoModel, from one folder, as a user would load them. The first three hold a part of the file
each; that part must be whole. Also what the file may be: fp16 throughout, at most 32 MB, committed at most twice.
"""
import argparse
import os
import subprocess
import sys

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors import safe_open

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_BYTES, MOST_COMMITS = 32_000_000, 2
KINDS = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")


def loaded(name, folder):
    """The model in fp32, and what loading had to say."""
    return getattr(transformers, name).from_pretrained(folder, dtype=torch.float32, output_loading_info=True)


def origin(name, key):
    """Where the file has a tensor of this class; the tracker shares the detector's picture trunk but not its neck."""
    if name == "Sam3VideoModel":
        return [key]
    if name == "Sam3Model":
        return ["detector_model." + key]
    return ["tracker_model." + key, key.replace("vision_encoder.neck.", "tracker_neck."), "detector_model." + key]


def compare(name, model, stored):
    """(tensors compared, problems): every tensor that the class holds is in the file, with these values."""
    problems, state = [], model.state_dict()
    for key, value in state.items():
        found = [k for k in origin(name, key) if k in stored]
        if not found:
            problems.append(f"{key}: not in the file")
        elif not torch.equal(stored[found[0]].float(), value.float()):
            problems.append(f"{key}: not the values of {found[0]}")
    if name == "Sam3VideoModel":                       # which holds the whole file; transformers does not say all that it left out
        problems += [f"{key}: left out" for key in sorted(set(stored) - set(state))]
    return len(state), problems


@torch.no_grad()
def run(name, model, folder):
    """One small question about check.png, so that a class that loads but cannot run is found out. Returns what must be finite."""
    rgb = torch.from_numpy(np.array(Image.open(os.path.join(folder, "check.png")).convert("RGB")))
    px, side = rgb.permute(2, 0, 1)[None].float() / 127.5 - 1, rgb.shape[0]
    text = transformers.CLIPTokenizer.from_pretrained(folder)("orange", padding="max_length", max_length=32, return_tensors="pt")
    point = torch.full((1, 1, 1, 2), side / 2), torch.ones(1, 1, 1, dtype=torch.int)
    film = dict(video=px.expand(2, -1, -1, -1), video_height=side, video_width=side, dtype=torch.float32)
    if name == "Sam3Model":
        out = model(pixel_values=px, input_ids=text.input_ids, attention_mask=text.attention_mask)
        return [out.pred_masks, out.pred_logits]
    if name == "Sam3TrackerModel":
        out = model(pixel_values=px, input_points=point[0], input_labels=point[1])
        return [out.pred_masks, out.iou_scores]
    if name == "Sam3TrackerVideoModel":
        session = transformers.models.sam3_tracker_video.modeling_sam3_tracker_video.Sam3TrackerVideoInferenceSession(**film)
        session.add_point_inputs(session.obj_id_to_idx(1), 0, {"point_coords": point[0], "point_labels": point[1]})
        session.obj_with_new_inputs = [1]
        return [model(inference_session=session, frame_idx=t).pred_masks for t in range(2)]
    session = transformers.models.sam3_video.modeling_sam3_video.Sam3VideoInferenceSession(**film)
    prompt = session.add_prompt("orange")
    session.prompt_input_ids[prompt], session.prompt_attention_masks[prompt] = text.input_ids, text.attention_mask
    found = [model(inference_session=session, frame_idx=t) for t in range(2)]
    return [mask for out in found for mask in out.obj_id_to_mask.values()]


def about_file(path):
    """Problems of the file itself."""
    problems, size = [], os.path.getsize(path)
    if size > MOST_BYTES:
        problems.append(f"{path}: {size} bytes, expected at most {MOST_BYTES}")
    with safe_open(path, "pt") as f:
        stored = {k: f.get_tensor(k) for k in f.keys()}
    wide = [k for k, v in stored.items() if v.is_floating_point() and v.dtype != torch.float16]
    if wide:
        problems.append(f"{path}: not fp16: {', '.join(wide[:3])}")
    done = subprocess.run(["git", "-C", ROOT, "log", "--format=%h", "--", os.path.relpath(path, ROOT)], capture_output=True, text=True)
    commits = done.stdout.split()
    if done.returncode == 0 and len(commits) > MOST_COMMITS:
        problems.append(f"{path}: committed {len(commits)} times, expected at most {MOST_COMMITS}")
    print(f"model.safetensors: {len(stored)} tensors, fp16, {size / 1e6:.1f} MB, committed {len(commits)} times")
    return stored, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "demo"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    stored, problems = about_file(os.path.join(args.model, "model.safetensors"))
    for name in ("Sam3Model", "Sam3TrackerModel", "Sam3TrackerVideoModel", "Sam3VideoModel"):
        model, info = loaded(name, args.model)
        said = [f"{kind}: {', '.join(map(str, sorted(info[kind])[:3]))}" for kind in KINDS if info.get(kind)]
        n, wrong = compare(name, model.eval(), stored)
        finite = all(torch.isfinite(t.float()).all() for t in run(name, model, args.model))
        wrong = said + wrong[:3] + ([] if finite else ["a result that is not finite"])
        problems += [f"{name}: {line}" for line in wrong]
        print(f"{name}: {n} tensors, {'as in the file, and it runs' if not wrong else 'FAILED'}")
    print("\n".join(problems + [f"demo loads: {'FAILED' if problems else 'passed'} (transformers {transformers.__version__})"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
