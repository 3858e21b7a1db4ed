"""Leaving a part of torch out makes it start sooner, and changes nothing that is computed."""

import subprocess
import sys

PROGRAM = """
import sys
{imports}
import torch
torch.manual_seed(0)
x = torch.randn(8, 16)
y = torch.nn.functional.scaled_dot_product_attention(x, x.half().float(), x.softmax(-1) @ x.T @ x)
print(len([name for name in sys.modules if name.startswith("torch.")]), y.double().numpy().tobytes().hex())
"""
PLAIN = "import torch"
QUICK = "from localrun.ops.quick_import import import_torch_quickly; import_torch_quickly()"


def printed(imports: str) -> list[str]:
    program = PROGRAM.format(imports=imports)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()


def test_less_is_imported_and_the_same_is_computed() -> None:
    n_plain, plain = printed(PLAIN)
    n_quick, quick = printed(QUICK)
    assert quick == plain
    assert int(n_quick) < int(n_plain)


def test_a_torch_that_is_there_already_is_left_alone() -> None:
    assert printed(PLAIN) == printed(f"{PLAIN}; {QUICK}")


def test_what_was_left_out_can_still_be_imported() -> None:
    assert printed(f"{QUICK}; import torch._meta_registrations as m; assert m.__file__")
