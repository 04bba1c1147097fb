"""The jars that Spark needs for S3, and where it finds them: the slim set, 18 MB, from Maven Central.

hadoop-aws asks for a bundle of all of Amazon's services, 760 MB; the few modules that s3a uses do as well. A
session of the user's own needs the same settings at its start; `settings` gives them.
"""

import tempfile
from pathlib import Path

_S3 = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.awssdk:s3:2.29.52",
    "software.amazon.awssdk:s3-transfer-manager:2.29.52",
    "software.amazon.awssdk:sts:2.29.52",
)
_WITHOUT = ("software.amazon.awssdk:bundle",)
# Central alone, this resolver's default: Spark's own list has places that answer late or never.
_IVY = """<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true"/></resolvers>
</ivysettings>
"""


def settings(url: str) -> dict[str, str]:
    """The settings of a session that reads a lake at this URL."""
    if not url.startswith(("s3:", "s3a:")):
        return {}
    found = Path(tempfile.mkdtemp(prefix="lakevilla-")) / "ivy.xml"
    found.write_text(_IVY)
    return {
        "spark.jars.packages": ",".join(_S3),
        "spark.jars.excludes": ",".join(_WITHOUT),
        "spark.jars.ivySettings": str(found),
    }
