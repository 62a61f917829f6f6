// What the page shows, as one normalised string. Runs in an isolated world, so the page's own JavaScript can
// neither see it nor bend the prototypes it stands on. What the page *can* still do there is name its elements:
// <input name="firstChild"> replaces form.firstChild, <img name="body"> replaces document.body. Hence every property of a
// node whose kind is not known yet is read through the prototype's own getter.
//
// The walk is iterative, over siblings, with a stack only for shadow roots and frames: depth costs nothing.
// Whoever changes what the string holds raises "dom1" in probe.py, or old hashes would be compared with new ones.
(() => {
  const getter = (proto, name) => Object.getOwnPropertyDescriptor(proto, name).get;
  const firstChildOf = getter(Node.prototype, "firstChild");
  const nextSiblingOf = getter(Node.prototype, "nextSibling");
  const parentOf = getter(Node.prototype, "parentNode");
  const nodeTypeOf = getter(Node.prototype, "nodeType");
  const textContentOf = getter(Node.prototype, "textContent");
  const localNameOf = getter(Element.prototype, "localName");
  const namespaceOf = getter(Element.prototype, "namespaceURI");
  const shadowRootOf = getter(Element.prototype, "shadowRoot");
  const contentTypeOf = getter(Document.prototype, "contentType");
  const readyStateOf = getter(Document.prototype, "readyState");
  const { getAttributeNames, getAttribute, getBoundingClientRect, matches } = Element.prototype;
  const contentDocumentOf = {
    iframe: getter(HTMLIFrameElement.prototype, "contentDocument"),
    frame: getter(HTMLFrameElement.prototype, "contentDocument"),
    object: getter(HTMLObjectElement.prototype, "contentDocument"),
  };

  const ELEMENT = 1, TEXT = 3, CDATA = 4, DOCUMENT = 9, FRAGMENT = 11;
  const HTML = "http://www.w3.org/1999/xhtml", SVG = "http://www.w3.org/2000/svg";

  // Tags that need more than "name, attributes, children". All others are PLAIN.
  const SKIPPED = 1, INPUT = 2, TEXTAREA = 3, SELECT = 4, OPTION = 5, FRAME = 6, EMBED = 7;
  const KINDS = new Map([
    ...["script", "style", "link", "meta", "noscript", "template"].map((tag) => [tag, SKIPPED]),
    ["input", INPUT], ["textarea", TEXTAREA], ["select", SELECT], ["option", OPTION],
    ["iframe", FRAME], ["frame", FRAME], ["object", FRAME], ["embed", EMBED],
  ]);

  const LEFT_OUT = new Set(["style", "nonce", "integrity"]);
  // The value of these is state and is read from the property instead.
  const STATE_ATTRIBUTES = { [INPUT]: ["value", "checked"], [OPTION]: ["selected"] };
  // A PDF page is one <embed> whose name and internalid are drawn anew at each load.
  const EMBED_ATTRIBUTES = ["name", "internalid"];
  const BOOLEAN = new Set(["open", "disabled", "hidden", "readonly", "required", "multiple"]);

  const TOKEN_WORDS = "csrf|xsrf|authenticity_token|requestverificationtoken|__viewstate|__eventvalidation";
  const TOKEN_NAME = new RegExp(
    `${TOKEN_WORDS}|faces\\.viewstate|struts\\.token|taglib\\.html\\.token|captcha-response|turnstile-response` +
      "|^(?:_token|_wpnonce|nonce|form_token|form_build_id|sesskey|state_token|antiforgery)$", "i");
  const TOKEN_WORD = new RegExp(TOKEN_WORDS, "i");
  // name=value and "name": "value" inside an attribute (href="?csrf=…", hx-headers='{"X-CSRFToken": "…"}').
  const TOKEN_PAIR = new RegExp(`((?:${TOKEN_WORDS})[\\w.$-]*["']?\\s*[=:]\\s*["']?)[^"'&,;\\s}]*`, "gi");
  const SECRET_NAME = /passw|passphrase|pwd|one-time-code|cc-csc/i;
  const HIDDEN_BY_STYLE = /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i;
  const NEEDS_COLLAPSE = /\s\s|[^\S ]|[\x00-\x08]/;
  const CONTROLS = /[\x00-\x08]/;

  const collapsed = (text) => {
    const trimmed = text.trim();
    return NEEDS_COLLAPSE.test(trimmed) ? trimmed.replace(/\s+/g, " ").replace(/[\x00-\x08]/g, "\ufffd") : trimmed;
  };
  const uncontrolled = (text) => (CONTROLS.test(text) ? text.replace(/[\x00-\x08]/g, "\ufffd") : text);

  class Refusal extends Error {}

  const sortedClasses = new Map();
  const classesOf = (value) => {
    let sorted = sortedClasses.get(value);
    if (sorted === undefined) {
      sorted = uncontrolled(value.split(/\s+/).filter(Boolean).sort().join(" "));
      if (sortedClasses.size < 5000) sortedClasses.set(value, sorted);
    }
    return sorted;
  };

  const attributeText = (name, value) => {
    if (name === "class") return classesOf(value);
    if (BOOLEAN.has(name)) return "";
    if (value.length > 12 && name !== "d" && TOKEN_WORD.test(value)) value = value.replace(TOKEN_PAIR, "$1");
    return uncontrolled(value);
  };

  const attributesText = (element, kind) => {
    const names = getAttributeNames.call(element);
    if (names.length === 0) return "";
    if (names.length > 1) names.sort();
    const stateNames = kind === EMBED ? EMBED_ATTRIBUTES : STATE_ATTRIBUTES[kind];
    let text = "";
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (LEFT_OUT.has(name)) {
        // Styles move with every animation frame; that something was hidden or shown by one is a visible change.
        if (name === "style" && HIDDEN_BY_STYLE.test(getAttribute.call(element, name))) text += "\x01:hidden";
        continue;
      }
      if (name.startsWith("on") && !name.includes("-")) continue;
      if (TOKEN_NAME.test(name)) continue;
      if (stateNames !== undefined && stateNames.includes(name) && fixedValue(element, kind, name) === null) continue;
      text += "\x01" + name + "\x02" + attributeText(name, getAttribute.call(element, name) ?? "");
      if (name === "popover" && matches.call(element, ":popover-open")) text += "\x01:popover-open";
    }
    return text;
  };

  // The value attribute of a checkbox or radio button is what it stands for, not its state.
  const fixedValue = (element, kind, name) =>
    kind === INPUT && name === "value" && (element.type === "checkbox" || element.type === "radio") ? true : null;

  const isSecret = (input) =>
    input.type === "password" || SECRET_NAME.test(input.autocomplete) ||
    SECRET_NAME.test(input.name) || SECRET_NAME.test(input.id);

  const inputState = (input) => {
    switch (input.type) {
      case "checkbox":
      case "radio":
        return (input.checked ? "\x01:checked" : "") + (input.indeterminate ? "\x01:mixed" : "");
      case "file":
        return "\x01:files\x02" + Array.from(input.files ?? [], (file) => `${file.name}/${file.size}`).join("\x02");
      default:
        return "\x01:value\x02" + valueText(input);
    }
  };

  const valueText = (control) => {
    // A shown password ("eye" button) is an <input type=text>; its name or autocomplete still tells.
    if (control.value !== "" && isSecret(control)) return "(filled)";
    return uncontrolled(control.value);
  };

  const reader = (options) => {
    const volatileNames = new Set(options.volatile.map((name) => name.toLowerCase()));
    const isVolatile = (control) =>
      volatileNames.has(control.name.toLowerCase()) || TOKEN_NAME.test(control.name) || TOKEN_NAME.test(control.id);

    const ignored = new Set();
    const noteIgnored = (root) => {
      const proto = nodeTypeOf.call(root) === DOCUMENT ? Document.prototype : DocumentFragment.prototype;
      for (const selector of options.ignore) {
        for (const element of proto.querySelectorAll.call(root, selector)) ignored.add(element);
      }
    };

    const stopAt = performance.now() + options.timeCapMs;
    let out = "", pending = "", elementCount = 0, steps = 0;

    const flush = () => {
      if (pending === "") return;
      const text = collapsed(pending);
      pending = "";
      if (text !== "") out += "\x04" + text;
    };

    const checkLimits = () => {
      if (elementCount > options.maxElements) throw new Refusal(`too large: more than ${options.maxElements} elements`);
      if (out.length + pending.length > options.maxChars) throw new Refusal(`too large: more than ${options.maxChars} characters`);
      if (performance.now() > stopAt) throw new Refusal(`too large: not read within ${options.timeCapMs} ms`);
    };

    const frameDocument = (element, tag) => {
      try {
        return contentDocumentOf[tag].call(element);
      } catch {
        return null;  // a frame of another origin is known by its src alone
      }
    };

    // Writes the element's opening and says where the walk goes on: null = not into it, a node = that tree first, then
    // (for shadow roots) its own children.
    const enter = (element) => {
      if (ignored.size !== 0 && ignored.has(element)) return SKIP;
      const tag = localNameOf.call(element);
      let kind = KINDS.get(tag);
      if (kind !== undefined) {
        const namespace = namespaceOf.call(element);
        if (namespace !== HTML && !(namespace === SVG && kind === SKIPPED)) kind = undefined;
      }
      if (kind === SKIPPED) return SKIP;
      let state = "", into = CHILDREN;
      if (kind !== undefined) {
        switch (kind) {
          case INPUT:
            if (!isVolatile(element)) state = inputState(element);
            else if (element.type === "hidden") return SKIP;
            into = OPENED;
            break;
          case TEXTAREA:
            if (!isVolatile(element)) state = "\x01:value\x02" + valueText(element);
            into = OPENED;
            break;
          case SELECT:
            if (isVolatile(element)) into = OPENED;
            break;
          case OPTION:
            if (element.selected) state = "\x01:selected";
            break;
          case FRAME:
            if (tag === "iframe") {
              const box = getBoundingClientRect.call(element);
              if (box.width <= 1 || box.height <= 1) return SKIP;
            }
            into = frameDocument(element, tag) ?? (tag === "object" ? CHILDREN : OPENED);
            break;
        }
      }
      flush();
      out += "\x03" + tag + attributesText(element, kind) + state;
      elementCount++;
      return into === CHILDREN && kind === undefined ? shadowRootOf.call(element) ?? CHILDREN : into;
    };

    const walk = (start) => {
      const outer = [];  // one entry for each shadow root or frame we are inside of
      let root = start, node = firstChildOf.call(start);
      noteIgnored(root);
      for (;;) {
        while (node !== null) {
          if ((++steps & 1023) === 0) checkLimits();
          const type = nodeTypeOf.call(node);
          if (type === ELEMENT) {
            const into = enter(node);
            if (into === CHILDREN) {
              const child = firstChildOf.call(node);
              if (child !== null) { node = child; continue; }
              out += "\x05";
            } else if (into === OPENED) {
              out += "\x05";
            } else if (into !== SKIP) {
              out += "\x06";
              outer.push(root, node);
              root = into;
              noteIgnored(root);
              node = firstChildOf.call(root);
              continue;
            }
          } else if (type === TEXT || type === CDATA) {
            pending += node.data;
          }
          let next = nextSiblingOf.call(node);
          while (next === null) {
            node = parentOf.call(node);
            if (node === root || node === null) break;
            flush();
            out += "\x05";
            next = nextSiblingOf.call(node);
          }
          node = next;
        }
        flush();
        if (outer.length === 0) break;
        // A shadow root or a frame is done: go on with the host's own children, or past it.
        const wasShadow = nodeTypeOf.call(root) === FRAGMENT;
        const host = outer.pop();
        root = outer.pop();
        out += "\x07";
        node = wasShadow ? firstChildOf.call(host) : null;
        node = node ?? leave(host, root);
      }
      checkLimits();
      return { text: out, elements: elementCount };
    };

    const leave = (host, root) => {
      let node = host;
      for (;;) {
        flush();
        out += "\x05";
        const next = nextSiblingOf.call(node);
        if (next !== null) return next;
        node = parentOf.call(node);
        if (node === root || node === null) return null;
      }
    };

    return { walk, ignored };
  };
  const SKIP = 0, CHILDREN = 1, OPENED = 2;

  const identityText = (element) => {
    const tag = localNameOf.call(element);
    if (tag === "input" || tag === "textarea") return isSecret(element) ? "" : element.value;
    if (tag === "meta") return element.content;
    const text = collapsed(textContentOf.call(element).slice(0, 20000));
    if (text !== "") return text;
    for (const name of ["aria-label", "title", "alt", "content"]) {
      const value = getAttribute.call(element, name);
      if (value) return value;
    }
    return "";
  };

  const readIdentity = (selector) => {
    if (selector === null) return { state: "not_asked", text: null };
    try {
      const element = Document.prototype.querySelector.call(document, selector);
      if (element !== null) {
        const text = collapsed(identityText(element)).slice(0, 500);
        // There, but empty: a script is about to fill it in, or the selector is wrong. Neither says "signed out".
        return text === "" ? { state: "unreadable", text: null } : { state: "read", text };
      }
      return { state: showsAnApplication() ? "absent" : "unreadable", text: null };
    } catch {
      return { state: "unreadable", text: null };
    }
  };

  // Only a whole HTML page of the application can prove by an absence that nobody is signed in.
  const showsAnApplication = () => {
    const isHtml = /html/.test(contentTypeOf.call(document));
    const isWhole = readyStateOf.call(document) !== "loading";
    const isErrorPage = location.protocol === "chrome-error:";
    return isHtml && isWhole && !isErrorPage && Document.prototype.querySelector.call(document, "body *") !== null;
  };

  const badSelector = (selectors) => {
    const empty = new DocumentFragment();
    for (const selector of selectors) {
      try {
        empty.querySelector(selector);
      } catch {
        return selector;
      }
    }
    return null;
  };

  return (options) => {
    const answer = { url: location.href.slice(0, 8192), text: null, elements: 0, reason: null };
    answer.identity = readIdentity(options.identity);
    const bad = badSelector(options.ignore);
    if (bad !== null) {
      answer.reason = `ignore selector is not valid CSS: ${bad}`;
      return answer;
    }
    try {
      const seen = reader(options).walk(document);
      answer.text = seen.text;
      answer.elements = seen.elements;
    } catch (error) {
      answer.reason = error instanceof Refusal ? error.message : `the page could not be read: ${error}`;
    }
    return answer;
  };
})()
