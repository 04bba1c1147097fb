import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.io.WritableComparator;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The condition for rows that are not among the deleted rows of their file, as an expression of Spark.
 *
 * It is asked of every row of such a file. SQL knows no function that looks at one bit of a binary value without making
 * another value, so a static method of Hadoop, which is wherever Spark is, reads it in the generated code.
 */
public class LivingRows {
  /** Bits lie in numbers of two bytes, the first bit of each the lowest. No byte means that no row is deleted. */
  private static final int BITS = 4;

  /** The columns of the plan of these names: the deleted rows as bits, null for none, and the row's position. */
  public static Expression condition(LogicalPlan plan, String deleted, String row) {
    Expression bits = column(plan, deleted);
    Expression position = column(plan, row);
    Expression start = new BitwiseAnd(new ShiftRight(position, number(BITS - 1)), number(-2L));
    Expression within = new And(new IsNotNull(bits),
        new LessThan(start, cast(new OctetLength(bits), DataTypes.LongType)));
    Expression word = new StaticInvoke(WritableComparator.class, DataTypes.IntegerType, "readUnsignedShort",
        CollectionConverters.asScala(Arrays.asList(new Expression[] {bits, cast(start, DataTypes.IntegerType)})).toSeq(),
        CollectionConverters.asScala(Arrays.asList(new Object[0])).toSeq(), true, false, true, Option.empty());
    Expression shift = cast(new BitwiseAnd(position, number((1L << BITS) - 1)), DataTypes.IntegerType);
    Expression bit = new BitwiseAnd(new ShiftRight(word, shift), number(1));
    // Only where a file has deleted rows up to this one is the bit looked at.
    return new Not(new If(within, new EqualTo(bit, number(1)), Literal.create(Boolean.FALSE, DataTypes.BooleanType)));
  }

  private static Expression column(LogicalPlan plan, String name) {
    Iterator each = CollectionConverters.asJava(plan.output()).iterator();
    while (each.hasNext()) {
      Attribute found = (Attribute) each.next();
      if (found.name().equals(name)) {
        return found;
      }
    }
    throw new IllegalStateException("no column " + name);
  }

  private static Expression cast(Expression value, org.apache.spark.sql.types.DataType type) {
    return new Cast(value, type, Option.empty(), EvalMode.LEGACY());
  }

  private static Expression number(int value) {
    return Literal.create(Integer.valueOf(value), DataTypes.IntegerType);
  }

  private static Expression number(long value) {
    return Literal.create(Long.valueOf(value), DataTypes.LongType);
  }
}
