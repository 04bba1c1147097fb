"""SQLAlchemy and pandas over a lake: sessions with real transactions, reflection, `to_sql`."""

import uuid
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import lakevilla as lv


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "accounts"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    owner: Mapped[str] = mapped_column(sa.String(20), unique=True)
    balance: Mapped[Decimal] = mapped_column(sa.Numeric(12, 2))


class Payment(Base):
    __tablename__ = "payments"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    account: Mapped[int] = mapped_column(sa.ForeignKey("accounts.id"))


@pytest.fixture
def engine(tmp_path: Path) -> sa.Engine:
    # An installed package registers itself, see pyproject.toml.
    sa.dialects.registry.register("lakevilla", "lakevilla.dbapi.dialect", "LakeVillaDialect")
    engine = sa.create_engine(f"lakevilla:///{tmp_path}?engine=local")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Account(id=1, owner="Ada", balance=100), Account(id=2, owner="Grace", balance=7)])
        session.commit()
    return engine


def balances(engine: sa.Engine) -> list[Decimal]:
    with Session(engine) as session:
        return list(session.scalars(sa.select(Account.balance).order_by(Account.id)))


def test_rollback_of_a_session_undoes_all_of_its_tables(engine: sa.Engine) -> None:
    with Session(engine) as session:
        account = session.get(Account, 1)
        assert account is not None
        account.balance -= 50
        session.add(Payment(id=1, account=1))
        session.flush()
        assert session.scalar(sa.select(sa.func.count()).select_from(Payment)) == 1
        session.rollback()
        assert session.scalar(sa.select(sa.func.count()).select_from(Payment)) == 0
    assert balances(engine) == [Decimal("100.00"), Decimal("7.00")]


def test_commit_of_a_session_is_one_entry_of_the_lake(engine: sa.Engine, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    before = lake.history()[0].seq
    with Session(engine) as session, session.begin():
        account = session.get(Account, 1)
        assert account is not None
        account.balance -= 50
        session.add(Payment(id=1, account=1))
    newest = lake.history()[0]
    assert (newest.seq, sorted(newest.tables)) == (before + 1, ["accounts", "payments"])
    assert balances(engine) == [Decimal("50.00"), Decimal("7.00")]


def test_nested_transaction_returns_to_its_savepoint(engine: sa.Engine) -> None:
    with Session(engine) as session:
        session.add(Account(id=3, owner="Alan", balance=1))
        with pytest.raises(ZeroDivisionError), session.begin_nested():
            session.add(Account(id=4, owner="Edsger", balance=1))
            session.flush()
            raise ZeroDivisionError
        with session.begin_nested():
            session.add(Account(id=5, owner="Barbara", balance=2))
        session.commit()
    assert balances(engine) == [Decimal("100.00"), Decimal("7.00"), Decimal("1.00"), Decimal("2.00")]


def test_conflict_is_an_operational_error(engine: sa.Engine, tmp_path: Path) -> None:
    with Session(engine) as session:
        account = session.get(Account, 1)
        assert account is not None
        account.balance += 1
        lv.Lake(tmp_path, engine="local").update("accounts", {"balance": "0"}, where="id = 1")
        with pytest.raises(sa.exc.OperationalError):
            session.commit()
    assert balances(engine) == [Decimal("0.00"), Decimal("7.00")]


def test_queries_of_the_expression_language_run(engine: sa.Engine) -> None:
    accounts = Account.__table__
    with engine.connect() as connection:
        chosen = sa.select(accounts.c.owner).where(accounts.c.id.in_([1, 2])).order_by(accounts.c.id)
        assert connection.scalars(chosen.limit(1).offset(1)).all() == ["Grace"]
        assert connection.scalars(chosen.where(accounts.c.id.in_([]))).all() == []
        assert (
            connection.scalar(sa.select(sa.cast(accounts.c.id, sa.String)).where(accounts.c.id == 2)) == "2"
        )
        assert connection.execute(sa.delete(accounts).where(accounts.c.id > 1)).rowcount == 1
        connection.rollback()
        assert connection.get_isolation_level() == "SERIALIZABLE"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.delete(accounts))
    assert balances(engine) == []
    with engine.connect().execution_options(isolation_level="SNAPSHOT") as connection:
        assert connection.get_isolation_level() == "SNAPSHOT"


def test_tables_and_columns_are_reflected(engine: sa.Engine, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.create("sales.orders", "at TIMESTAMP, tags ARRAY<STRING>")
    found = sa.inspect(engine)
    assert found.get_table_names() == ["accounts", "payments"]
    assert (found.get_schema_names(), found.get_table_names("sales")) == (["sales"], ["orders"])
    assert found.has_table("ACCOUNTS")
    columns = {column["name"]: column for column in found.get_columns("accounts")}
    assert isinstance(columns["balance"]["type"], sa.Numeric)
    assert not columns["id"]["nullable"]
    reflected = sa.Table("orders", sa.MetaData(), schema="sales", autoload_with=engine)
    assert list(reflected.c.keys()) == ["at", "tags"]
    with pytest.raises(sa.exc.NoSuchTableError):
        found.get_columns("none")


def test_pandas_writes_and_reads_tables(engine: sa.Engine) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["x", None], "at": pd.to_datetime(["2026-01-01"] * 2)})
    assert frame.to_sql("people", engine, index=False) == 2
    frame.to_sql("people", engine, index=False, if_exists="append")
    assert len(pd.read_sql("people", engine)) == 4
    frame.to_sql("people", engine, index=False, if_exists="replace")
    with pytest.raises(ValueError, match="exists"):
        frame.to_sql("people", engine)
    found = pd.read_sql(sa.text("SELECT name FROM people WHERE id = :id"), engine, params={"id": 1})
    assert found["name"].tolist() == ["x"]


def test_url_that_names_no_lake_is_refused(engine: sa.Engine) -> None:
    for url in ("lakevilla://", "lakevilla://host/lake"):
        with pytest.raises(sa.exc.ArgumentError):
            sa.create_engine(url).connect()
    memory = sa.create_engine("lakevilla://?root=memory://&engine=local")
    with memory.begin() as connection:
        connection.execute(sa.text("CREATE TABLE t (id INT)"))
    assert sa.inspect(memory).get_table_names() == ["t"]
    with engine.begin() as connection:
        table = sa.Table("indexed", sa.MetaData(), sa.Column("id", sa.Integer))
        table.create(connection)
        index = sa.Index("by_id", table.c.id)
        index.create(connection)
        index.drop(connection)


def test_pandas_writes_its_index_and_replaces_tables(engine: sa.Engine, tmp_path: Path) -> None:
    frame = pd.DataFrame({"select": [1, 2], "x`y": [3, 4], "a b": [1, "x"]})
    assert frame.to_sql("odd", engine) == 2
    assert pd.read_sql("odd", engine, index_col="index").to_dict("list") == {
        "select": [1, 2],
        "x`y": [3, 4],
        "a b": ["1", "x"],
    }
    frame.to_sql("odd", engine, if_exists="append", method="multi", chunksize=1)
    frame.set_index("select").to_sql("odd", engine, if_exists="replace")
    assert lv.Lake(tmp_path, engine="local").read("odd").columns == ["select", "x`y", "a b"]
    with pytest.raises(ZeroDivisionError), engine.begin() as connection:
        frame.to_sql("odd", connection, if_exists="append", index=False)
        frame.to_sql("more", connection)
        raise ZeroDivisionError
    assert len(pd.read_sql("odd", engine)) == 2
    assert not sa.inspect(engine).has_table("more")


def test_operators_mean_what_they_mean_in_python(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        quotients = sa.select(sa.literal(5) / 2, sa.literal(5) // 2, sa.literal(5.5) // 2, sa.literal(5) % 3)
        assert connection.execute(quotients).one() == (2.5, 2, 2, 2)
        owners = sa.select(Account.owner).order_by(Account.id)
        assert connection.scalars(owners.offset(1)).all() == ["Grace"]
        assert connection.scalars(owners.fetch(1)).all() == ["Ada"]
        assert connection.scalars(owners.where(Account.owner.regexp_match("^G"))).all() == ["Grace"]
        assert connection.scalars(owners.where(~Account.owner.regexp_match("^G"))).all() == ["Ada"]


@pytest.mark.parametrize(
    "what",
    [
        sa.select(Account).with_for_update(),
        sa.insert(Account).values(id=9).returning(Account.id),
        sa.select(Account.id).fetch(1, with_ties=True),
        sa.schema.CreateTable(sa.Table("a", sa.MetaData(), sa.Column("id", sa.Integer, server_default="5"))),
        sa.schema.CreateTable(sa.Table("b", sa.MetaData(), sa.Column("id", sa.Integer, sa.Identity()))),
        sa.schema.CreateTable(sa.Table("c", sa.MetaData(), sa.Column("at", sa.Time))),
    ],
)
def test_what_would_be_lost_is_refused(engine: sa.Engine, what: sa.Executable) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.CompileError):
        connection.execute(what)


def test_comments_and_values_of_programs_are_kept(engine: sa.Engine, tmp_path: Path) -> None:
    class Event(Base):
        __tablename__ = "events"
        __table_args__ = ({"comment": "it's \\ kept"},)
        id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
        key: Mapped[uuid.UUID] = mapped_column(comment="a 'key'")
        detail: Mapped[dict[str, int]] = mapped_column(sa.JSON)

    Base.metadata.create_all(engine)
    given = {"key": uuid.UUID(int=7), "detail": {"a": 1}}
    with Session(engine) as session:
        session.add_all([Event(id=1, **given), Event(id=2, **given)])
        session.commit()
        found = session.get(Event, 1)
        assert found is not None
        assert (found.key, found.detail) == (given["key"], given["detail"])
    shown = lv.Lake(tmp_path, engine="local").sql("SHOW CREATE TABLE events").to_dicts()[0]["createtab_stmt"]
    assert "COMMENT 'a \\'key\\''" in shown
    assert "COMMENT 'it\\'s \\\\ kept'" in shown
    with Session(engine) as session, pytest.raises(sa.exc.IntegrityError):
        session.add(Event(id=3, detail={}))
        session.commit()
    assert sa.inspect(engine).get_unique_constraints("events") == []
    Base.metadata.remove(Event.__table__)


def test_row_that_another_session_deleted_is_an_error(engine: sa.Engine) -> None:
    with Session(engine) as first, Session(engine) as second:
        one, two = first.get(Account, 1), second.get(Account, 1)
        assert one is not None
        assert two is not None
        first.delete(one)
        first.commit()
        two.owner = "Lovelace"
        with pytest.raises(sa.exc.OperationalError):
            second.commit()
    assert balances(engine) == [Decimal("7.00")]


def test_views_comments_and_constraints_are_reflected(engine: sa.Engine, tmp_path: Path) -> None:
    lake = lv.Lake(tmp_path, engine="local")
    lake.sql(
        "CREATE TABLE sales.Items (id BIGINT NOT NULL COMMENT 'the key', price INT) COMMENT 'what we sell'"
    )
    lake.sql("ALTER TABLE sales.Items ADD CONSTRAINT positive CHECK (price > 0)")
    lake.sql("CREATE VIEW rich AS SELECT owner, balance FROM accounts WHERE balance > 50")
    lake.sql("CREATE VIEW sales.cheap AS SELECT id FROM sales.Items WHERE price < 3")
    found = sa.inspect(engine)
    assert found.get_table_names() == ["accounts", "payments"]
    assert (found.get_view_names(), found.get_view_names("sales")) == (["rich"], ["cheap"])
    assert found.get_view_definition("rich").startswith("SELECT owner, balance")
    assert found.has_table("rich")
    assert [column["name"] for column in found.get_columns("rich")] == ["owner", "balance"]
    assert found.get_columns("items", "sales")[0]["comment"] == "the key"
    assert found.get_table_comment("items", "sales") == {"text": "what we sell"}
    assert found.get_check_constraints("items", "sales") == [{"name": "positive", "sqltext": "price > 0"}]
    assert found.get_table_comment("rich") == {"text": None}
    assert (found.get_temp_table_names(), found.get_temp_view_names(), found.get_sequence_names()) == (
        [],
        [],
        [],
    )
    with pytest.raises(sa.exc.NoSuchTableError):
        found.get_view_definition("accounts")
    for ask in (found.get_pk_constraint, found.get_indexes, found.get_table_comment, found.get_foreign_keys):
        with pytest.raises(sa.exc.NoSuchTableError):
            ask("none")
    tables, views = sa.MetaData(), sa.MetaData()
    tables.reflect(engine)
    views.reflect(engine, views=True)
    assert set(views.tables) - set(tables.tables) == {"rich"}
    with engine.connect() as connection:
        assert connection.execute(sa.select(views.tables["rich"].c.owner)).scalars().all() == ["Ada"]
