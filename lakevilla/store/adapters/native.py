"""The obstore library, fit for the process that asks.

obstore keeps one pool of I/O threads per process, made on first use, and cannot make another: threads
do not survive a fork, so in a forked child every request would wait forever, also with a new client.
A child therefore loads a second copy of the extension, which brings threads of its own. Rejected: a
spawned helper process (two copies of every byte), a client of our own (signatures of three clouds).

A copy costs 20-40 ms and 15 MB, once per forked process that talks to a remote store.
"""

import importlib.machinery
import importlib.util
import os
import shutil
import tempfile
from threading import Lock
from types import ModuleType

from obstore import _obstore

_lock = Lock()
_library: ModuleType = _obstore
# The process whose threads serve `_library`; 0 until it is first used.
_owner = 0


def library() -> ModuleType:
    """obstore for this process; a caller that gets it is about to use it."""
    global _library, _owner
    if _owner != os.getpid():
        with _lock:
            if _owner not in (0, os.getpid()):
                _library = _load_copy()
            _owner = os.getpid()
    return _library


def _load_copy() -> ModuleType:
    """The extension from a file of its own: the dynamic loader shares state by file."""
    with tempfile.NamedTemporaryFile(prefix="lakevilla-", suffix=".so") as copy:
        shutil.copyfile(str(_obstore.__file__), copy.name)
        loader = importlib.machinery.ExtensionFileLoader("_obstore", copy.name)
        spec = importlib.util.spec_from_file_location("_obstore", copy.name, loader=loader)
        if spec is None:
            raise ImportError("obstore's extension cannot be loaded a second time")
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module


def _unlock_in_child() -> None:
    # A fork may catch the lock while another thread holds it; that thread does not exist in the child.
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=_unlock_in_child)
