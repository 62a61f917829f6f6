"""A Streamlit application: its button reaches the server by a frame on a WebSocket, and the server writes a line."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit

if streamlit.button("Order"):
    with Path(os.environ["ORDERS"]).open("a", encoding="utf-8") as orders:
        orders.write("order\n")
    streamlit.write("Thank you for your order")
streamlit.write("Ready")
