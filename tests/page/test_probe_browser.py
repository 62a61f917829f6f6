from __future__ import annotations

import pytest
from playwright.async_api import Error

from browsermw.page.identity import identity_from_selector
from browsermw.page.probe import probe_expression, read_probe, repeat_expression
from tests.page.conftest import Eyes, Pages, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")  # one browser for all of them

HTML = """<!doctype html><html><head><title>Orders</title></head><body>
<h1 class="big red">Orders</h1>
<p id="p" title="t" data-state="open">Two   orders</p>
<form id="f"><input id="text" name="q" value="a"><input id="secret" type="password" value="">
<input id="box" type="checkbox" value="yes"><input id="r1" type="radio" name="r">
<input id="hidden" type="hidden" name="k" value="1">
<select id="list"><option>one<option>two</select>
<textarea id="area">long</textarea><button id="go">Go</button></form>
<details id="more"><summary>More</summary>text</details><div id="pop" popover>menu</div>
<dialog id="ask">sure?</dialog><a id="link" href="/a?b=1" aria-label="A">link</a><div id="host"></div>
</body></html>"""

# (name, before, after): two renderings of the same state.
STABLE = [
    ("attribute order", '<p id="a" title="b">x</p>', '<p title="b" id="a">x</p>'),
    ("class order", '<p class="a  b">x</p>', '<p class="b a">x</p>'),
    ("white space", "<p>one  two</p>", "<p>\n one\ttwo </p>"),
    ("comments", "<p>one two</p>", "<p>one<!-- c --> two</p><!-- d -->"),
    ("scripts", "<p>x</p>", "<p>x</p><script>1</script><noscript>n</noscript>"),
    ("styles", "<p>x</p>", '<style>p{}</style><link rel="x" href="y"><p style="color:red">x</p>'),
    ("templates", "<p>x</p>", "<p>x</p><template><b>y</b></template>"),
    ("nonces", '<p nonce="a">x</p>', '<p nonce="b">x</p>'),
    ("integrity", '<p integrity="a">x</p>', '<p integrity="b">x</p>'),
    ("inline script", '<p onclick="a()">x</p>', '<p onclick="b()">x</p>'),
    ("csrf field", "<input type=hidden name=csrf_token value=a>", "<input type=hidden name=csrf_token>"),
    ("rails", "<input type=hidden name=authenticity_token value=a>", ""),
    ("asp.net", "<input type=hidden name=__VIEWSTATE value=a>", ""),
    ("laravel", "<input type=hidden name=_token value=a>", "<input type=hidden name=_token value=b>"),
    ("csrf meta", "<meta name=csrf-token content=a>", "<meta name=csrf-token content=b>"),
    ("csrf attribute", '<p data-csrf="a">x</p>', '<p data-csrf="b">x</p>'),
    (
        "csrf in hx-headers",
        """<p hx-headers='{"X-CSRFToken": "aaaa"}'>x</p>""",
        """<p hx-headers='{"X-CSRFToken": "bbbb"}'>x</p>""",
    ),
    ("csrf in a link", '<a href="/out?_csrf=aaaaaaaa&x=1">x</a>', '<a href="/out?_csrf=bbbbbbbb&x=1">x</a>'),
    ("ignored element", "<p>x</p><i class=clock>1</i>", "<p>x</p><i class=clock>2</i>"),
    ("volatile field", "<input name=stamp value=1>", "<input name=stamp value=2>"),
    ("volatile hidden", "<input type=hidden name=stamp value=1><p>x", "<p>x"),
    ("telemetry frame", "<p>x</p>", "<p>x</p><iframe width=0 height=0></iframe><iframe hidden></iframe>"),
    ("narrow frame", "<p>x</p>", "<p>x</p><iframe width=1 height=90></iframe>"),
    ("ignored in shadow", "<p><template shadowrootmode=open><i class=clock>1</i></template></p>",
     "<p><template shadowrootmode=open><i class=clock>2</i></template></p>"),
    ("filled password", "<input type=password value=aaa>", "<input type=password value=bbb>"),
    ("shown password", "<input autocomplete=current-password value=aaa>",
     "<input autocomplete=current-password value=bbb>"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [case[1:] for case in STABLE], ids=[case[0] for case in STABLE])
async def test_the_same_state_has_the_same_hash(eyes: Eyes, before: str, after: str) -> None:
    one, other = await eyes.page(before), await eyes.page(after)
    ignore, volatile = [".clock"], ["Stamp"]
    assert await eyes.hash_of(one, ignore=ignore, volatile=volatile) == await eyes.hash_of(
        other, ignore=ignore, volatile=volatile
    )


CHANGES = [
    "p.firstChild.data = 'Three orders'",
    "p.remove()",
    "p.append(document.createElement('b'))",
    "document.body.prepend('x')",
    "p.title = 'other'",
    "p.dataset.state = 'closed'",
    "p.className = 'error'",
    "p.hidden = true",
    "p.style.display = 'none'",
    "link.href = '/a?b=2'",
    "link.ariaLabel = 'B'",
    "text.value = 'b'",
    "hidden.value = '2'",
    "area.value = 'longer'",
    "secret.value = 'x'",
    "box.checked = true",
    "box.indeterminate = true",
    "box.value = 'no'",
    "r1.checked = true",
    "list.selectedIndex = 1",
    "go.disabled = true",
    "more.open = true",
    "ask.showModal()",
    "pop.showPopover()",
    "document.title = 'Order'",
    "host.attachShadow({mode: 'open'}).append('x')",
    "document.body.append(document.createElement('iframe'))",
    "const b = document.createElement('b'); p.before(b); b.append(p)",
]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_changed_state_has_another_hash(eyes: Eyes, change: str) -> None:
    page = await eyes.page(HTML)
    before = await eyes.hash_of(page)
    assert await eyes.hash_of(page) == before
    await page.evaluate(f"() => {{ {change} }}")
    assert await eyes.hash_of(page) != before


async def test_nesting_and_marks_in_the_text_are_told_apart(eyes: Eyes) -> None:
    pages = [
        "<b><i></i></b>",
        "<b></b><i></i>",
        "<p>a&gt;&lt;b</p>",
        "<p>a<b></b></p>",
        '<p a="1^b~2">',
        "<p a=1 b=2>",
        "<p>a</p>b",
        "<p>a b</p>",
        "<p><template shadowrootmode=open>a</template></p>",
    ]  # fmt: skip
    hashes = [await eyes.hash_of(await eyes.page(html)) for html in pages]
    assert len(set(hashes)) == len(pages)


async def test_chosen_files_are_seen_by_name_and_size(eyes: Eyes) -> None:
    page = await eyes.page("<input type=file>")
    hashes = [await eyes.hash_of(page)]
    for name, body in (("a.txt", b"1"), ("b.txt", b"1"), ("b.txt", b"12")):
        await page.set_input_files("input", {"name": name, "mimeType": "text/plain", "buffer": body})
        hashes.append(await eyes.hash_of(page))
    assert len(set(hashes)) == 4


async def test_a_password_never_leaves_the_page(eyes: Eyes) -> None:
    page = await eyes.page(
        "<input type=password value=hunter2><input name=passwd value=hunter2>"
        "<input type=hidden name=csrf value=hunter2>"
        "<input autocomplete='section-a one-time-code' value=hunter2>"
        "<textarea name=password>hunter2</textarea>"
    )
    assert "hunter2" not in str(await eyes.answer(page, probe_expression([], "input", [])))


async def test_changes_inside_open_shadow_roots_are_seen_and_closed_ones_are_not(eyes: Eyes) -> None:
    page = await eyes.page("<div id=a></div><div id=b></div>after")
    await page.evaluate(
        "() => { window.open_ = a.attachShadow({mode: 'open'}); open_.innerHTML = '<p>x<slot></slot></p>';"
        "window.closed_ = b.attachShadow({mode: 'closed'}); closed_.innerHTML = 'y' }"
    )
    before = await eyes.hash_of(page)
    await page.evaluate("() => { closed_.innerHTML = 'z' }")
    assert await eyes.hash_of(page) == before
    await page.evaluate("() => { open_.firstChild.append(document.createElement('input')) }")
    changed = await eyes.hash_of(page)
    assert changed != before
    await page.evaluate("() => { open_.querySelector('input').value = 'typed' }")
    typed = await eyes.hash_of(page)
    assert typed != changed
    await page.evaluate("() => { a.append('slotted') }")
    assert await eyes.hash_of(page) != typed


INNER = (
    b"<p>inner</p><script>onmessage = (message) => {"
    b"document.body.append(message.data); parent.postMessage('done', '*') }</script>"
)
OUTER = b"<iframe id=same src=/middle></iframe><iframe id=cross src=%s/></iframe>after"


async def test_frames_of_the_same_origin_are_walked_and_others_are_known_by_src(eyes: Eyes) -> None:
    inner: Pages = {"/": ("text/html", INNER)}
    with serving(inner) as other_origin:
        outer: Pages = {
            **inner,
            "/outer": ("text/html", OUTER % other_origin.encode()),
            "/middle": ("text/html", b"<iframe src=/></iframe><p>middle</p>"),
        }
        with serving(outer) as origin:
            page = await eyes.context.new_page()
            await page.goto(f"{origin}/outer")
            first = await eyes.see(page)
            await page.goto(f"{origin}/outer")
            assert (await eyes.see(page)).dom_hash == first.dom_hash
            assert first.url == f"{origin}/outer"
            say = (
                "(frame) => new Promise((done) => { onmessage = done; frame.postMessage('new text', '*') })"
                ".then(() => true)"
            )
            await page.evaluate(f"() => ({say})(cross.contentWindow)")
            assert await eyes.hash_of(page) == first.dom_hash
            await page.evaluate("() => { same.contentDocument.querySelector('p').append('more') }")
            middle = await eyes.hash_of(page)
            assert middle != first.dom_hash
            await page.evaluate(
                "() => { same.contentDocument.querySelector('iframe').contentDocument.body.append('more') }"
            )
            innermost = await eyes.hash_of(page)
            assert innermost != middle
            await page.evaluate("() => { cross.src = cross.src + '?other' }")
            assert await eyes.hash_of(page) != innermost


HOSTILE = """() => {
  Array.prototype.sort = Array.prototype.push = String.prototype.trim = () => { throw 1 };
  Map.prototype.get = Set.prototype.has = RegExp.prototype.test = () => { throw 1 };
  JSON.stringify = () => 'forged'; performance.now = () => { throw 1 };
  Element.prototype.getAttribute = Element.prototype.getAttributeNames = () => { throw 1 };
  for (const name of ['firstChild', 'nextSibling', 'parentNode', 'nodeType'])
    Object.defineProperty(Node.prototype, name, { get() { throw 1 } });
  globalThis.__browsermwProbe1 = () => 'forged';
}"""


async def test_a_page_that_bends_prototypes_is_read_all_the_same(eyes: Eyes) -> None:
    page = await eyes.page(HTML)
    before = await eyes.hash_of(page)
    await page.evaluate(HOSTILE)
    assert await eyes.hash_of(page) == before


async def test_named_elements_do_not_hide_the_tree(eyes: Eyes) -> None:
    names = [
        "firstChild",
        "nextSibling",
        "parentNode",
        "nodeType",
        "localName",
        "shadowRoot",
        "getAttribute",
        "getAttributeNames",
        "namespaceURI",
        "attributes",
        "matches",
        "body",
        "documentElement",
    ]
    fields = "".join(f"<input name={name}>" for name in names)
    images = "".join(f"<img name={name}><form name={name}></form>" for name in [*names, "querySelectorAll"])
    page = await eyes.page(f"<form>{fields}</form>{images}<p id=p>x</p>")
    before = await eyes.see(page)
    assert before.element_count > len(names)
    await page.evaluate("() => p.append('y')")
    assert await eyes.hash_of(page) not in {before.dom_hash, None}


async def test_the_page_does_not_see_the_probe(eyes: Eyes) -> None:
    page = await eyes.page(HTML)
    await eyes.hash_of(page)
    assert await page.evaluate("() => Object.keys(globalThis).filter((name) => /browsermw/i.test(name))") == []


DOCUMENTS: Pages = {
    "/x.json": ("application/json", b'{"a": 1}'),
    "/x.xml": (
        "application/xml",
        b'<?xml version="1.0"?><feed><link>http://a</link><input name="x"/></feed>',
    ),
    "/x.svg": (
        "image/svg+xml",
        b'<svg xmlns="http://www.w3.org/2000/svg"><style>a{}</style><text>hi</text></svg>',
    ),
    "/x.txt": ("text/plain", b"plain"),
    "/broken.xml": ("application/xml", b"<a><b></a>"),
    "/empty.html": ("text/html", b""),
    "/frames.html": (
        "text/html",
        b"<frameset cols='50%,50%'><frame src=/x.txt><frame src=/x.json></frameset>",
    ),
    "/x.html": ("text/html", HTML.encode()),
    "/bytes.html": ("text/html; charset=utf-8", b"<p title='\xff\xfe\x00'>\xed\xa0\x80</p>"),
}


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_every_kind_of_document_is_read_and_stays_the_same_when_loaded_again(eyes: Eyes, path: str) -> None:
    with serving(DOCUMENTS) as origin:
        page = await eyes.context.new_page()
        await page.goto(origin + path)
        first = await eyes.hash_of(page)
        await page.reload()
        assert await eyes.hash_of(page) == first


async def test_the_text_of_an_xml_link_is_content(eyes: Eyes) -> None:
    feeds: Pages = {f"/{n}": ("application/xml", b"<feed><link>http://%d</link></feed>" % n) for n in (1, 2)}
    with serving(feeds) as origin:
        page = await eyes.context.new_page()
        hashes = set()
        for path in feeds:
            await page.goto(origin + path)
            hashes.add(await eyes.hash_of(page))
        assert len(hashes) == 2


PDF = b"""%PDF-1.1
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
%%EOF"""


async def test_a_pdf_viewer_is_said_to_show_nothing(eyes: Eyes) -> None:
    with serving({"/x.pdf": ("application/pdf", PDF)}) as origin:
        page = await eyes.context.new_page()
        await page.goto(f"{origin}/x.pdf")
        probe = await eyes.see(page, identity="#me")
        assert probe.url == f"{origin}/x.pdf"
        assert probe.not_available == "a PDF viewer does not show its document to the probe"
        assert probe.identity_reading == "unreadable"


async def test_an_embedded_pdf_is_the_same_each_time_it_is_opened(eyes: Eyes) -> None:
    one = await eyes.page("<embed type=application/pdf name=A1 internalid=A1>")
    other = await eyes.page("<embed type=application/pdf name=B2 internalid=B2>")
    assert await eyes.hash_of(one) == await eyes.hash_of(other)


async def test_blank_and_torn_documents_are_read(eyes: Eyes) -> None:
    page = await eyes.context.new_page()
    blank = await eyes.see(page)
    assert (blank.url, blank.not_available) == ("about:blank", None)
    await page.evaluate("() => document.body.remove()")
    assert (await eyes.see(page)).dom_hash not in {blank.dom_hash, None}
    await page.evaluate("() => document.documentElement.remove()")
    torn = await eyes.see(page)
    assert torn.dom_hash is not None
    assert torn.element_count == 0


async def test_a_bad_ignore_selector_is_named(eyes: Eyes) -> None:
    probe = await eyes.see(await eyes.page(HTML), ignore=[".fine", "p:nope("])
    assert probe.dom_hash is None
    assert probe.not_available == "ignore selector is not valid CSS: p:nope("


async def test_an_unclosed_ignore_selector_does_not_swallow_the_next_one(eyes: Eyes) -> None:
    page = await eyes.page("<p data-a=b>x</p><i>1</i>")
    before = await eyes.hash_of(page, ignore=['[data-a="c"', "i"])
    await page.evaluate("() => document.querySelector('i').append('2')")
    assert await eyes.hash_of(page, ignore=['[data-a="c"', "i"]) == before


async def test_lone_surrogates_on_a_page_are_no_error(eyes: Eyes) -> None:
    page = await eyes.page("<p id=p></p>")
    await page.evaluate("() => p.append('a\\ud800b')")
    assert (await eyes.see(page)).dom_hash is not None


async def test_deep_nesting_is_walked(eyes: Eyes) -> None:
    # Hidden, because Chromium's own layout crashes on so deep a tree.
    page = await eyes.page("<div id=top hidden></div>")
    await page.evaluate(
        "() => { let at = document.getElementById('top');"
        "for (let i = 0; i < 5000; i++) { const e = document.createElement('div'); at.append(e); at = e }"
        "at.id = 'deep' }"
    )
    before = await eyes.see(page)
    assert before.element_count > 5000
    await page.evaluate("() => document.getElementById('deep').append('x')")
    assert await eyes.hash_of(page) != before.dom_hash


FILL = "(n) => { document.body.innerHTML = '<p class=a title=b>text</p>'.repeat(n) }"


async def test_a_page_of_200_000_elements_is_read(eyes: Eyes) -> None:
    page = await eyes.page("")
    await page.evaluate(FILL, 200_000)
    answer = await eyes.answer(page, probe_expression([], None, [], time_cap_ms=30_000))
    probe = read_probe(answer)
    assert probe.not_available is None
    assert probe.element_count == 200_003


async def test_a_page_beyond_a_limit_says_so(eyes: Eyes) -> None:
    page = await eyes.page("<b id=me>ada</b>")
    crowded = read_probe(await eyes.answer(page, probe_expression([], "#me", [], max_elements=2)))
    assert crowded.not_available == "too large: more than 2 elements"
    assert crowded.identity_text == "ada"
    slow = read_probe(await eyes.answer(page, probe_expression([], None, [], time_cap_ms=-1)))
    assert slow.not_available is not None
    assert slow.not_available.startswith("too large: not read within")


@pytest.mark.parametrize(
    ("html", "selector", "reading", "text"),
    [
        ("<b id=me> Ada\n Lovelace </b>", "#me", "read", "Ada Lovelace"),
        ("<input id=me value=ada>", "#me", "read", "ada"),
        ("<meta name=user content=ada>", "[name=user]", "read", "ada"),
        ("<img id=me alt=ada>", "#me", "read", "ada"),
        ("<b id=me></b>", "#me", "unreadable", None),
        ("<input id=me type=password value=ada>", "#me", "unreadable", None),
        ("<a>Sign in</a>", "#me", "absent", None),
        ("", "#me", "unreadable", None),
        ("<b id=me>ada</b>", "#me:nope(", "unreadable", None),
        ("<b id=me>ada</b>", None, "not_asked", None),
    ],
)
async def test_the_identity_is_read_beside_the_state(
    eyes: Eyes, html: str, selector: str | None, reading: str, text: str | None
) -> None:
    probe = await eyes.see(await eyes.page(html), identity=selector)
    assert (probe.identity_reading, probe.identity_text) == (reading, text)
    assert probe.dom_hash is not None


async def test_error_pages_and_other_documents_do_not_prove_a_sign_out(eyes: Eyes) -> None:
    with serving(DOCUMENTS) as origin:
        page = await eyes.context.new_page()
        await page.goto(f"{origin}/x.json")
        assert identity_from_selector(await eyes.see(page, identity="#me")).state == "unreadable"
    with pytest.raises(Error, match="ERR_CONNECTION_REFUSED"):
        await page.goto(f"{origin}/x.html")
    probe = await eyes.see(page, identity="#me")
    assert probe.identity_reading == "unreadable"


async def test_the_short_question_is_answered_alike_where_the_probe_is_and_not_at_all_elsewhere(eyes: Eyes) -> None:
    page = await eyes.page(HTML)
    whole, short = probe_expression(["#p"], "#link", ["q"]), repeat_expression(["#p"], "#link", ["q"])
    answers = await eyes.answer(page, f"[{short}, {whole}, {short}]")
    assert isinstance(answers, list)
    before, first, again = answers
    assert before is None
    assert first == again
    assert read_probe(again).identity_text == "link"
    assert len(short) * 40 < len(whole)
