"""What axe says about a page, in the light and in the dark scheme."""

from axe_playwright_python.sync_playwright import Axe

SCHEMES = ("light", "dark")
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


def findings(page, scheme="light"):
    """Each rule of axe that the page breaks, with the places where it does; of any impact."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    found = page.evaluate("options => axe.run(options)", RULES[scheme])
    return [(item["id"], [node["target"] for node in item["nodes"]][:3]) for item in found["violations"]]


def findings_by_scheme(page, picture, name):
    """The findings of both schemes by name and scheme, where there are any; a picture of each is kept."""
    found = {}
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IS_SCHEME, arg=scheme)
        page.wait_for_function(AT_REST)
        picture(page, f"{name}-{scheme}")
        if broken := findings(page, scheme):
            found[f"{name}, {scheme}"] = broken
    page.emulate_media(color_scheme="light")
    return found


def grave(page):
    """What axe calls serious or critical."""
    # Evaluated again and again by the page itself this would be what its policy forbids.
    page.evaluate("Promise.allSettled(document.getAnimations().map((one) => one.finished))")
    return [
        (item["id"], [node["target"] for node in item["nodes"]][:3])
        for item in Axe().run(page).response["violations"]
        if item["impact"] in {"serious", "critical"}
    ]
