"""What axe says about a page, in the light and in the dark scheme."""

from axe_playwright_python.sync_playwright import Axe

SCHEMES = ("light", "dark")
NARROW = {"width": 390, "height": 800}
# The dark scheme has the same elements in other colours.
RULES = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"resultTypes": ["violations"], "runOnly": ["color-contrast"]},
}
# What still slides or fades in has other colours than it will have.
AT_REST = """() => document.getAnimations().every(
    (one) => one.playState !== "running" || one.effect.getComputedTiming().endTime === Infinity
)"""
IS_SCHEME = "scheme => document.documentElement.dataset.mantineColorScheme === scheme"


def findings(page, scheme="light", within="html"):
    """Each rule of axe that the element breaks, with the places where it does; of any impact."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    element = page.locator(within) if isinstance(within, str) else within
    found = element.evaluate("(element, options) => axe.run(element, options)", RULES[scheme])
    return [(item["id"], [node["target"] for node in item["nodes"]][:3]) for item in found["violations"]]


def findings_by_scheme(page, picture, name, within, schemes=SCHEMES):
    """The findings of the schemes by name and scheme, where there are any; a picture of each is kept."""
    found = {}
    for scheme in schemes:
        show_scheme(page, scheme)
        page.wait_for_function(AT_REST)
        picture(page, f"{name}-{scheme}")
        if broken := findings(page, scheme, within):
            found[f"{name}, {scheme}"] = broken
    if schemes[-1] != SCHEMES[0]:
        show_scheme(page, SCHEMES[0])
    return found


def show_scheme(page, scheme):
    """Show the page in the scheme, which it takes from the system."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.wait_for_function(IS_SCHEME, arg=scheme)


def require_narrow(page, picture, name):
    """A screen of 390 px shows the page, no wider than it is."""
    wide = page.viewport_size
    page.set_viewport_size(NARROW)
    picture(page, f"{name}-narrow")
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], name
    page.set_viewport_size(wide)
