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
  const clientWidthOf = getter(Element.prototype, "clientWidth");
  const clientHeightOf = getter(Element.prototype, "clientHeight");
  const contentTypeOf = getter(Document.prototype, "contentType");
  const readyStateOf = getter(Document.prototype, "readyState");
  const { getAttributeNames, getAttribute, matches } = Element.prototype;
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

  const OMITTED_OF_INPUT = ["value", "checked"], OMITTED_OF_TOGGLE = ["checked"], OMITTED_OF_OPTION = ["selected"];
  // Chromium draws these anew each time for an <embed> that holds a PDF.
  const OMITTED_OF_EMBED = ["name", "internalid"];

  const TOKEN_WORDS = "csrf|xsrf|authenticity_token|requestverificationtoken|__viewstate|__eventvalidation";
  const TOKEN_NAME = new RegExp(
    `${TOKEN_WORDS}|faces\\.viewstate|struts\\.token|taglib\\.html\\.token|captcha-response|turnstile-response` +
      "|^(?:_token|_wpnonce|nonce|form_token|form_build_id|sesskey|state_token|antiforgery)$", "i");
  const TOKEN_WORD = new RegExp(TOKEN_WORDS, "i");
  // name=value and "name": "value" inside an attribute (href="?csrf=…", hx-headers='{"X-CSRFToken": "…"}').
  const TOKEN_PAIR = new RegExp(`((?:${TOKEN_WORDS})[\\w.$-]*["']?\\s*[=:]\\s*["']?)[^"'&,;\\s}]*`, "gi");
  const SECRET_NAME = /passw|passphrase|pwd|one-time-code|cc-csc/i;
  const HIDDEN_BY_STYLE = /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i;
  // The marks of the string are printable: control characters would cross the wire as six bytes each.
  const MARKS = /[<>|^~{}\\]/, ALL_MARKS = /[<>|^~{}\\]/g;
  const NEEDS_COLLAPSE = /\s\s|[^\S ]/;

  const escaped = (text) => (MARKS.test(text) ? text.replace(ALL_MARKS, "\\$&") : text);
  const collapsed = (text) => {
    const trimmed = text.trim();
    return NEEDS_COLLAPSE.test(trimmed) ? trimmed.replace(/\s+/g, " ") : trimmed;
  };

  class Refusal extends Error {}

  const sortedClasses = new Map();
  const classesOf = (value) => {
    let sorted = sortedClasses.get(value);
    if (sorted === undefined) {
      sorted = escaped(value.split(/\s+/).filter(Boolean).sort().join(" "));
      if (sortedClasses.size < 5000) sortedClasses.set(value, sorted);
    }
    return sorted;
  };

  // How an attribute is written depends on its name alone; pages have few names, so each is judged once.
  const AS_IT_IS = 0, OMITTED = 1, CLASSES = 2, PRESENCE = 3, STYLE = 4, POPOVER = 5;
  const rules = new Map([["class", CLASSES], ["style", STYLE], ["popover", POPOVER]]);
  for (const name of ["nonce", "integrity"]) rules.set(name, OMITTED);
  for (const name of ["open", "disabled", "hidden", "readonly", "required", "multiple"]) rules.set(name, PRESENCE);
  const newRule = (name) => {
    const isScript = name.startsWith("on") && !name.includes("-");
    const rule = isScript || TOKEN_NAME.test(name) ? OMITTED : AS_IT_IS;
    if (rules.size < 5000) rules.set(name, rule);
    return rule;
  };

  const withoutTokens = (value) => {
    if (value.length > 12 && TOKEN_WORD.test(value)) value = value.replace(TOKEN_PAIR, "$1");
    return escaped(value);
  };

  // Insertion sort: for the two to ten names that elements have, Array.sort costs more than the rest of the attribute.
  const sortFew = (names) => {
    if (names.length > 32) return void names.sort();
    for (let i = 1; i < names.length; i++) {
      const name = names[i];
      let j = i - 1;
      while (j >= 0 && names[j] > name) names[j + 1] = names[j--];
      names[j + 1] = name;
    }
  };

  const attributesText = (element, kind) => {
    const names = getAttributeNames.call(element);
    if (names.length === 0) return "";
    if (names.length > 1) sortFew(names);
    const omitted = omittedHere(element, kind);
    let text = "";
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      const rule = rules.get(name) ?? newRule(name);
      if (rule === OMITTED || (omitted !== null && omitted.includes(name))) continue;
      if (rule === PRESENCE) {
        text += "^" + name;
        continue;
      }
      const value = getAttribute.call(element, name) ?? "";
      if (rule === AS_IT_IS) {
        text += "^" + name + "~" + withoutTokens(value);
      } else if (rule === CLASSES) {
        text += "^class~" + classesOf(value);
      } else if (rule === STYLE) {
        // Styles move with every animation frame; that one hides the element is a visible change.
        if (HIDDEN_BY_STYLE.test(value)) text += "^:hidden";
      } else {
        text += "^popover~" + escaped(value) + (matches.call(element, ":popover-open") ? "^:popover-open" : "");
      }
    }
    return text;
  };

  // What is state is read from properties; a checkbox's value attribute is no state but what it stands for.
  const omittedHere = (element, kind) => {
    if (kind === undefined) return null;
    if (kind === INPUT) return isToggle(element) ? OMITTED_OF_TOGGLE : OMITTED_OF_INPUT;
    if (kind === OPTION) return OMITTED_OF_OPTION;
    return kind === EMBED ? OMITTED_OF_EMBED : null;
  };
  const isToggle = (input) => input.type === "checkbox" || input.type === "radio";

  const isSecret = (input) =>
    input.type === "password" || SECRET_NAME.test(input.autocomplete) ||
    SECRET_NAME.test(input.name) || SECRET_NAME.test(input.id);

  const inputState = (input) => {
    switch (input.type) {
      case "checkbox":
      case "radio":
        return (input.checked ? "^:checked" : "") + (input.indeterminate ? "^:mixed" : "");
      case "file":
        return "^:files~" + Array.from(input.files ?? [], (file) => escaped(`${file.name}/${file.size}`)).join("~");
      default:
        return "^:value~" + valueText(input);
    }
  };

  const valueText = (control) => {
    // A shown password ("eye" button) is an <input type=text>; its name or autocomplete still tells.
    if (control.value !== "" && isSecret(control)) return "(filled)";
    return escaped(control.value);
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
      if (text !== "") out += "|" + escaped(text);
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
            if (!isVolatile(element)) state = "^:value~" + valueText(element);
            into = OPENED;
            break;
          case SELECT:
            if (isVolatile(element)) into = OPENED;
            break;
          case OPTION:
            if (element.selected) state = "^:selected";
            break;
          case FRAME:
            if (tag === "iframe") {
              // Trackers' frames come and go; the border does not count.
              if (clientWidthOf.call(element) <= 1 || clientHeightOf.call(element) <= 1) return SKIP;
            }
            into = frameDocument(element, tag) ?? (tag === "object" ? CHILDREN : OPENED);
            break;
        }
      }
      flush();
      out += "<" + tag + attributesText(element, kind) + state;
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
              out += ">";
            } else if (into === OPENED) {
              out += ">";
            } else if (into !== SKIP) {
              out += "{";
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
            out += ">";
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
        out += "}";
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
        out += ">";
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
    if (contentTypeOf.call(document) === "application/pdf") {
      // Every PDF would have the same hash: the viewer keeps its document in a frame of its own.
      answer.reason = "a PDF viewer does not show its document to the probe";
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
