"""DataFrames of other sessions: the batches of a stream come in a session of their own, and so may frames.

Sessions of one JVM share executors and cached data; they differ in settings and views. A frame's plan is
analysed already, under the settings of its own session, so it can run in ours as it is.
"""

from typing import Any

from pyspark.sql import DataFrame

from lakevilla.engines.spark.session.connect import is_connect
from lakevilla.errors import InvalidInput


def in_session(session: Any, frame: Any) -> Any:
    """The frame as one of this session. InvalidInput if it belongs to another Spark."""
    theirs = frame.sparkSession
    if is_connect(session) or is_connect(theirs):
        if is_connect(session) and is_connect(theirs) and theirs.session_id == session.session_id:
            return frame
        raise _elsewhere()
    if theirs._jsparkSession.equals(session._jsparkSession):
        return frame
    if theirs.sparkContext._gateway is not session.sparkContext._gateway:
        raise _elsewhere()
    plan = frame._jdf.queryExecution().analyzed()
    dataset = session._jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, plan), session)


def _elsewhere() -> InvalidInput:
    return InvalidInput(
        "the DataFrame belongs to another Spark than the lake: open the lake with the session that the "
        "DataFrame was made in, lv.Lake(..., spark=df.sparkSession)"
    )
