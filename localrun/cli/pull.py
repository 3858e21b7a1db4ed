"""`localrun pull`: download a model, or the missing part of one."""

from typing import Annotated

import typer

from localrun.base.errors import HubError, NotFoundError
from localrun.base.units import gib
from localrun.cli.completion import complete_any_model, complete_precision
from localrun.cli.consent import fit_line
from localrun.cli.console import note, write_json
from localrun.cli.downloads import choose, open_hub, pull
from localrun.cli.groups import JsonSwitch, OfflineSwitch
from localrun.hub.projectors import with_file
from localrun.hub.remote.preview import RepoPreview, must_find_on_hub, preview
from localrun.hub.remote.variants import Variant, other_models

_Name = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="a catalogue name, org/repo or org/repo:PRECISION",
        autocompletion=complete_any_model,
    ),
]
_Precision = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="precision: Q4_K_M, bf16 …; or auto",
        autocompletion=complete_precision,
    ),
]
_Images = Annotated[
    bool, typer.Option("--images", help="with the projector (mmproj) through which a GGUF model sees images")
]


def pull_model(
    model: _Name,
    precision: _Precision = "auto",
    images: _Images = False,
    offline: OfflineSwitch = False,
    json: JsonSwitch = False,
) -> int:
    """Download a model. An interrupted download resumes where it stopped; every file is checked by its hash."""
    wanted = must_find_on_hub(model, precision)
    with open_hub(offline) as http:
        if http.access.offline:
            raise HubError(
                "localrun is offline: nothing can be downloaded", "leave out --offline, or unset HF_HUB_OFFLINE"
            )
        found = preview(http, wanted)
        variant, why = choose(http, found)
        variant = seeing(found, variant, model, images)
        if others := found.repo and other_models(found.repo, found.variants):
            note(f"{wanted.repo} holds other models too, by file: {', '.join(others[:8])}")
        note(f"{wanted.repo} {variant.precision}, {gib(variant.bytes)}: {why}; fits {fit_line(found, variant)}")
        _, fields = pull(http, found, variant)
    if json:
        write_json(fields)
    else:
        note(f'localrun run -m {model} "…"')
    return 0


def seeing(found: RepoPreview, variant: Variant, model: str, images: bool) -> Variant:
    """The variant with its projector, where images are wanted. Raises NotFoundError where it has none."""
    projector = found.projector
    if projector is None or variant.format != "gguf":
        if images and variant.format == "gguf":
            raise NotFoundError(f"{found.wanted.repo} has no projector that localrun reads", "leave out --images")
        return variant
    if images:
        return with_file(variant, projector)
    note(f"to see images it needs a projector of {gib(projector.size)}, too: `localrun pull {model} --images`")
    return variant
