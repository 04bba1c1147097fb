"""The API reference has every public name."""

import inspect
import pydoc
import re

import pytest

import lakevilla as lv
from lakevilla import api
from tests.docs.examples import ROOT

PAGE = (ROOT / "docs/api.md").read_text()
SHOWN = set(re.findall(r"^::: (\S+)$", PAGE, re.M))
VALUES = {"NONE", "R", "CT", "I"}
"""Members of `Features`, which the page names in its first paragraph."""


def test_every_public_name_is_on_the_page() -> None:
    names = set(api.__all__) - VALUES | {name for name in dir(lv.errors) if _is_error(name)}
    assert {f"lakevilla.{name}" for name in names} <= SHOWN
    assert all(f"`lv.{name}`" in PAGE for name in VALUES)


def _is_error(name: str) -> bool:
    found = getattr(lv.errors, name)
    return inspect.isclass(found) and issubclass(found, lv.LakeVillaError) and hasattr(lv, name)


def test_every_name_of_the_page_exists_and_has_a_docstring() -> None:
    for shown in SHOWN:
        assert inspect.getdoc(pydoc.locate(shown)), shown


@pytest.mark.parametrize("name", [name for name in api.__all__ if name not in VALUES])
def test_every_public_method_has_a_docstring(name: str) -> None:
    kind = getattr(api, name)
    for method, found in inspect.getmembers(kind, inspect.isfunction):
        if not method.startswith("_"):
            assert inspect.getdoc(found), f"{name}.{method}"


def test_lake_names_each_of_its_arguments() -> None:
    told = inspect.getdoc(lv.Lake)
    assert told is not None
    for argument in list(inspect.signature(lv.Lake).parameters)[1:]:
        assert f"`{argument}" in told, argument
