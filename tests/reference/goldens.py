"""Makes the committed goldens anew and compares them with what is committed, or (--write) replaces them.

    python goldens.py                        every set, compared
    python goldens.py --write tiny-meta      one set, written
"""
import argparse
import json
import os
import shutil
import sys
import tempfile

import torch

from golden_set import CLICK_SCRIPTS, compare, scripts_sha256

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "tests", "golden", "data")
DEMO = os.path.join(ROOT, "models", "demo")


def agree():
    """Before anything is made: the two references, given the same weights, must agree stage by stage."""
    import click_goldens
    import size_goldens
    import tiny_goldens
    tiny_goldens.layouts_agree(DEMO)
    click_goldens.heads_agree()
    size_goldens.layouts_agree(DEMO)


def older(committed):
    """Says so when the scripts are no longer those that wrote the committed files."""
    path = os.path.join(committed, "cases.json")
    if os.path.exists(path):
        with open(path) as f:
            was = json.load(f)["scripts_sha256"]
        if was not in (scripts_sha256(), scripts_sha256(CLICK_SCRIPTS), scripts_sha256(CLICK_SCRIPTS + ("size_goldens",))):
            print(f"  written by other versions of the scripts ({was[:16]})")


def make_tiny_meta(folder):
    import tiny_goldens
    tiny_goldens.tiny_meta(folder)


def make_tiny_sam31(folder):
    import tiny_goldens
    tiny_goldens.tiny_sam31(folder)


def make_tiny_hf(folder):
    import tiny_goldens
    tiny_goldens.tiny_hf(folder, DEMO)


def make_resize(folder):
    import resize_goldens
    resize_goldens.resize_set(folder)


def make_demo_check(folder):
    import demo_goldens
    demo_goldens.check_set(DEMO, folder)


def make_tiny_meta_click(folder):
    import click_goldens
    click_goldens.tiny_meta_click(folder)


def make_tiny_hf_click(folder):
    import click_goldens
    click_goldens.tiny_hf_click(folder)


def make_everything(folder):
    import everything_goldens
    everything_goldens.everything_set(ROOT, folder)


def make_at_size(name):
    def make(folder):
        import size_goldens
        size_goldens.sets(DATA, DEMO)[name](folder)
    return make


AT_SIZE = ("tiny-meta-at-70", "tiny-meta-at-168", "tiny-hf-at-98", "tiny-hf-at-182", "tiny-meta-click-at-98", "tiny-hf-click-at-168")
SETS = {"resize": make_resize, "tiny-meta": make_tiny_meta, "tiny-sam31": make_tiny_sam31, "tiny-hf": make_tiny_hf,
        "demo-check": make_demo_check, "tiny-meta-click": make_tiny_meta_click, "tiny-hf-click": make_tiny_hf_click,
        **{name: make_at_size(name) for name in AT_SIZE}, "everything": make_everything}  # the last: they take models as they are committed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="all when none is named")
    parser.add_argument("--write", action="store_true", help="replace the committed files")
    parser.add_argument("--threads", type=int, default=1, help="more is slower on models this small")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    failed = []
    agree()
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.sets or SETS:
            fresh, committed = os.path.join(scratch, name), DEMO if name == "demo-check" else os.path.join(DATA, name)
            print(name, flush=True)
            SETS[name](fresh)
            if args.write:
                if name != "demo-check":
                    shutil.rmtree(committed, ignore_errors=True)
                shutil.copytree(fresh, committed, dirs_exist_ok=True)
                print("  written")
                continue
            bad = compare(committed, fresh, subset=name == "demo-check") if os.path.isdir(committed) else [f"{committed} is not there"]
            failed += [f"{name}: {line}" for line in bad]
            older(committed)
            print("  as committed" if not bad else "\n".join("  DIFFERS " + line for line in bad[:20]))
    print(f"scripts {scripts_sha256()[:16]}:", f"{len(failed)} differences" if failed else "nothing differs" if not args.write else "done")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
