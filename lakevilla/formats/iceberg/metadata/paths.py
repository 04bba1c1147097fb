"""Names in an Iceberg table: metadata files, manifests, and recorded paths. All are built and parsed here.

Iceberg records whole paths. What is recorded below the table's recorded location is taken from where the
table really lies, so that a table that was moved or copied reads itself; what is recorded elsewhere is there.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

METADATA = "metadata/"
DATA = "data/"
HINT = "metadata/version-hint.text"

_BY_FILES = re.compile(r"v(?P<version>\d+)(?P<gz>\.gz)?\.metadata\.json(?P<gz_last>\.gz)?")
_BY_CATALOG = re.compile(r"(?P<version>\d+)-[^/]+?(?:\.gz)?\.metadata\.json(?:\.gz)?")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_S3 = ("s3", "s3a", "s3n")


@dataclass(frozen=True, slots=True)
class MetadataName:
    """What the name of a metadata file says. `by_files` is False for those that a catalog gave a name to."""

    version: int
    by_files: bool
    compressed: bool


def metadata_key(version: int, compressed: bool = False) -> str:
    """The key of the metadata file that makes this version, for tables that are kept by files alone."""
    return f"{METADATA}v{version}{'.gz' if compressed else ''}.metadata.json"


def parse_metadata_key(key: str) -> MetadataName | None:
    """The kind of a key in the metadata folder; None for other files."""
    name = key.removeprefix(METADATA)
    found = _BY_FILES.fullmatch(name)
    if found is not None:
        return MetadataName(int(found["version"]), True, bool(found["gz"] or found["gz_last"]))
    found = _BY_CATALOG.fullmatch(name)
    if found is not None:
        return MetadataName(int(found["version"]), False, ".gz" in name)
    return None


def metadata_name(path: str) -> MetadataName | None:
    """The name of the metadata file of a recorded path or key, in any folder."""
    return parse_metadata_key(METADATA + path.rpartition("/")[2])


def manifest_key(txn: str, unique: str, number: int) -> str:
    """The key of a manifest: it names the transaction, so that vacuum knows whose it was."""
    return f"{METADATA}part-{txn}-{unique}-m{number}.avro"


def manifest_list_key(txn: str, unique: str, snapshot_id: int) -> str:
    """The key of a snapshot's manifest list, which names the transaction too."""
    return f"{METADATA}part-{txn}-{unique}-snap-{snapshot_id}.avro"


def location_of(url: str) -> str:
    """The location of a table at this URL of a store, as Iceberg's clients read it: they decode nothing."""
    return unquote(url) if url.startswith("file:") else url


def recorded_path(location: str, key: str) -> str:
    """How a table at this location records one of its files."""
    return f"{location.rstrip('/')}/{key}"


def without_scheme(path: str) -> str:
    """A path without scheme and authority: tables that were moved between file systems differ in them."""
    found = _SCHEME.fullmatch(path)
    if found is None:
        return path
    rest = found["rest"]
    if not rest.startswith("//"):
        return rest
    return "/" + rest[2:].partition("/")[2]


@dataclass(frozen=True, slots=True)
class Places:
    """Recorded paths of a table whose metadata names `location`, and which is at the URL `root`."""

    location: str
    root: str

    @property
    def moved(self) -> bool:
        """Whether the table is not where its metadata says."""
        return _spelt(self.location) != _spelt(location_of(self.root))

    def key_of(self, path: str) -> str:
        """The key of a file from its recorded path: relative to the table's root, or a URL."""
        for base in (self.location, location_of(self.root)):
            below = _below(path, base)
            if below is not None:
                return below
        if _SCHEME.fullmatch(path) is None and not path.startswith("/"):
            return path
        url = url_of(path, self.root)
        # The code that opens it decodes both kinds, `formats.urls`.
        return url if url.startswith("file:") else quote(url, safe="/:")

    def path_of(self, key: str) -> str:
        """How a file at this key is recorded."""
        return recorded_path(self.location, key)


def _below(path: str, base: str) -> str | None:
    """The rest of a path below a folder; None if it is not there."""
    plain = base.rstrip("/") + "/"
    if path.startswith(plain):
        return path[len(plain) :]
    whole, folder = _spelt(path), _spelt(base) + "/"
    return whole[len(folder) :] if whole.startswith(folder) else None


def _spelt(path: str) -> str:
    """A path in one spelling: Iceberg's writers have several for the same place. None of them encodes
    anything: a percent sign is one, as in the names that Spark gives to folders of partitions."""
    found = _SCHEME.fullmatch(path)
    if found is None:
        return f"file:{path}".rstrip("/") if path.startswith("/") else path.removeprefix("./").rstrip("/")
    scheme, rest = found["scheme"].lower(), found["rest"].rstrip("/")
    if scheme == "file":
        return "file:/" + rest.lstrip("/")
    return f"s3:{rest}" if scheme in _S3 else f"{scheme}:{rest}"


def url_of(path: str, root: str = "") -> str:
    """A recorded path as a URL that a store can be opened for; without a scheme it is on the store of
    `root`."""
    if path.startswith("/"):
        scheme, separator, rest = root.partition("://")
        if separator and scheme != "file":
            return f"{scheme}://{rest.split('/', 1)[0]}{path}"
        return f"file://{quote(path)}"
    scheme, _, rest = path.partition(":")
    if scheme.lower() == "file":
        return "file:///" + quote(rest.lstrip("/"))
    return f"s3:{rest}" if scheme.lower() in _S3 else path
