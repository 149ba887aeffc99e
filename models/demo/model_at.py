"""The demo model as one for pictures of another size: positions and boxes are relative, so that the same weights serve, and only config.json differs.

    python3 models/demo/model_at.py 336 /tmp/demo-336          # then: stencil segment -m /tmp/demo-336 ..."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PATCH, WINDOW = 14, 8
AS_THEY_ARE = ("model.safetensors", "merges.txt", "vocab.json", "tokenizer_config.json")


def resized(value, size):
    """A configuration with every size that follows from the picture's changed."""
    n = size // PATCH
    follows = {"image_size": size, "backbone_feature_sizes": [[k * n, k * n] for k in (4, 2, 1)], "low_res_mask_size": 4 * n}
    return {k: resized(v, size) if isinstance(v, dict) else follows.get(k, v) for k, v in value.items()}


def model_at(size, folder, model=HERE):
    """Fills `folder` with links to the weights and configurations of its own; returns it."""
    if size % (PATCH * WINDOW):
        sys.exit(f"model_at.py: expected a multiple of {PATCH * WINDOW} pixels (whole windows), got {size}")
    os.makedirs(folder, exist_ok=True)
    for name in AS_THEY_ARE:
        if os.path.lexists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
        os.symlink(os.path.join(os.path.abspath(model), name), os.path.join(folder, name))
    with open(os.path.join(model, "config.json")) as f:
        config = resized(json.load(f), size)
    with open(os.path.join(model, "preprocessor_config.json")) as f:
        pictures = json.load(f)
    pictures["size"], side = {"height": size, "width": size}, 4 * size // PATCH
    pictures["mask_size"] = {"height": side, "width": side}
    for name, value in (("config.json", config), ("preprocessor_config.json", pictures)):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f, indent=1)
    return folder


if __name__ == "__main__":
    if len(sys.argv) != 3 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    model_at(int(sys.argv[1]), sys.argv[2])
