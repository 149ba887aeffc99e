"""What both references share: the notion of a stage, and fp32's own error of one, measured against FP64 on the same fp32 input."""
from dataclasses import dataclass

import torch

from double_mode import as_double, in_double


@dataclass
class Stage:
    name: str
    modules: list                 # what has to compute in FP64
    run: callable                 # tensors of earlier stages -> this stage's tensor
    of_picture: bool = False      # does not depend on the prompt
    group: str = ""               # stages of one kind


class Doubled:
    """Tensors of an fp32 run, each converted to FP64 when asked for: a full-size run is not held twice."""

    def __init__(self, got):
        self.got = got

    def __getitem__(self, name):
        return as_double(self.got[name])


def brief(x):
    return float(f"{x:.4g}")


@torch.no_grad()
def measure(reference, got, names=None):
    """{stage: {rms, rms_err, max_err}}: spread of the fp32 output and its distance from FP64, over the rows that Stencil has too.
    Running a stage in fp32 from its stored input must repeat what the hooks saw in the full run, up to roundings (matrix products of
    other shapes): else it is not the same computation."""
    out = {}
    for stage in reference.stages():
        if stage.name not in got or (names is not None and stage.name not in names):
            continue
        again = stage.run(got)
        reach = got[stage.name].abs().max().item()
        apart = (again - got[stage.name]).abs().max().item() if again.numel() else 0
        assert again.shape == got[stage.name].shape and apart <= 1e-5 * reach, (stage.name, again.shape, apart, reach)
        with in_double(*stage.modules):
            exact = stage.run(Doubled(got))
        assert exact.dtype == torch.float64, stage.name
        rows = reference.rows(stage.name, got[stage.name].double(), got)
        error = reference.rows(stage.name, exact, got) - rows
        out[stage.name] = {"rms": brief(rows.pow(2).mean().sqrt().item()), "rms_err": brief(error.pow(2).mean().sqrt().item()),
                           "max_err": brief(error.abs().max().item())}
    return out
