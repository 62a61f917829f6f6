"""The one table of Playwright's public methods: which is an action, and of which kind.

Six groups. ACTIONS are journaled before they are performed. LAZY calls cannot be told from reads beforehand
(scripts, typing, moving the mouse); they are journaled when an effect comes of them. CALLS are sent by Playwright's
driver and never pass the browser's gate. CLOSES end pages and contexts: answers still out are awaited first.
On the wire ``routed``, RELEASES would send a request past our route, and UNROUTES take it away.
Everything else is named in PASSIVE. A test compares these names with the installed Playwright and fails when a
release adds a public method that nobody has classified.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ActionKind:
    """How a method is journaled.

    Attributes:
        kind: See ``models.Action``.
        reads_only: A navigation; it passes in quarantine.
        lazy: Journaled only if an effect comes of it.
    """

    kind: str
    reads_only: bool = False
    lazy: bool = False


CLICK = ActionKind("click")
PRESS = ActionKind("press")
CHECK = ActionKind("check")
SELECT = ActionKind("select")
UPLOAD = ActionKind("upload")
DRAG = ActionKind("drag")
DISPATCH = ActionKind("dispatch")
NAVIGATE = ActionKind("navigate", reads_only=True)
RELOAD = ActionKind("reload", reads_only=True)
HISTORY = ActionKind("history", reads_only=True)
SCRIPT = ActionKind("script", lazy=True)
INPUT = ActionKind("input", lazy=True)

_ELEMENT_ACTIONS = {
    "click": CLICK,
    "dblclick": CLICK,
    "tap": CLICK,
    "press": PRESS,
    "check": CHECK,
    "uncheck": CHECK,
    "set_checked": CHECK,
    "select_option": SELECT,
    "set_input_files": UPLOAD,
    "dispatch_event": DISPATCH,
    "fill": INPUT,
    "focus": INPUT,
    "hover": INPUT,
    "type": INPUT,
}
_FRAME_ACTIONS = {
    **_ELEMENT_ACTIONS,
    "drag_and_drop": DRAG,
    "goto": NAVIGATE,
    "evaluate": SCRIPT,
    "evaluate_handle": SCRIPT,
    "eval_on_selector": SCRIPT,
    "eval_on_selector_all": SCRIPT,
    "add_script_tag": SCRIPT,
    "set_content": SCRIPT,
}

ACTIONS: dict[str, dict[str, ActionKind]] = {
    "Page": {**_FRAME_ACTIONS, "reload": RELOAD, "go_back": HISTORY, "go_forward": HISTORY},
    "Frame": _FRAME_ACTIONS,
    "Locator": {
        **_ELEMENT_ACTIONS,
        "drag_to": DRAG,
        "drop": DRAG,
        "blur": INPUT,
        "clear": INPUT,
        "press_sequentially": INPUT,
        "select_text": INPUT,
        "evaluate": SCRIPT,
        "evaluate_all": SCRIPT,
        "evaluate_handle": SCRIPT,
    },
    "ElementHandle": {
        **_ELEMENT_ACTIONS,
        "select_text": INPUT,
        "eval_on_selector": SCRIPT,
        "eval_on_selector_all": SCRIPT,
    },
    "JSHandle": {"evaluate": SCRIPT, "evaluate_handle": SCRIPT},
    "Keyboard": {"press": PRESS, "down": PRESS, "up": INPUT, "insert_text": INPUT, "type": INPUT},
    "Mouse": {"click": CLICK, "dblclick": CLICK, "up": CLICK, "down": INPUT, "move": INPUT, "wheel": INPUT},
    "Touchscreen": {"tap": CLICK},
    "FileChooser": {"set_files": UPLOAD},
}

CALLS: dict[str, frozenset[str]] = {
    "APIRequestContext": frozenset({"get", "head", "post", "put", "patch", "delete", "fetch"}),
    "Route": frozenset({"fetch"}),
}

CLOSES: dict[str, frozenset[str]] = {
    "Page": frozenset({"close"}),
    "BrowserContext": frozenset({"close"}),
    "Browser": frozenset({"close"}),
}

OPENS: dict[str, frozenset[str]] = {"BrowserContext": frozenset({"new_page"})}

LAUNCHES: dict[str, frozenset[str]] = {
    "BrowserType": frozenset({"launch", "launch_persistent_context"}),
    "Browser": frozenset({"new_context", "new_page"}),
}

RELEASES: dict[str, frozenset[str]] = {"Route": frozenset({"continue_"})}

UNROUTES: dict[str, frozenset[str]] = {"BrowserContext": frozenset({"unroute_all"})}

_READS = frozenset(
    {
        "bounding_box", "content", "content_frame", "frame_element", "get_attribute", "inner_html", "inner_text",
        "input_value", "is_checked", "is_disabled", "is_editable", "is_enabled", "is_hidden", "is_visible",
        "query_selector", "query_selector_all", "screenshot", "scroll_into_view_if_needed", "text_content", "title",
        "wait_for_element_state", "wait_for_function",
        "wait_for_load_state", "wait_for_selector", "wait_for_timeout", "wait_for_url",
        "expect_navigation", "frame_locator", "get_by_alt_text", "get_by_label", "get_by_placeholder", "get_by_role",
        "get_by_test_id", "get_by_text", "get_by_title", "locator", "add_style_tag", "owner_frame", "is_detached",
    }
)  # fmt: skip

PASSIVE: dict[str, frozenset[str]] = {
    "Page": _READS
    | {
        "add_init_script", "add_locator_handler", "aria_snapshot", "bring_to_front", "cancel_pick_locator",
        "clear_console_messages", "clear_page_errors", "console_messages", "emulate_media", "expect_console_message",
        "expect_download", "expect_event", "expect_file_chooser", "expect_popup", "expect_request",
        "expect_request_finished", "expect_response", "expect_websocket", "expect_worker", "expose_binding",
        "expose_function", "frame", "get_by_ref", "hide_highlight", "is_closed", "on", "once", "opener", "page_errors",
        "pause", "pdf", "pick_locator", "remove_locator_handler", "request_gc", "requests", "route", "route_from_har",
        "route_web_socket", "set_default_navigation_timeout", "set_default_timeout", "set_extra_http_headers",
        "set_viewport_size", "unroute", "unroute_all", "wait_for_event",
    },
    "Frame": _READS,
    "Locator": _READS
    | {
        "all", "all_inner_texts", "all_text_contents", "and_", "aria_snapshot", "count", "describe", "element_handle",
        "element_handles", "filter", "hide_highlight", "highlight", "normalize", "nth", "or_", "wait_for", "within",
    },
    "ElementHandle": _READS,
    "JSHandle": frozenset({"as_element", "dispose", "get_properties", "get_property", "json_value"}),
    "FileChooser": frozenset({"is_multiple"}),
    "APIRequestContext": frozenset({"add_cookies", "clear_cookies", "cookies", "dispose", "storage_state"}),
    "Route": frozenset({"abort", "fallback", "fulfill"}),
    "BrowserContext": frozenset(
        {
            "add_cookies", "add_init_script", "clear_cookies", "clear_permissions", "cookies", "expect_console_message",
            "expect_event", "expect_page", "expose_binding", "expose_function", "grant_permissions", "is_closed",
            "new_cdp_session", "on", "once", "route", "route_from_har", "route_web_socket",
            "set_default_navigation_timeout", "set_default_timeout", "set_extra_http_headers", "set_geolocation",
            "set_offline", "set_storage_state", "storage_state", "unroute", "wait_for_event",
        }
    ),
    "Browser": frozenset(
        {"bind", "is_connected", "new_browser_cdp_session", "on", "once", "start_tracing", "stop_tracing", "unbind"}
    ),
    "BrowserType": frozenset({"connect", "connect_over_cdp"}),
}  # fmt: skip

OUTSIDE: frozenset[str] = frozenset(
    {
        "APIRequest", "APIResponse", "APIResponseAssertions", "CDPSession", "Clock", "ConsoleMessage", "Credentials",
        "Debugger", "Dialog", "Disposable", "Download", "Expect", "FrameLocator", "LocatorAssertions", "PageAssertions",
        "Playwright", "Request", "Response", "Screencast", "Selectors", "Tracing", "Video", "WebError", "WebMCP",
        "WebSocket", "WebSocketRoute", "WebStorage", "Worker",
    }
)  # fmt: skip
"""Classes without an action: what a dialog, a clock or a worker sets off is done by the page itself, passes the
gate, and belongs to the action that is open then, or to one of kind ``page``."""
