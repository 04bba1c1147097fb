import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.LocalTableScanExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.arrow.ArrowBatchStreamWriter;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;

/** What Python asks of the driver's JVM. Each call has its price, so one call does one whole thing. */
public class DriverSide {
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * A DataFrame over the files that the lister gives, see SnapshotIndex.
   *
   * Asked: {"partition", "data", "options", "bytes", "deleted", "row", "columns", "mark"}, see file_index.py. Where
   * "deleted" names a column, rows whose bit in it is set are left out; "row" names the column of a row's position.
   */
  public Dataset frame(SparkSession session, Function lister, String asked) throws IOException {
    JsonNode wanted = JSON.readTree(asked);
    StructType partition = (StructType) DataType.fromJson(text(wanted, "partition"));
    StructType data = (StructType) DataType.fromJson(text(wanted, "data"));
    FileIndex index = new SnapshotIndex(lister, partition, ((JsonNode) wanted.get("bytes")).asLong(),
        text(wanted, "mark"));
    Map options = (Map) JSON.convertValue(wanted.get("options"), Map.class);
    HadoopFsRelation relation = new HadoopFsRelation(index, partition, data, Option.empty(), new ParquetFileFormat(),
        scala.collection.immutable.Map$.MODULE$.from(CollectionConverters.asScala(options)), session);
    Dataset frame = session.baseRelationToDataFrame(relation);
    String deleted = text(wanted, "deleted");
    if (deleted != null) {
      frame = frame.where(ExpressionUtils$.MODULE$.column(
          LivingRows.condition(frame.queryExecution().analyzed(), deleted, text(wanted, "row"))));
    }
    return frame.selectExpr((String[]) JSON.convertValue(wanted.get("columns"), String[].class));
  }

  /**
   * How a plan reads the index with this mark: {"deterministic", "empty", "scans"}, the filters of each scan as the lister
   * gets them. Nothing runs.
   */
  public String scans(Dataset frame, String mark) throws IOException {
    QueryExecution execution = frame.queryExecution();
    ObjectNode found = JSON.createObjectNode();
    Option rows = execution.optimizedPlan().maxRows();
    found.put("deterministic", execution.analyzed().deterministic());
    found.put("empty", rows.isDefined() && ((Long) rows.get()).longValue() == 0L);
    ArrayNode scans = JSON.createArrayNode();
    java.util.Iterator leaves = CollectionConverters.asJava(execution.sparkPlan().collectLeaves()).iterator();
    while (leaves.hasNext()) {
      Object leaf = leaves.next();
      if (leaf instanceof FileSourceScanExec) {
        FileSourceScanExec scan = (FileSourceScanExec) leaf;
        FileIndex index = scan.relation().location();
        if (index instanceof SnapshotIndex && ((SnapshotIndex) index).isMarked(mark)) {
          scans.add(SnapshotIndex.described(scan.partitionFilters(), scan.dataFilters()));
        }
      }
    }
    found.set("scans", scans);
    return JSON.writeValueAsString(found);
  }

  /** The rows of a DataFrame as an Arrow stream. Rows that the plan holds already need no job. */
  public byte[] rows(Dataset frame) throws IOException {
    SparkPlan plan = frame.queryExecution().executedPlan();
    SQLConf settings = frame.sparkSession().sessionState().conf();
    String zone = settings.sessionLocalTimeZone();
    boolean large = settings.arrowUseLargeVarTypes();
    Iterator batches = plan instanceof LocalTableScanExec
        ? ArrowConverters$.MODULE$.toBatchIterator(((LocalTableScanExec) plan).rows().iterator(), frame.schema(),
            settings.arrowMaxRecordsPerBatch(), zone, true, large, (TaskContext) null)
        : CollectionConverters.asScala(Arrays.asList(computed(frame, plan)).iterator());
    ByteArrayOutputStream stream = new ByteArrayOutputStream();
    ArrowBatchStreamWriter writer = new ArrowBatchStreamWriter(frame.schema(), stream, zone, true, large);
    writer.writeBatches(batches);
    writer.end();
    return stream.toByteArray();
  }

  /** Batches of rows that tasks make, under an execution of their own, which gives tasks the session's settings. */
  private static Object[] computed(final Dataset frame, final SparkPlan plan) {
    return (Object[]) SQLExecution$.MODULE$.withNewExecutionId(frame.queryExecution(), Option.empty(), new AbstractFunction0() {
      public Object apply() {
        return frame.toArrowBatchRdd(plan).collect();
      }
    });
  }

  private static String text(JsonNode of, String name) {
    JsonNode found = (JsonNode) of.get(name);
    return found == null || found.isNull() ? null : found.asText();
  }
}
