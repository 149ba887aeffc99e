"""Stencil against PyTorch eager on the CPU, in one interleaved run: the published sizes, random weights, fp32, the same threads and file.

    python tests/reference/speed.py [--stencil build/stencil] [--cache DIR] [--rounds 5] [--threads 2] [--int8 FILE] [--json FILE]

PyTorch runs Meta's modules (PyPI `sam3`) as shipped: `Sam3Processor.set_image` and `set_text_prompt` in inference mode, attention by scaled_dot_product_attention.
It stays loaded and warmed up in a process of its own; for each of its samples one fresh `stencil bench picture --runs 1 --json` runs, which warms up as well.

    encode          resize, picture encoder, neck; the file is decoded beforehand
    further phrase  a phrase not asked before, text encoder included
    known phrase    the same without the text encoder: Stencil's session keeps a phrase's text; for PyTorch everything after `forward_text`

Both make the masks of 20 instances: Stencil its 20 best, PyTorch those above a threshold between the 20th and the 21st score. Both must find the same 20
before anything is measured. Weights (seeded as for `make parity`, 3.4 GB) are made on the first use, in a few minutes, and kept in the cache folder.

Needs about 11 GB of memory. Also measures the start and the memory of Stencil alone, and `stencil bench masks`. Whatever else the machine does shows in the
samples: on a shared one run all of it under `chrt -f 10`.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PICTURE = (1333, 901)
KNOWN, FURTHER = "wooden table", "red car"          # two tokens each; the second is the first further phrase of `stencil bench picture`
N_MASKS = 20
MIB = 2 ** 20


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def proc_value(path, name):
    with open(path) as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith(name)), "unknown")


# ---------------------------------------------------------------- the file both read

def make_file(path):
    """Meta's model with parity.py's values, as a .pt like the released one."""
    import torch
    import parity
    import pictures
    import tiny_goldens
    from meta_reference import MetaReference
    model = parity.build_meta("full")
    ref = MetaReference(model)
    px = ref.pixels(pictures.synthetic(parity.SEED, *PICTURE), "cpu")
    parity.settle(ref, lambda phrase, boxes, reuse: tiny_goldens.meta_forward(ref, px, phrase, boxes, PICTURE, reuse), PICTURE)
    torch.save({"model": {"detector." + k: v for k, v in model.state_dict().items()}}, path + ".part")
    os.replace(path + ".part", path)


# ---------------------------------------------------------------- PyTorch, in a process of its own

class PyTorch:
    def __init__(self, weights, picture, threads):
        import torch
        from PIL import Image
        import meta_on_cpu
        import parity
        meta_on_cpu.enable()
        from sam3.model.sam3_image_processor import Sam3Processor
        torch.set_num_threads(threads)
        with parity.without_init():
            model = meta_on_cpu.build()
        state = torch.load(weights, mmap=True, weights_only=True)["model"]
        model.load_state_dict({k.removeprefix("detector."): v for k, v in state.items()})
        del state
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")                            # the peak begins anew: reading the file takes more than running the model
        self.torch, self.model, self.threshold = torch, model, {}
        self.processor = Sam3Processor(model, device="cpu")
        self.image = Image.open(picture).convert("RGB")
        self.state = None

    def encode(self):
        self.state = None
        started = time.perf_counter()
        self.state = self.processor.set_image(self.image)
        return {"seconds": time.perf_counter() - started}

    def settle_threshold(self, phrase):
        """Between the 20th and the 21st score of a phrase; a run that keeps nothing finds it."""
        seen, forward = {}, self.model.forward_grounding
        self.model.forward_grounding = lambda *args, **kwargs: seen.setdefault("out", forward(*args, **kwargs))
        self.processor.confidence_threshold = 2.0
        self.processor.set_text_prompt(phrase, self.state)
        del self.model.forward_grounding
        out = seen["out"]
        scores = (out["pred_logits"].sigmoid() * out["presence_logit_dec"].sigmoid().unsqueeze(1)).flatten().sort(descending=True).values
        self.threshold[phrase] = float(scores[N_MASKS - 1:N_MASKS + 1].mean())

    def ask(self, phrase, with_text):
        """with_text False: the phrase must be the one asked last."""
        self.processor.confidence_threshold = self.threshold[phrase]
        started = time.perf_counter()
        if with_text:
            self.processor.set_text_prompt(phrase, self.state)
        else:
            with self.torch.inference_mode():
                self.processor._forward_grounding(self.state)
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "scores": sorted(self.state["scores"].tolist(), reverse=True)}

    def about(self):
        torch = self.torch
        return {"torch": torch.__version__, "threads": torch.get_num_threads(), "capability": torch.backends.cpu.get_cpu_capability(),
                "peak_bytes": int(proc_value("/proc/self/status", "VmHWM").split()[0]) * 1024}


def worker(args):
    """Answers each line on standard input by one line of JSON."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)                                   # what libraries print must not get between
    side = PyTorch(args.weights, args.picture, args.threads)
    side.encode()
    side.settle_threshold(FURTHER)
    side.ask(FURTHER, True)
    doors = {"encode": side.encode, "further": lambda: side.ask(FURTHER, True), "known": lambda: side.ask(FURTHER, False), "about": side.about}
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        print(json.dumps(doors[line.strip()]()), file=answers)


class Worker:
    def __init__(self, weights, picture, threads):
        command = [sys.executable, os.path.abspath(__file__), "--worker", "--weights", weights, "--picture", picture, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit("speed.py: the process with PyTorch ended")
        return json.loads(line)

    def ask(self, what):
        self.process.stdin.write(what + "\n")
        return self.answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---------------------------------------------------------------- Stencil

def stencil(program, *arguments):
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"speed.py: {program} {' '.join(arguments)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def check_same_answer(args, pytorch, picture):
    """What is compared must be the same work: the 20 best scores of both."""
    want = pytorch.ask("further")["scores"]
    doc = stencil(args.stencil, "segment", picture, FURTHER, "-q", "-m", args.weights, "--format", "json", "--resize", "cpu", "--threads", str(args.threads),
                  "--threshold", "0", "--max-detections", str(N_MASKS))
    got = [i["score"] for i in doc["images"][0]["results"][0]["instances"]]
    apart = max((abs(a - b) for a, b in zip(got, want)), default=9)
    say(f"{len(want)} instances by PyTorch, {len(got)} by Stencil, scores at most {apart:.2g} apart")
    if len(want) != N_MASKS or len(got) != N_MASKS or apart > 1e-3:
        sys.exit("speed.py: the two do not find the same: their speed cannot be compared")


# ---------------------------------------------------------------- the run

def median(values):
    return statistics.median(values)


def row(name, theirs, ours, unit="s", digits=2):
    show = lambda v: "–" if v is None else f"{v:.{digits}f} {unit}"
    ratio = f"{theirs / ours:.2f}" if theirs is not None and ours else "–"
    return f"| {name} | {show(theirs)} | {show(ours)} | {ratio} |"


def print_table(result):
    theirs, ours = result["pytorch"], result["stencil"]
    m = {k: median([r[k]["median"] for r in ours]) for k in ("encode", "further_phrase", "same_phrase")}
    first = lambda k: median([r["first"][k] for r in ours])
    gb = 1e9
    print(f"\n{result['cpu']}, {result['threads']} threads; torch {result['about']['torch']} ({result['about']['capability']}); "
          f"Stencil {ours[0]['stencil']}, {ours[0]['level']}, {ours[0]['gemm']}; {len(ours)} samples each\n")
    print("| | PyTorch | Stencil | PyTorch / Stencil |\n|---|---:|---:|---:|")
    print(row("picture encode", median(theirs["encode"]), m["encode"]))
    print(row("picture encode, the first of a process", None, first("encode_seconds")))
    print(row("further phrase, text included", median(theirs["further"]), m["further_phrase"]))
    print(row("known phrase, text excluded", median(theirs["known"]), m["same_phrase"]))
    print(row("first phrase of a process", None, first("phrase_seconds")))
    print(row("peak resident, picture + phrase", result["about"]["peak_bytes"] / gb, first("peak_resident_bytes") / gb, "GB"))
    print(row("planned peak", None, ours[0]["memory"]["plan_peak_bytes"] / gb, "GB"))
    print(row("first request accepted after the start", None, median([r["start"]["accepted_seconds"] for r in ours])))
    if result["int8"]:
        small = result["int8"]
        print(f"\nint8 ({os.path.getsize(result['int8_file']) / gb:.2f} GB), in the same rounds\n")
        print("| | PyTorch fp32 | Stencil int8 | PyTorch / Stencil |\n|---|---:|---:|---:|")
        print(row("picture encode", median(theirs["encode"]), median([r["encode"]["median"] for r in small])))
        print(row("further phrase, text included", median(theirs["further"]), median([r["further_phrase"]["median"] for r in small])))
        print(row("known phrase, text excluded", median(theirs["known"]), median([r["same_phrase"]["median"] for r in small])))
        print(row("peak resident, picture + phrase", result["about"]["peak_bytes"] / gb, median([r["first"]["peak_resident_bytes"] for r in small]) / gb, "GB"))
        print(row("planned peak", None, small[0]["memory"]["plan_peak_bytes"] / gb, "GB"))
    masks = result["masks"]
    print(f"\n{masks['instances']} masks of {masks['size']} x {masks['size']}: median {1e3 * masks['seconds']['median']:.0f} ms of {masks['runs']}, "
          f"{masks['peak_growth_bytes'] / MIB:.1f} MiB beyond the logits")
    print("\nevery sample, in seconds:")
    for side, samples in (("PyTorch", theirs), ("Stencil", {k: [r[k]["median"] for r in ours] for k in m})):
        for name, values in samples.items():
            print(f"    {side} {name}: " + " ".join(f"{v:.2f}" for v in values))


def measure(args, picture):
    pytorch = Worker(args.weights, picture, args.threads)
    say("PyTorch is loaded and warmed up")
    check_same_answer(args, pytorch, picture)
    result = {"cpu": proc_value("/proc/cpuinfo", "model name"), "threads": args.threads, "pytorch": {"encode": [], "further": [], "known": []}, "stencil": [], "int8": []}
    for i in range(args.rounds):
        for what, samples in result["pytorch"].items():
            samples.append(pytorch.ask(what)["seconds"])
        result["stencil"].append(stencil(args.stencil, "bench", "picture", picture, KNOWN, "-q", "-m", args.weights, "--threads", str(args.threads),
                                         "--runs", "1", "--json"))
        if args.int8:
            result["int8"].append(stencil(args.stencil, "bench", "picture", picture, KNOWN, "-q", "-m", args.int8, "--threads", str(args.threads), "--runs", "1", "--json"))
        ours = result["stencil"][-1]
        say(f"round {i + 1} of {args.rounds}: PyTorch " + ", ".join(f"{k} {v[-1]:.2f}" for k, v in result["pytorch"].items()) + "; Stencil " +
            ", ".join(f"{k} {ours[k]['median']:.2f}" for k in ("encode", "further_phrase", "same_phrase")))
    result["about"], result["int8_file"] = pytorch.ask("about"), args.int8
    pytorch.close()
    result["masks"] = stencil(args.stencil, "bench", "masks", "--threads", str(args.threads), "--json")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stencil", default=os.path.join(ROOT, "build", "stencil"))
    parser.add_argument("--cache", default=os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stencil-parity"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--int8", help="what `stencil quantize` made of the cache folder's weights: measured in the same rounds")
    parser.add_argument("--json", help="write every sample there as well")
    parser.add_argument("--make-file", action="store_true", help="only make the weights")
    for hidden in ("--weights", "--picture"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    os.makedirs(args.cache, exist_ok=True)
    args.weights, picture = os.path.join(args.cache, "speed-meta.pt"), os.path.join(args.cache, "speed.png")
    if not os.path.exists(args.weights):
        say(f"making {args.weights}")
        make_file(args.weights)
    if args.make_file:
        return None
    if not os.access(args.stencil, os.X_OK):
        sys.exit(f"speed.py: {args.stencil} is not there: run make")
    available = int(proc_value("/proc/meminfo", "MemAvailable").split()[0]) * 1024
    if available < 11 * 2 ** 30:
        sys.exit(f"speed.py: {available / 2 ** 30:.1f} GiB of memory are available, 11 are needed")
    import parity
    import pictures
    from PIL import Image
    Image.fromarray(pictures.synthetic(parity.SEED, *PICTURE)).save(picture)
    result = measure(args, picture)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(result, f, indent=1)
    print_table(result)
    return None


if __name__ == "__main__":
    sys.exit(main())
