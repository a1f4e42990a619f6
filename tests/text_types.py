"""The types that text has in pandas: ``str`` on pandas 3; on pandas 2 objects, and ``str`` by an option."""

import contextlib

import pandas as pd

IS_PANDAS_2 = int(pd.__version__.split(".")[0]) < 3
TEXT_TYPES = ["object", "str"] if IS_PANDAS_2 else ["str"]
TEXT = str(pd.Series([""]).dtype)
"""The type of a column of text without any option."""


def text_type(name):
    """Let pandas give text this type."""
    if not IS_PANDAS_2:
        return contextlib.nullcontext()
    return pd.option_context("future.infer_string", name == "str")
