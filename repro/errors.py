"""The one exception that means: the user's input is at fault, and this sentence says how; and one kind of it."""


class BadInput(ValueError):
    """Wrong parameters, data or files. Its message is one sentence: what was seen, what was expected, what to do."""


class Diverged(BadInput):
    """A loss or a score is no longer a number; the message says when and what to change."""


def one_line(error: object) -> str:
    """What a library said, without its line breaks: to be quoted in a sentence."""
    return " ".join(str(error).split())
