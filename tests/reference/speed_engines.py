"""The picture encode against OpenVINO and ONNX Runtime on the CPU, fp32 and their int8, in one interleaved run: the published sizes, random weights.

    python -m venv engines && engines/bin/pip install -r tests/reference/requirements.txt -r tests/reference/engines.txt
    engines/bin/python tests/reference/speed_engines.py --prepare [--steps NAME,...] [--limit 1800] [--threads 2]
    engines/bin/python tests/reference/speed_engines.py [--rounds 3] [--threads 2] [--int8 FILE] [--only NAME,...] [--json FILE]

The file is speed.py's. `--prepare` takes Meta's ViT trunk and the three levels of the neck that the detector reads out of it and converts them, each step in a
process of its own under a time limit; what a step took (seconds, memory) or why it failed is kept beside its output, in the cache folder. The only change to
Meta's modules is that rotary positions are turned by sines and cosines, for the converters know no complex numbers; the outputs of both must agree to 1e-4.

Measuring: in every round each engine gets a fresh process that loads its model, encodes once to warm up (the output is compared with Meta's modules) and once more against
the clock; in the same round `stencil bench picture --runs 1 --json` does the same with the fp32 file and, with --int8, with what `stencil quantize` made of it. The engines
get normalised pixels; Stencil's figure has the resize in it. An engine that is not installed or not prepared is left out, and the table says so.
"""
import argparse
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import speed
from speed import ROOT, proc_value, say, stencil

N_CALIBRATION, CALIBRATION_SIDE = 2, 672
CLOSE = 1e-4                            # real against complex rotation: largest difference over the level's RMS
OPSET = 18
LEVELS = ("neck.0", "neck.1", "neck.2")


# ---------------------------------------------------------------- Meta's encoder

def turn(x, cos, sin):
    """Neighbouring channels are the real and the imaginary part, as in sam3/model/vitdet.py, apply_rotary_enc."""
    import torch
    re, im = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return x * cos + torch.stack([-im, re], dim=-1).flatten(3) * sin


def turn_by_real_numbers(attention):
    cis = attention.freqs_cis
    del attention.freqs_cis
    attention.register_buffer("cos", cis.real.repeat_interleave(2, dim=-1).contiguous())
    attention.register_buffer("sin", cis.imag.repeat_interleave(2, dim=-1).contiguous())
    attention._apply_rope = lambda q, k: (turn(q, attention.cos, attention.sin), turn(k, attention.cos, attention.sin))


def encoder(weights, side=None):
    """[1, 3, S, S] -> the neck's three levels; weights stay mapped. side: another S than the published one."""
    import torch
    import meta_on_cpu
    import parity
    meta_on_cpu.enable()
    with parity.without_init():
        model = meta_on_cpu.build({"ViT": {"img_size": side}} if side else None)
    state = torch.load(weights, mmap=True, weights_only=True)["model"]
    fixed = {k for k, _ in model.named_buffers()}                # rotations belong to a size
    model.load_state_dict({k: v for k, v in ((k.removeprefix("detector."), v) for k, v in state.items()) if k not in fixed or not side}, assign=True, strict=not side)

    class Encoder(torch.nn.Module):
        def __init__(self, neck):
            super().__init__()
            self.trunk, self.convs = neck.trunk, neck.convs[:len(LEVELS)]

        def forward(self, px):
            x = self.trunk(px)[-1]
            return tuple(conv(x) for conv in self.convs)

    return Encoder(model.backbone.vision_backbone).eval().requires_grad_(False)


def real_encoder(args, side=None):
    import torch
    torch.set_num_threads(args.threads)
    model = encoder(args.weights, side)
    for block in model.trunk.blocks:
        turn_by_real_numbers(block.attn)
    return model


def pixels_of(picture_seed, side):
    """As Sam3Processor makes them: resized by torchvision's uint8 kernel, mean and deviation 0.5."""
    import torch
    from PIL import Image
    from torchvision.transforms import v2
    import pictures
    to_pixels = v2.Compose([v2.ToDtype(torch.uint8, scale=True), v2.Resize(size=(side, side)), v2.ToDtype(torch.float32, scale=True),
                            v2.Normalize(mean=[0.5] * 3, std=[0.5] * 3)])
    return to_pixels(v2.functional.to_image(Image.fromarray(pictures.synthetic(picture_seed, *speed.PICTURE))))[None].numpy()


def compare(outputs, wanted):
    """Per level: cosine, and RMS and largest difference over the RMS of what is wanted."""
    report = {}
    for name, got in zip(LEVELS, outputs):
        x, y = np.asarray(got, np.float64).ravel(), np.asarray(wanted[name], np.float64).ravel()
        rms = np.sqrt(np.mean(y * y))
        report[name] = {"cosine": float(x @ y / np.sqrt((x @ x) * (y @ y))), "rms_error": float(np.sqrt(np.mean((x - y) ** 2)) / rms),
                        "max_error": float(np.abs(x - y).max() / rms)}
    return report


# ---------------------------------------------------------------- conversion, one process per step

def step_reference(args):
    import torch
    import parity
    model = encoder(args.weights)
    torch.set_num_threads(args.threads)
    side = model.trunk.patch_embed.proj.kernel_size[0] * model.trunk.blocks[model.trunk.full_attn_ids[-1]].attn.input_size[0]
    px = pixels_of(parity.SEED, side)
    with torch.inference_mode():
        wanted = {name: t.clone().numpy() for name, t in zip(LEVELS, model(torch.from_numpy(px)))}
        for block in model.trunk.blocks:
            turn_by_real_numbers(block.attn)
        real = compare(model(torch.from_numpy(px)), wanted)
    say(f"real against complex rotation: {real}")
    if max(level["max_error"] for level in real.values()) > CLOSE:
        sys.exit("speed_engines.py: the encoder with real rotations gives something else")
    np.save(args.at("pixels.npy"), px)
    np.savez(args.at("reference.npz"), **wanted)
    return real


def exported(args, side=None):
    """Traced on stand-ins without values: torch.jit.trace keeps every intermediate tensor, 20 GB of them."""
    import torch
    px = torch.zeros(1, 3, side, side) if side else torch.from_numpy(np.load(args.at("pixels.npy")))
    with torch.no_grad():
        return torch.export.export(real_encoder(args, side), (px,), strict=False)


def step_openvino(args):
    import openvino as ov
    converted = ov.convert_model(exported(args))
    ov.save_model(converted, args.at("openvino.xml"), compress_to_fp16=False)
    return {"operations": len(converted.get_ops())}


def step_openvino_small(args):
    import openvino as ov
    ov.save_model(ov.convert_model(exported(args, CALIBRATION_SIDE)), args.at("openvino-small.xml"), compress_to_fp16=False)
    return {}


def constants(model):
    return {op.get_friendly_name(): op for op in model.get_ops() if op.get_type_name() == "Constant"}


def same_constant(a, b):
    return a.get_output_shape(0) == b.get_output_shape(0) and np.array_equal(a.data, b.data)


def step_openvino_int8(args):
    """NNCF keeps every activation it looks at until the end of a pass (20 GB at 1,008 x 1,008). So it calibrates a smaller picture's model; the constants
    in which that model differs from the full one (shapes, positions, rotations) are then put back."""
    import nncf
    import openvino as ov
    import parity
    core = ov.Core()
    small, full = core.read_model(args.at("openvino-small.xml")), core.read_model(args.at("openvino.xml"))
    theirs = constants(full)
    sized = {name for name, op in constants(small).items() if not same_constant(op, theirs[name])}
    calibration = nncf.Dataset([pixels_of(parity.SEED + 1 + i, CALIBRATION_SIDE) for i in range(N_CALIBRATION)])
    quantised = nncf.quantize(small, calibration, model_type=nncf.ModelType.TRANSFORMER, subset_size=N_CALIBRATION, fast_bias_correction=True)
    found = constants(quantised)
    for name in sized:
        new = ov.opset13.constant(theirs[name].data)
        for target in found[name].output(0).get_target_inputs():
            target.replace_source_output(new.output(0))
    quantised.inputs[0].get_node().set_partial_shape(full.inputs[0].partial_shape)
    quantised.validate_nodes_and_infer_types()
    ov.save_model(quantised, args.at("openvino-int8.xml"), compress_to_fp16=False)
    return {"sized": len(sized), "fake_quantize": sum(op.get_type_name() == "FakeQuantize" for op in quantised.get_ops())}


def step_openvino_weights8(args):
    import nncf
    import openvino as ov
    model = nncf.compress_weights(ov.Core().read_model(args.at("openvino.xml")), mode=nncf.CompressWeightsMode.INT8_SYM)
    ov.save_model(model, args.at("openvino-weights8.xml"), compress_to_fp16=False)
    return {}


def step_onnx(args):
    import torch
    torch.onnx.export(exported(args), (), args.at("onnx.onnx"), input_names=["px"], output_names=list(LEVELS), opset_version=OPSET, dynamo=True, external_data=True)
    return {}


def step_onnx_int8(args):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(args.at("onnx.onnx"), args.at("onnx-int8.onnx"), op_types_to_quantize=["MatMul", "Gemm"], per_channel=True,
                     weight_type=QuantType.QInt8, use_external_data_format=True)
    return {}


STEPS = {"reference": step_reference, "openvino": step_openvino, "openvino-small": step_openvino_small, "openvino-int8": step_openvino_int8, "openvino-weights8": step_openvino_weights8,
         "onnx": step_onnx, "onnx-int8": step_onnx_int8}


def peak_bytes(pid):
    try:
        return int(proc_value(f"/proc/{pid}/status", "VmHWM").split()[0]) * 1024
    except (OSError, ValueError):
        return 0


def cpu_seconds(pid):
    """Of a running process, all threads: on a shared machine a step's own time says more than the clock."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return sum(int(v) for v in f.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError):
        return 0


def run_step(args, name):
    """Runs one step under the limit; its messages go to NAME.log, the outcome to NAME.json."""
    command = [sys.executable, os.path.abspath(__file__), "--step", name, "--cache", args.cache, "--threads", str(args.threads)]
    started, peak, cpu, note = time.monotonic(), 0, 0, "done"
    with open(args.at(name + ".log"), "w") as log:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        while child.poll() is None:
            peak, cpu = max(peak, peak_bytes(child.pid)), max(cpu, cpu_seconds(child.pid))
            if time.monotonic() - started > args.limit:
                child.kill()
                note = f"stopped at the limit of {args.limit} s"
            time.sleep(0.2)
    if child.returncode and note == "done":
        with open(args.at(name + ".log")) as log:
            note = f"exit code {child.returncode}: " + (log.read().strip().splitlines() or [""])[-1]
    lines = child.stdout.read().strip().splitlines()
    outcome = {"step": name, "outcome": note, "seconds": time.monotonic() - started, "cpu_seconds": cpu, "peak_bytes": peak, "threads": args.threads,
               "found": json.loads(lines[-1]) if note == "done" else None}
    with open(args.at(name + ".json"), "w") as f:
        json.dump(outcome, f, indent=1)
    say(f"{name}: {note}, {outcome['seconds']:.0f} s, {peak / 1e9:.1f} GB")


# ---------------------------------------------------------------- the engines, each in a process of its own

def openvino_engine(file, precision):
    def load(args):
        import openvino as ov
        config = {"INFERENCE_NUM_THREADS": args.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
        if precision:
            config["INFERENCE_PRECISION_HINT"] = precision
        compiled = ov.Core().compile_model(args.at(file), "CPU", config)
        request = compiled.create_infer_request()

        def encode(px):
            request.infer([px], share_inputs=True, share_outputs=True)
            return [request.get_output_tensor(i).data for i in range(len(LEVELS))]
        about = {"precision": str(compiled.get_property("INFERENCE_PRECISION_HINT")), "threads": compiled.get_property("INFERENCE_NUM_THREADS")}
        return encode, about
    return file, load


def onnx_engine(file):
    def load(args):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = args.threads, 1
        session = ort.InferenceSession(args.at(file), options, providers=["CPUExecutionProvider"])
        return lambda px: session.run(None, {"px": px}), {"threads": args.threads}
    return file, load


def pytorch_engine():
    def load(args):
        import torch
        torch.set_num_threads(args.threads)
        model = encoder(args.weights)

        def encode(px):
            with torch.inference_mode():
                return [t.numpy() for t in model(torch.from_numpy(px))]
        return encode, {"threads": torch.get_num_threads(), "capability": torch.backends.cpu.get_cpu_capability()}
    return "pixels.npy", load


ENGINES = {                              # name -> title, package, (file, how it is loaded)
    "pytorch": ("PyTorch fp32", "torch", pytorch_engine()),
    "openvino": ("OpenVINO fp32", "openvino", openvino_engine("openvino.xml", "f32")),
    "openvino-bf16": ("OpenVINO, its default precision", "openvino", openvino_engine("openvino.xml", None)),
    "openvino-weights8": ("OpenVINO, int8 weights (NNCF)", "openvino", openvino_engine("openvino-weights8.xml", "f32")),
    "openvino-int8": ("OpenVINO int8 (NNCF), the rest fp32", "openvino", openvino_engine("openvino-int8.xml", "f32")),
    "openvino-int8-bf16": ("OpenVINO int8 (NNCF), the rest at its default", "openvino", openvino_engine("openvino-int8.xml", None)),
    "onnx": ("ONNX Runtime fp32", "onnxruntime", onnx_engine("onnx.onnx")),
    "onnx-int8": ("ONNX Runtime int8 (dynamic)", "onnxruntime", onnx_engine("onnx-int8.onnx")),
}


def engine_process(args):
    """Loads, warms up, measures once; prints one line of JSON."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)                       # what libraries print must not get between
    px, started = np.load(args.at("pixels.npy")), time.perf_counter()
    encode, about = ENGINES[args.engine][2][1](args)
    loaded = time.perf_counter()
    outputs = encode(px)
    warm = time.perf_counter()
    with np.load(args.at("reference.npz")) as wanted:
        agreement = compare(outputs, wanted)
    del outputs
    again = time.perf_counter()
    encode(px)
    seconds = time.perf_counter() - again
    print(json.dumps({**about, "load_seconds": loaded - started, "first_seconds": warm - loaded, "seconds": seconds, "agreement": agreement,
                      "peak_bytes": peak_bytes("self")}), file=answers)


def why_not(args, name):
    _, package, (file, _) = ENGINES[name]
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed"
    return None if os.path.exists(args.at(file)) and os.path.exists(args.at("reference.npz")) else f"not prepared ({file})"


def sample(args, name):
    command = [sys.executable, os.path.abspath(__file__), "--engine", name, "--cache", args.cache, "--threads", str(args.threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"failed": f"exit code {done.returncode}"}
    return json.loads(done.stdout)


# ---------------------------------------------------------------- Stencil

def saved_levels(path):
    """The neck's levels from what `stencil encode` wrote: token-major rows in a safetensors file."""
    with open(path, "rb") as f:
        raw = f.read()
    size = 8 + int.from_bytes(raw[:8], "little")
    about, out = json.loads(raw[8:size]), []
    for name in LEVELS:
        begin, end = about[name]["data_offsets"]
        rows = np.frombuffer(raw[size + begin:size + end], np.float32).reshape(about[name]["shape"])
        out.append(rows.T)
    return out


def stencil_agreement(args, model):
    features = args.at("stencil.features")
    done = subprocess.run([args.stencil, "encode", args.picture, "-q", "-m", model, "--resize", "cpu", "--threads", str(args.threads), "-o", features], check=False)
    if done.returncode:
        sys.exit(f"speed_engines.py: stencil encode: exit code {done.returncode}")
    with np.load(args.at("reference.npz")) as wanted:
        report = compare(saved_levels(features), wanted)
    os.remove(features)
    return report


def stencil_sample(args, model):
    receipt = stencil(args.stencil, "bench", "picture", args.picture, speed.KNOWN, "-q", "-m", model, "--threads", str(args.threads), "--runs", "1", "--json")
    return {"seconds": receipt["encode"]["median"], "first_seconds": receipt["first"]["encode_seconds"],
            "peak_bytes": receipt["first"]["peak_resident_bytes"], "receipt": receipt}


# ---------------------------------------------------------------- the run

def versions():
    out = {}
    for package in ("torch", "openvino", "nncf", "onnx", "onnxruntime", "numpy"):
        try:
            out[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            out[package] = None
    return out


def outcomes(args):
    out = {}
    for name in STEPS:
        if os.path.exists(args.at(name + ".json")):
            with open(args.at(name + ".json")) as f:
                out[name] = json.load(f)
    return out


def save(args, result):
    if args.json:
        with open(args.json, "w") as f:
            json.dump(result, f, indent=1)


def measure(args):
    ours = {"stencil": args.weights} if not args.only or "stencil" in args.only else {}
    if args.int8 and (not args.only or "stencil-int8" in args.only):
        ours["stencil-int8"] = args.int8
    missing = {name: why_not(args, name) for name in ENGINES}
    theirs = [name for name in ENGINES if not missing[name] and (not args.only or name in args.only)]
    result = {"cpu": proc_value("/proc/cpuinfo", "model name"), "threads": args.threads, "versions": versions(), "steps": outcomes(args),
              "left_out": {k: v for k, v in missing.items() if v}, "stencil_agreement": {k: stencil_agreement(args, v) for k, v in ours.items()},
              "samples": {name: [] for name in [*theirs, *ours]}}
    for i in range(args.rounds):
        for name, samples in result["samples"].items():
            samples.append(stencil_sample(args, ours[name]) if name in ours else sample(args, name))
            save(args, result)          # a run that is broken off keeps its samples
            say(f"round {i + 1} of {args.rounds}: {name} " + (f"{samples[-1]['seconds']:.2f} s" if "seconds" in samples[-1] else samples[-1]["failed"]))
    return result


def print_table(result):
    titles = {**{k: v[0] for k, v in ENGINES.items()}, "stencil": "Stencil fp32", "stencil-int8": "Stencil int8"}
    print(f"\n{result['cpu']}, {result['threads']} threads; " + ", ".join(f"{k} {v}" for k, v in result["versions"].items() if v) + "\n")
    print("| | picture encode | samples, s | peak memory | loading | least cosine | RMS error |\n|---|---:|---|---:|---:|---:|---:|")
    for name, samples in result["samples"].items():
        good = [s for s in samples if "seconds" in s]
        if not good:
            print(f"| {titles[name]} | failed: {samples[-1]['failed'] if samples else 'no sample'} | | | | | |")
            continue
        levels = (result["stencil_agreement"].get(name) or good[0]["agreement"]).values()
        middle = lambda key: statistics.median([s[key] for s in good])
        print(f"| {titles[name]} | {middle('seconds'):.2f} s | {' '.join(format(s['seconds'], '.2f') for s in good)} | {middle('peak_bytes') / 1e9:.2f} GB | "
              f"{format(middle('load_seconds'), '.1f') + ' s' if 'load_seconds' in good[0] else '–'} | {min(v['cosine'] for v in levels):.6f} | {max(v['rms_error'] for v in levels):.2%} |")
    for name, reason in result["left_out"].items():
        print(f"| {titles[name]} | left out: {reason} | | | | | |")
    print("\n| step | outcome | seconds | CPU seconds | peak memory |\n|---|---|---:|---:|---:|")
    for name, step in result["steps"].items():
        print(f"| {name} | {step['outcome']} | {step['seconds']:.0f} | {step.get('cpu_seconds', 0):.0f} | {step['peak_bytes'] / 1e9:.1f} GB |")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prepare", action="store_true", help="convert and quantise")
    parser.add_argument("--steps", default=",".join(STEPS), help="which of the conversions")
    parser.add_argument("--limit", type=int, default=1800, help="seconds that one conversion may take")
    parser.add_argument("--stencil", default=os.path.join(ROOT, "build", "stencil"))
    parser.add_argument("--cache", default=os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "stencil-parity"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--int8", help="what `stencil quantize` made of the cache folder's weights")
    parser.add_argument("--only", type=lambda text: text.split(","), help="only these: " + ", ".join([*ENGINES, "stencil", "stencil-int8"]))
    parser.add_argument("--json", help="write every sample there as well")
    for hidden in ("--step", "--engine"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.weights, args.picture = os.path.join(args.cache, "speed-meta.pt"), os.path.join(args.cache, "speed.png")
    args.at = lambda name: os.path.join(args.cache, "engines", name)
    return args


def main():
    args = arguments()
    os.makedirs(args.at(""), exist_ok=True)
    if args.step:
        return print(json.dumps(STEPS[args.step](args)))
    if args.engine:
        return engine_process(args)
    if not os.path.exists(args.weights):
        sys.exit(f"speed_engines.py: {args.weights} is not there: run speed.py --make-file")
    if args.prepare:
        for name in args.steps.split(","):
            if name not in STEPS:
                sys.exit(f"speed_engines.py: no step \"{name}\": expected one of {', '.join(STEPS)}")
            run_step(args, name)
        return None
    import parity
    import pictures
    from PIL import Image
    Image.fromarray(pictures.synthetic(parity.SEED, *speed.PICTURE)).save(args.picture)
    print_table(measure(args))
    return None


if __name__ == "__main__":
    sys.exit(main())
