import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext$;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.V1Scan;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.sources.BaseRelation;
import org.apache.spark.sql.sources.TableScan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;

/**
 * The tables of a lake as a catalog of Spark, for reading, see attached.py.
 *
 * A table is a DataFrame that Python makes. Spark hands over the filters and the columns of a query, they are laid over
 * that DataFrame, and its rows are the scan. So files are pruned and read as everywhere, and executors see Spark's own
 * classes alone. Compiled in the driver by Janino, which knows no lambdas and little of generics.
 */
public class LakeCatalog implements TableCatalog, SupportsNamespaces {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final AtomicLong QUERIES = new AtomicLong();

  private final ThreadLocal query = new ThreadLocal();
  private String name;
  private Function tables;

  /** Let the session's catalog of this name, which is of this class, answer by these tables from now on. */
  public void attach(final SparkSession session, final String name, Function tables) {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(LakeCatalog.class.getClassLoader());
    try {
      // The settings of the active session name the class.
      Object found = session.withActive(new AbstractFunction0() {
        public Object apply() {
          return session.sessionState().catalogManager().catalog(name);
        }
      });
      ((LakeCatalog) found).tables = tables;
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  public void initialize(String name, CaseInsensitiveStringMap options) {
    this.name = name;
  }

  public String name() {
    return name;
  }

  public Identifier[] listTables(String[] namespace) {
    ObjectNode asked = JSON.createObjectNode();
    asked.put("list", String.join(".", namespace));
    JsonNode names = read((String) ask(asked));
    Identifier[] found = new Identifier[names.size()];
    for (int i = 0; i < found.length; i++) {
      found[i] = Identifier.of(namespace, ((JsonNode) names.get(i)).asText());
    }
    return found;
  }

  public String[][] listNamespaces() {
    return inside(new String[0]);
  }

  public String[][] listNamespaces(String[] namespace) throws NoSuchNamespaceException {
    loadNamespaceMetadata(namespace);
    return inside(namespace);
  }

  public Map loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length > 0 && !folders().contains(String.join(".", namespace).toLowerCase())) {
      throw new NoSuchNamespaceException(namespace);
    }
    return new HashMap();
  }

  public void createNamespace(String[] namespace, Map metadata) {
    throw readOnly();
  }

  public void alterNamespace(String[] namespace, NamespaceChange[] changes) {
    throw readOnly();
  }

  public boolean dropNamespace(String[] namespace, boolean cascade) {
    throw readOnly();
  }

  /** The namespaces directly inside of this one. */
  private String[][] inside(String[] namespace) {
    String begin = namespace.length == 0 ? "" : String.join(".", namespace).toLowerCase() + ".";
    List found = new ArrayList();
    JsonNode all = allFolders();
    for (int i = 0; i < all.size(); i++) {
      String[] parts = parts((JsonNode) all.get(i));
      if (parts.length == namespace.length + 1 && String.join(".", parts).toLowerCase().startsWith(begin)) {
        found.add(parts);
      }
    }
    return (String[][]) found.toArray(new String[0][]);
  }

  private Set folders() {
    Set found = new HashSet();
    JsonNode all = allFolders();
    for (int i = 0; i < all.size(); i++) {
      found.add(String.join(".", parts((JsonNode) all.get(i))).toLowerCase());
    }
    return found;
  }

  private JsonNode allFolders() {
    ObjectNode asked = JSON.createObjectNode();
    asked.put("folders", true);
    return read((String) ask(asked));
  }

  private static String[] parts(JsonNode folder) {
    String[] parts = new String[folder.size()];
    for (int i = 0; i < parts.length; i++) {
      parts[i] = ((JsonNode) folder.get(i)).asText();
    }
    return parts;
  }

  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return load(ident, JSON.createObjectNode());
  }

  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    ObjectNode asked = JSON.createObjectNode();
    asked.put("version", version);
    return load(ident, asked);
  }

  public Table loadTable(Identifier ident, long microseconds) throws NoSuchTableException {
    ObjectNode asked = JSON.createObjectNode();
    asked.put("microseconds", microseconds);
    return load(ident, asked);
  }

  public Table alterTable(Identifier ident, TableChange[] changes) {
    throw readOnly();
  }

  public boolean dropTable(Identifier ident) {
    throw readOnly();
  }

  public void renameTable(Identifier from, Identifier to) {
    throw readOnly();
  }

  public Table createTable(Identifier ident, org.apache.spark.sql.connector.catalog.TableInfo info) {
    throw readOnly();
  }

  private Table load(Identifier ident, ObjectNode asked) throws NoSuchTableException {
    String table = ident.namespace().length == 0 ? ident.name() : String.join(".", ident.namespace()) + "." + ident.name();
    asked.put("table", table);
    asked.put("query", query());
    Tuple2 found = (Tuple2) ask(asked);
    if (found == null) {
      throw new NoSuchTableException(ident);
    }
    return new LakeTable(name + "." + table, (Dataset) found._1(), read((String) found._2()));
  }

  /** A Dataset with the id of its version, or a text. What went wrong comes as a text that begins with "!". */
  private Object ask(ObjectNode asked) {
    Object answer = tables.apply(asked.toString());
    if (answer instanceof String && ((String) answer).startsWith("!")) {
      throw new IllegalArgumentException(((String) answer).substring(1));
    }
    return answer;
  }

  /**
   * A number that all tables of one query share, so that they are read at one instant: the cache of relations is made anew
   * for each analysis. Outside of an analysis each table has a number of its own.
   */
  private long query() {
    AnalysisContext context = AnalysisContext$.MODULE$.get();
    Object cache = context.relationCache();
    Object[] last = (Object[]) query.get();
    if (context.isDefault() || last == null || ((WeakReference) last[0]).get() != cache) {
      last = new Object[] {new WeakReference(cache), Long.valueOf(QUERIES.incrementAndGet())};
      query.set(last);
    }
    return ((Long) last[1]).longValue();
  }

  private static JsonNode read(String text) {
    try {
      return JSON.readTree(text);
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
  }

  private UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException("the catalog " + name + " is for reading: change tables of the lake by lake.sql(...)");
  }
}

class LakeTable implements SupportsRead {
  private final String name;
  private final Dataset frame;
  private final JsonNode facts;

  LakeTable(String name, Dataset frame, JsonNode facts) {
    this.name = name;
    this.frame = frame;
    this.facts = facts;
  }

  /**
   * Spark keeps the relation of a cached table by its name, and takes it for every later query of this name if the id is the
   * same. So the id is that of the version: what is cached answers for its own version, not for newer ones or another lake.
   */
  public String id() {
    return facts.get("id").asText();
  }

  public String name() {
    return name;
  }

  public StructType schema() {
    StructField[] fields = frame.schema().fields();
    StructField[] commented = new StructField[fields.length];
    for (int i = 0; i < fields.length; i++) {
      JsonNode comment = facts.get("comments").get(fields[i].name());
      commented[i] = comment == null ? fields[i] : fields[i].withComment(comment.asText());
    }
    return new StructType(commented);
  }

  public Map properties() {
    Map found = new HashMap();
    Iterator each = facts.get("properties").properties().iterator();
    while (each.hasNext()) {
      Map.Entry entry = (Map.Entry) each.next();
      found.put(entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    return found;
  }

  public Set capabilities() {
    return Collections.singleton(TableCapability.BATCH_READ);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new LakeScan(name, frame);
  }
}

class LakeScan implements SupportsPushDownRequiredColumns, SupportsPushDownCatalystFilters, V1Scan, SupportsReportStatistics,
    Statistics {
  private final String name;
  private final Dataset whole;
  private Dataset frame;
  private Seq filters = CollectionConverters.asScala(new ArrayList()).toSeq();
  private StructType columns;

  LakeScan(String name, Dataset whole) {
    this.name = name;
    this.whole = whole;
    this.columns = whole.schema();
  }

  /** Spark asks them of the rows again: what matters here is which files are read. */
  public Seq pushFilters(Seq filters) {
    this.filters = filters;
    return filters;
  }

  public Predicate[] pushedFilters() {
    return new Predicate[0];
  }

  /** Whole columns: of structs Spark may want less, and takes more. */
  public void pruneColumns(StructType required) {
    Set wanted = new HashSet();
    for (int i = 0; i < required.length(); i++) {
      wanted.add(required.fields()[i].name());
    }
    List kept = new ArrayList();
    StructField[] all = whole.schema().fields();
    for (int i = 0; i < all.length; i++) {
      if (wanted.contains(all[i].name())) {
        kept.add(all[i]);
      }
    }
    columns = new StructType((StructField[]) kept.toArray(new StructField[0]));
  }

  public Scan build() {
    return this;
  }

  public StructType readSchema() {
    return columns;
  }

  public String description() {
    return "LakeVilla " + name;
  }

  public Statistics estimateStatistics() {
    return this;
  }

  public OptionalLong sizeInBytes() {
    scala.math.BigInt size = rows().queryExecution().optimizedPlan().stats().sizeInBytes();
    return OptionalLong.of(size.isValidLong() ? size.toLong() : Long.MAX_VALUE);
  }

  public OptionalLong numRows() {
    return OptionalLong.empty();
  }

  public BaseRelation toV1TableScan(SQLContext context) {
    return new LakeRows(name, context, columns, rows());
  }

  private synchronized Dataset rows() {
    if (frame == null) {
      LogicalPlan plan = whole.queryExecution().analyzed();
      Seq output = plan.output();
      Iterator each = CollectionConverters.asJava(filters).iterator();
      while (each.hasNext()) {
        plan = new Filter((Expression) ((Expression) each.next()).transform(new Bound(output)), plan);
      }
      List wanted = new ArrayList();
      for (int i = 0; i < columns.length(); i++) {
        wanted.add(Bound.named(output, columns.fields()[i].name()));
      }
      plan = new Project(CollectionConverters.asScala(wanted).toSeq(), plan);
      frame = Dataset$.MODULE$.ofRows((SparkSession) whole.sparkSession(), plan);
    }
    return frame;
  }
}

/** Attributes of a query's filters as those of the DataFrame, by their names. */
class Bound extends scala.runtime.AbstractPartialFunction {
  private final Seq output;

  Bound(Seq output) {
    this.output = output;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return node instanceof AttributeReference ? named(output, ((AttributeReference) node).name()) : otherwise.apply(node);
  }

  static Attribute named(Seq output, String name) {
    Iterator each = CollectionConverters.asJava(output).iterator();
    while (each.hasNext()) {
      Attribute attribute = (Attribute) each.next();
      if (attribute.name().equals(name)) {
        return attribute;
      }
    }
    throw new IllegalStateException("no column " + name);
  }
}

/** The rows as Spark's plans have them, so that none is converted. */
class LakeRows extends BaseRelation implements TableScan {
  private final String name;
  private final SQLContext context;
  private final StructType columns;
  private final Dataset frame;

  LakeRows(String name, SQLContext context, StructType columns, Dataset frame) {
    this.name = name;
    this.context = context;
    this.columns = columns;
    this.frame = frame;
  }

  public SQLContext sqlContext() {
    return context;
  }

  public StructType schema() {
    return columns;
  }

  public boolean needConversion() {
    return false;
  }

  public String toString() {
    return "LakeVilla " + name;
  }

  public RDD buildScan() {
    return frame.queryExecution().toRdd();
  }
}
