"""What a reader does with a deck, and what a page must not do."""

from pathlib import Path

ARROW_RIGHT, ARROW_LEFT, ESCAPE = 39, 37, 27


def bring_axe(page):
    """axe-core's rules, if its package is there."""
    try:
        import axe_core_python
    except ImportError:
        return False
    page.run((Path(axe_core_python.__file__).parent / "axe.min.js").read_text() + ";true")
    return True


def accessibility(page):
    """What axe-core finds on the slide that is shown, if it is serious."""
    found = page.run("""axe.run(Reveal.getCurrentSlide(), {resultTypes: ['violations']}).then(result =>
        result.violations.filter(rule => ['serious', 'critical'].includes(rule.impact))
            .map(rule => rule.id + ': ' + rule.help + ', ' + rule.nodes[0].html.slice(0, 90)))""")
    return found


def keyboard(page, address):
    """Arrow keys, overview and the speaker's view, by pressing the keys."""
    problems = []
    page.open(address)
    page.press("ArrowRight", ARROW_RIGHT)
    if page.run("Reveal.getSlidePastCount()") != 1:
        problems.append("the right arrow does not go on")
    page.press("ArrowLeft", ARROW_LEFT)
    if page.run("Reveal.getSlidePastCount()") != 0:
        problems.append("the left arrow does not go back")
    last = page.run("Reveal.getTotalSlides()")
    for _ in range(20 * last):
        if page.run("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
            break
        page.press("ArrowRight", ARROW_RIGHT)
    else:
        problems.append("the right arrow does not come to the end")
    page.press("Escape", ESCAPE)
    if not page.run("Reveal.isOverview()"):
        problems.append("Esc does not show all slides at once")
    page.press("Escape", ESCAPE)
    before = len(page.call("Target.getTargets")["targetInfos"])
    page.press("s", ord("S"), "s")
    page.run("new Promise(done => setTimeout(() => done(true), 300))")
    windows = page.call("Target.getTargets")["targetInfos"]
    if len(windows) <= before:
        problems.append("S does not open the speaker's view")
    own = page.call("Target.getTargetInfo")["targetInfo"]["targetId"]
    for window in windows:
        if window["type"] == "page" and window["targetId"] != own:
            page.call("Target.closeTarget", targetId=window["targetId"])
    return problems


def print_view(page, address, rules):
    """Each slide on a page of its own, or several where it unfolds, and none cut off."""
    page.open(address)
    slides = page.run("Reveal.getTotalSlides()")
    page.open(address + "?print-pdf")
    page.wait("document.querySelectorAll('.pdf-page').length > 0")
    pages = page.run("document.querySelectorAll('.pdf-page').length")
    cut = page.run("""[...document.querySelectorAll('.pdf-page')].flatMap((page, number) =>
        [...page.querySelectorAll('p, li, pre, svg, h2')].filter(part => !part.closest('aside') &&
            part.getBoundingClientRect().height > 0 &&
            part.getBoundingClientRect().bottom > page.getBoundingClientRect().bottom + 1)
        .map(part => 'printed page ' + (number + 1) + ' cuts off "' + part.textContent.trim().slice(0, 40) + '"'))""")
    problems = list(cut)
    if pages < slides:
        problems.append(f"{slides} slides make only {pages} printed pages")
    return problems


def complaints(page):
    """Errors that pages reported, and requests that would have left this machine."""
    problems = []
    for event in page.events:
        name, what = event["method"], event["params"]
        if name == "Runtime.exceptionThrown":
            problems.append("a script fails: " + what["exceptionDetails"].get("exception", {}).get("description", "?")[:200])
        elif name == "Log.entryAdded" and what["entry"]["level"] == "error":
            problems.append("the console says: " + what["entry"]["text"] + " " + what["entry"].get("url", ""))
        elif name == "Runtime.consoleAPICalled" and what["type"] == "error":
            problems.append("the console says: " + str(what["args"][:1]))
        elif name == "Network.requestWillBeSent":
            address = what["request"]["url"]
            if not address.startswith(("file:", "data:", "blob:", "about:")):
                problems.append(f"a request leaves the machine: {address}")
        elif name == "Network.loadingFailed" and not what.get("canceled"):
            problems.append(f"something does not load: {what.get('errorText')}")
    page.events.clear()
    return list(dict.fromkeys(problems))
