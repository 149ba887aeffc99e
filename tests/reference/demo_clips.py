"""The demo model on clips: one click on an object in the first frame, followed through eight by Hugging Face's Sam3TrackerVideoModel.

    python demo_clips.py [--clips 30] [--size 224] [--model-size 336]

Only the reference is scored: Stencil has no video. Every object with more than 60 visible pixels in the first frame gets one click in its middle; all objects
of a clip are followed together. IoU counts in frames where 30 pixels or more of the object show; in frames where none shows, the object should be
reported absent: no pixel in its mask. A frame in between counts for neither. The bars are what the model was to reach; they are only shown.
"""
import argparse
import os
import sys
import tempfile

import numpy as np
import torch
from PIL import Image

from demo_clicks import iou, middle

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "models", "demo"))
import model_at  # noqa: E402
import scenes  # noqa: E402
from score import FIRST_SEED  # noqa: E402

LEAST_FIRST, LEAST_SHOWN = 61, 30
BARS = {"mean IoU": .8, "absent": .9}


def load(folder):
    import transformers
    transformers.logging.set_verbosity_error()                     # it is the video model's file, which is what transformers warns of
    transformers.logging.disable_progress_bar()
    from transformers import Sam2VideoVideoProcessor, Sam3ImageProcessor, Sam3TrackerVideoModel, Sam3TrackerVideoProcessor
    model, about = Sam3TrackerVideoModel.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not about["missing_keys"] and not about["mismatched_keys"], about
    n = model.config.image_size
    size = {"height": n, "width": n}
    videos = Sam2VideoVideoProcessor(size=size, image_mean=[.5] * 3, image_std=[.5] * 3)       # the class that SAM 3's own files name
    return model.eval(), Sam3TrackerVideoProcessor(Sam3ImageProcessor(size=size), videos)


@torch.no_grad()
def follow(model, processor, film, clicks):
    """[frame][object] -> bool mask, from one click an object on the first frame."""
    session = processor.init_video_session(video=[Image.fromarray(f) for f in film], inference_device="cpu")
    ids, size = list(range(1, len(clicks) + 1)), [film[0].shape[:2]]
    processor.add_inputs_to_inference_session(session, frame_idx=0, obj_ids=ids, input_points=[[[list(map(float, c))] for c in clicks]],
                                              input_labels=[[[1] for _ in clicks]])
    frames = {0: model(inference_session=session, frame_idx=0)}
    frames.update({out.frame_idx: out for out in model.propagate_in_video_iterator(session)})
    masks = {t: processor.post_process_masks([out.pred_masks], original_sizes=size)[0] for t, out in frames.items()}
    return [[m.numpy().reshape(size[0]) for m in masks[t]] for t in range(len(film))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=os.path.join(ROOT, "models", "demo"))
    parser.add_argument("--clips", type=int, default=30)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--size", type=int, default=336, help="side of the frames in pixels")
    parser.add_argument("--model-size", type=int, help="what the model looks at (default: its own size, to which frames are reduced)")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    shown, per_frame, gone, objects = [], [[] for _ in range(args.frames)], [], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = model_at.model_at(args.model_size, os.path.join(scratch, "model"), args.model) if args.model_size else args.model
        model, processor = load(folder)
        for seed in range(FIRST_SEED, FIRST_SEED + args.clips):
            film, actors = scenes.clip(seed, args.size, args.frames)
            truth = [masks for _, masks in actors if masks[0].sum() >= LEAST_FIRST]
            if not truth:
                continue
            objects += len(truth)
            for t, found in enumerate(follow(model, processor, film, [middle(m[0]) for m in truth])):
                for mask, right in zip(found, (m[t] for m in truth)):
                    if right.sum() >= LEAST_SHOWN:
                        shown.append(iou(mask, right))
                        per_frame[t].append(shown[-1])
                    elif not right.any():
                        gone.append(not mask.any())
    print(f"{args.clips} clips of {args.frames} frames of {args.size} pixels (seeds {FIRST_SEED} and up), model for {model.config.image_size}, "
          f"{objects} objects, one click each; Sam3TrackerVideoModel")
    for name, values, about in (("mean IoU", shown, "frames in which an object shows"), ("absent", gone, "frames after it left")):
        value = float(np.mean(values)) if values else 0.0
        print(f"  {name:9} {value:.3f}  of {len(values)} {about}; bar {BARS[name]:.2f}{'' if value >= BARS[name] else ', not reached'}")
    print("  by frame: " + " ".join(f"{np.mean(v):.3f}" if v else "-" for v in per_frame))


if __name__ == "__main__":
    main()
