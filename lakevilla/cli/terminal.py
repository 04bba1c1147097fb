"""A session on a terminal: history, completion, several lines, and a prompt that shows the transaction."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lakevilla as lv
from lakevilla.cli.exits import paint, tell
from lakevilla.environment import SystemEnvironment
from lakevilla.session.completion import Completions, is_complete
from lakevilla.session.shortcuts import expand, help_text

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_PROMPTS = {"idle": "lake> ", "open": "lake*> ", "aborted": "lake!> "}


class Shell:
    """Reads texts and shows answers until the user leaves."""

    def __init__(self, lake: "lv.Lake", session: "lv.Session", rows: int, truncate: bool) -> None:
        self._lake, self._session = lake, session
        self._rows, self._truncate = rows, truncate
        self._environment = SystemEnvironment()
        self._timing = True
        self._completions = Completions(self._names, self._columns)
        self._prompt = _prompt_session(self._completions)

    def loop(self) -> None:
        """Until Ctrl-D or \\q; with an open transaction that has to be said twice."""
        print(f"LakeVilla {lv.__version__}, {self._lake.url}. \\? for help, Ctrl-D to leave.")
        warned = False
        while True:
            try:
                text = self._prompt.prompt(lambda: _PROMPTS[self._session.state])
            except KeyboardInterrupt:
                continue
            except EOFError:
                text = "\\q"
            if text.strip().rstrip(";").lower() in ("\\q", "exit", "quit"):
                if self._session.state == "idle" or warned:
                    break
                warned = True
                self._warn()
                continue
            warned = False
            self._run(text)
        if self._session.close():
            print("the open transaction was rolled back")

    def _warn(self) -> None:
        transaction = self._session.transaction
        name = f"transaction {transaction.id} is open" if transaction else "a transaction is aborted"
        warning = f"{name}, and leaving rolls it back: COMMIT it first, or leave once more to go"
        print(paint(warning, "1;33", sys.stdout))

    def _run(self, text: str) -> None:
        """One text: its statements, or a shortcut. Errors and Ctrl-C end the text and not the shell."""
        try:
            if text.lstrip().startswith("\\"):
                text = self._shortcut(text)
            self._answer(text)
        except lv.LakeVillaError as error:
            tell(error)
        except KeyboardInterrupt:
            state = {
                "idle": "it was done as a whole or not at all",
                "open": "it was undone; the transaction is still open",
                "aborted": "the transaction is aborted: ROLLBACK",
            }
            print(f"\ninterrupted: {state[self._session.state]}")
        except Exception as error:  # noqa: BLE001 - Spark fails in words of its own, and the shell goes on
            tell(error)
        self._completions.forget()

    def _answer(self, text: str) -> None:
        begun = self._environment.elapsed()
        for answer in self._session.run(text):
            if answer.has_rows:
                answer.result.show(self._rows, truncate=self._truncate)
            elif answer.message:
                print(answer.message)
            if self._timing:
                print(paint(f"({self._environment.elapsed() - begun:.3f} s)", "2", sys.stdout))
            begun = self._environment.elapsed()

    def _shortcut(self, line: str) -> str:
        """The statement of a shortcut; empty for one that the shell does alone."""
        name, statement = expand(line)
        if name == "\\?":
            print(help_text())
        elif name == "\\timing":
            self._timing = not self._timing
            print(f"times are {'shown' if self._timing else 'not shown'}")
        return statement

    def _names(self) -> list[str]:
        """The tables and views that a statement of this session can name."""
        return sorted({*self._lake.tables(), *self._lake.views(), *self._session.temporary_views})

    def _columns(self, table: str) -> list[str]:
        if (own := self._session.temporary_views.get(table)) is not None:
            return own
        quoted = "`" + table.replace("`", "``") + "`"
        names = self._lake.sql(f"SHOW COLUMNS IN {quoted}").collect()
        return [row[0] for row in names]


def _prompt_session(completions: Completions) -> "PromptSession[str]":
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import CompleteEvent, Completer, Completion
        from prompt_toolkit.document import Document
        from prompt_toolkit.history import FileHistory
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.key_binding.key_processor import KeyPressEvent
    except ImportError as error:
        raise lv.InvalidInput(
            "lakevilla shell needs prompt_toolkit: pip install 'lakevilla[shell]'; lakevilla sql does not"
        ) from error

    class Suggestions(Completer):
        def get_completions(
            self,
            document: Document,
            complete_event: CompleteEvent,  # noqa: ARG002 - the library's signature
        ) -> Iterator[Completion]:
            word, found = completions.after(document.text_before_cursor)
            yield from (Completion(one, start_position=-len(word)) for one in found[:200])

    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        """Run what is complete; else start another line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif _is_ready(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    options: dict[str, Any] = {} if (place := _history()) is None else {"history": FileHistory(str(place))}
    return PromptSession(
        completer=Suggestions(),
        key_bindings=keys,
        multiline=True,
        complete_while_typing=False,
        prompt_continuation=lambda width, *_: "-> ".rjust(width),
        **options,
    )


def _is_ready(text: str) -> bool:
    """Whether Enter runs the text: a shortcut, a word that leaves, or complete statements."""
    plain = text.strip()
    return not plain or plain.startswith("\\") or plain.lower() in ("exit", "quit") or is_complete(text)


def _history() -> Path | None:
    """The file of the history; None where it cannot be written."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    place = Path(base) / "lakevilla" / "history"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a"):
            place.chmod(0o600)
    except OSError:
        return None
    return place
