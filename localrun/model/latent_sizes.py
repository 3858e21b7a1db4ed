"""Sizes of latent attention. Torch-free."""

from localrun.base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LatentSizes:
    """Sizes of latent attention (MLA: DeepSeek-V2, arXiv 2405.04434), whose heads make keys and values of one latent.

    A key has numbers beside those, which turn and are the same for all heads.
    """

    rank: int  # numbers of a latent
    rope_dims: int  # of a key that turn
    nope_dims: int  # of a head's key that are made of the latent
    value_dim: int  # of a head's value
    q_rank: int | None  # numbers of another latent, which queries are made of; None: they are made of the row itself
    eps: float  # of the norms of latents
    interleaved: bool = True  # rows of what turns pair neighbours in the file

    @property
    def key_dim(self) -> int:
        """Numbers of a head's key."""
        return self.nope_dims + self.rope_dims
