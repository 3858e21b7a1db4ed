"""Keys in the meta of a style: what a click on a piece of text means."""

ACT = "act"  # "back", "on" (a branch), "thinking"
CODE = "code"  # the number of a code block: copy it
LINK = "link"  # the target of a link
