"""The learned numbers of an activation of Apertus. Torch-free."""

from math import exp, log1p

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class XieluNumbers:
    """The learned numbers of an xIELU, before their softplus, of one layer (`ops.instructions.Xielu`)."""

    alpha_p: float
    alpha_n: float
    beta: float
    eps: float

    @property
    def operands(self) -> tuple[float, float, float, float]:
        """Factors above and below 0, of the linear part, and the limit of what is below."""
        return softplus(self.alpha_p), self.beta + softplus(self.alpha_n), self.beta, self.eps


def softplus(x: float) -> float:
    """ln(1 + e^x), for any x."""
    return max(x, 0.0) + log1p(exp(-abs(x)))
