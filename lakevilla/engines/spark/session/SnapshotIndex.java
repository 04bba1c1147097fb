import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.function.Function;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The files of a pinned table, as Spark's Parquet source asks for them.
 *
 * Spark hands over the filters of a query, this class writes them down as JSON, and whoever made the index (Python, see
 * fileindex.py) answers with the files that may match. So pruning and the record of what was read are where they are
 * for every engine, and nothing is listed in the store. Compiled in the driver by Janino, which knows no lambdas and
 * little of generics; executors never see the class.
 */
public class SnapshotIndex implements FileIndex {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long BLOCK_BYTES = 128L * 1024 * 1024;

  private final Function lister;
  private final StructType partitionSchema;
  private final long sizeInBytes;
  private final String mark;

  /**
   * The lister takes filters as JSON and gives files as JSON: [{"path", "size", "values"}]. The mark finds the index in a
   * plan; null if nothing looks for it.
   */
  public SnapshotIndex(Function lister, StructType partitionSchema, long sizeInBytes, String mark) {
    this.lister = lister;
    this.partitionSchema = partitionSchema;
    this.sizeInBytes = sizeInBytes;
    this.mark = mark;
  }

  public boolean isMarked(String wanted) {
    return wanted.equals(mark);
  }

  /** The filters of a scan as JSON, as the lister gets them. */
  public static ArrayNode described(Seq partitionFilters, Seq dataFilters) {
    ArrayNode filters = JSON.createArrayNode();
    addAll(filters, partitionFilters);
    addAll(filters, dataFilters);
    return filters;
  }

  public Seq rootPaths() {
    return seq(new ArrayList());
  }

  /** Spark does not ask a partition filter of rows again, so these hold exactly; data filters may be weakened. */
  public Seq listFiles(Seq partitionFilters, Seq dataFilters) {
    ArrayNode filters = described(partitionFilters, dataFilters);
    List bound = bound(partitionFilters);
    List directories = new ArrayList();
    Iterator files = ask(filters).elements();
    while (files.hasNext()) {
      JsonNode file = (JsonNode) files.next();
      InternalRow values = values(field(file, "values"));
      if (holds(bound, values)) {
        long size = field(file, "size").asLong();
        FileStatus status = new FileStatus(size, false, 1, BLOCK_BYTES, 0L, path(file));
        directories.add(PartitionDirectory.apply(values, new FileStatus[] {status}));
      }
    }
    return seq(directories);
  }

  public String[] inputFiles() {
    JsonNode files = ask(JSON.createArrayNode());
    String[] paths = new String[files.size()];
    Iterator each = files.elements();
    for (int i = 0; i < paths.length; i++) {
      paths[i] = path((JsonNode) each.next()).toUri().toString();
    }
    return paths;
  }

  /** A snapshot never changes. */
  public void refresh() {}

  public long sizeInBytes() {
    return sizeInBytes;
  }

  public StructType partitionSchema() {
    return partitionSchema;
  }

  public Option metadataOpsTimeNs() {
    return Option.empty();
  }

  public String toString() {
    return "LakeVilla";
  }

  private JsonNode ask(ArrayNode filters) {
    try {
      return JSON.readTree((String) lister.apply(JSON.writeValueAsString(filters)));
    } catch (java.io.IOException error) {
      throw new IllegalStateException(error);
    }
  }

  private static JsonNode field(JsonNode of, String name) {
    return (JsonNode) of.get(name);
  }

  private static Path path(JsonNode file) {
    return new Path(field(file, "path").asText());
  }

  /** Partition values come as the text that casts to them, bytes in base 64. */
  private InternalRow values(JsonNode texts) {
    Object[] row = new Object[partitionSchema.length()];
    Iterator each = texts.elements();
    for (int i = 0; i < row.length; i++) {
      DataType type = partitionSchema.fields()[i].dataType();
      JsonNode text = (JsonNode) each.next();
      if (text.isNull()) {
        row[i] = null;
      } else if (type instanceof BinaryType) {
        row[i] = Base64.getDecoder().decode(text.asText());
      } else {
        Literal literal = Literal.create(UTF8String.fromString(text.asText()), DataTypes.StringType);
        row[i] = new Cast(literal, type, new Some("UTC"), EvalMode.ANSI()).eval(null);
      }
    }
    return new GenericInternalRow(row);
  }

  /** The filters over a row of partition values; their attributes are known by name. */
  private List bound(Seq filters) {
    List found = new ArrayList();
    Iterator each = CollectionConverters.asJava(filters).iterator();
    while (each.hasNext()) {
      Expression filter = (Expression) each.next();
      List attributes = new ArrayList();
      for (int i = 0; i < partitionSchema.length(); i++) {
        attributes.add(attribute(filter, partitionSchema.fields()[i]));
      }
      package$AttributeSeq row = new package$AttributeSeq(seq(attributes));
      found.add(new InterpretedPredicate((Expression) BindReferences.bindReference(filter, row, false)));
    }
    return found;
  }

  private static Attribute attribute(Expression filter, StructField field) {
    Iterator each = CollectionConverters.asJava(filter.references().toSeq()).iterator();
    while (each.hasNext()) {
      Attribute attribute = (Attribute) each.next();
      if (attribute.name().equals(field.name())) {
        return attribute;
      }
    }
    return new AttributeReference(field.name(), field.dataType(), true, Metadata.empty(),
        NamedExpression$.MODULE$.newExprId(), seq(new ArrayList()));
  }

  private static boolean holds(List filters, InternalRow values) {
    for (int i = 0; i < filters.size(); i++) {
      if (!((InterpretedPredicate) filters.get(i)).eval(values)) {
        return false;
      }
    }
    return true;
  }

  private static Seq seq(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  private static void addAll(ArrayNode to, Seq filters) {
    Iterator each = CollectionConverters.asJava(filters).iterator();
    while (each.hasNext()) {
      to.add(described((Expression) each.next()));
    }
  }

  /** An expression that the other side knows, or null for one that may be anything. */
  private static JsonNode described(Expression filter) {
    if (filter instanceof And) {
      return node("and", described(left(filter)), described(right(filter)));
    }
    if (filter instanceof Or) {
      return node("or", described(left(filter)), described(right(filter)));
    }
    if (filter instanceof IsNull) {
      return node("null", column(child(filter)), null);
    }
    if (filter instanceof IsNotNull) {
      return node("not null", column(child(filter)), null);
    }
    if (filter instanceof StartsWith) {
      return node("prefix", column(left(filter)), literal(right(filter)));
    }
    if (filter instanceof In) {
      return node("in", column(((In) filter).value()), literals(((In) filter).list()));
    }
    if (filter instanceof InSet) {
      return node("in", column(child(filter)), values((InSet) filter));
    }
    if (filter instanceof BinaryComparison) {
      return compared(filter);
    }
    if (filter instanceof Not) {
      return negated(child(filter));
    }
    return isFlag(filter) ? node("=", column(filter), flag(true)) : null;
  }

  /** What is false. Spark has turned most negations into their opposites before. */
  private static JsonNode negated(Expression filter) {
    if (filter instanceof EqualTo) {
      return node("<>", compared(filter));
    }
    if (filter instanceof EqualNullSafe) {
      return node("or", node("<>", compared(filter)), node("null", compared(filter)));
    }
    if (filter instanceof In) {
      return node("not in", column(((In) filter).value()), literals(((In) filter).list()));
    }
    return isFlag(filter) ? node("=", column(filter), flag(false)) : null;
  }

  private static boolean isFlag(Expression filter) {
    return filter.dataType() instanceof BooleanType && column(filter) != null;
  }

  private static JsonNode flag(boolean wanted) {
    return value(Boolean.valueOf(wanted), DataTypes.BooleanType);
  }

  /** Another operator between the sides of a comparison. */
  private static JsonNode node(String operator, JsonNode compared) {
    return node(operator, field(compared, "left"), field(compared, "right"));
  }

  private static JsonNode compared(Expression filter) {
    String operator = filter instanceof EqualTo || filter instanceof EqualNullSafe ? "="
        : filter instanceof LessThan ? "<"
        : filter instanceof LessThanOrEqual ? "<="
        : filter instanceof GreaterThan ? ">"
        : filter instanceof GreaterThanOrEqual ? ">=" : null;
    if (operator == null) {
      return null;
    }
    if (left(filter) instanceof Literal) {
      String turned = operator.startsWith("<") ? ">" + operator.substring(1)
          : operator.startsWith(">") ? "<" + operator.substring(1) : operator;
      return node(turned, column(right(filter)), literal(left(filter)));
    }
    return node(operator, column(left(filter)), literal(right(filter)));
  }

  private static Expression left(Expression filter) {
    return (Expression) ((BinaryExpression) filter).left();
  }

  private static Expression right(Expression filter) {
    return (Expression) ((BinaryExpression) filter).right();
  }

  private static Expression child(Expression filter) {
    return (Expression) ((UnaryExpression) filter).child();
  }

  private static JsonNode node(String operator, JsonNode left, JsonNode right) {
    ObjectNode node = JSON.createObjectNode();
    node.put("is", operator);
    node.set("left", left);
    node.set("right", right);
    return node;
  }

  private static JsonNode column(Expression expression) {
    if (expression instanceof AttributeReference) {
      return JSON.createArrayNode().add(((AttributeReference) expression).name());
    }
    if (expression instanceof GetStructField) {
      JsonNode above = column(child(expression));
      StructType members = (StructType) child(expression).dataType();
      String name = members.fields()[((GetStructField) expression).ordinal()].name();
      return above == null ? null : ((ArrayNode) above).add(name);
    }
    return null;
  }

  /** Literals as Spark keeps them: days for dates, microseconds for timestamps. */
  private static JsonNode literal(Expression expression) {
    if (!(expression instanceof Literal)) {
      return null;
    }
    Literal literal = (Literal) expression;
    return literal.value() == null ? null : value(literal.value(), literal.dataType());
  }

  /** Null for a text that is not UTF-8: what Java makes of it is another text. */
  private static JsonNode value(Object value, DataType type) {
    String text = value.toString();
    if (value instanceof UTF8String && !value.equals(UTF8String.fromString(text))) {
      return null;
    }
    return JSON.createArrayNode().add(type.typeName()).add(text);
  }

  private static JsonNode literals(Seq expressions) {
    ArrayNode found = JSON.createArrayNode();
    Iterator each = CollectionConverters.asJava(expressions).iterator();
    while (each.hasNext()) {
      JsonNode one = literal((Expression) each.next());
      if (one == null) {
        return null;
      }
      found.add(one);
    }
    return found;
  }

  private static JsonNode values(InSet set) {
    ArrayNode found = JSON.createArrayNode();
    Iterator each = CollectionConverters.asJava(set.hset()).iterator();
    while (each.hasNext()) {
      Object one = each.next();
      // NULL in the list makes the filter null where it is not true: it matches no row.
      if (one != null) {
        JsonNode described = value(one, child(set).dataType());
        if (described == null) {
          return null;
        }
        found.add(described);
      }
    }
    return found;
  }
}
