# ruff: noqa: E501 - statements are easier to read on one line
"""Functions of numbers."""

from tests.conformance.engines.statements.written import each, values

NUMBERS = [
    *values(
        "abs(-5), abs(-2.5), abs(-0e0), abs(-7L), abs(CAST(-1 AS TINYINT)), abs(NULL), ceil(2.1), ceil(-2.1), ceil(2.1e0), floor(-2.1), floor(2.9e0), ceiling(5), floor(5L)",
        "round(2.5), round(-2.5), round(2.5e0), round(3.5e0), round(2.345, 2), round(-2.345, 2), round(1.005e0, 2), round(5, -1), round(15, -1), round(25L, -1), round(2.5, 5), round(12.5, 0)",
        "round(CAST(2.5 AS FLOAT)), round(CAST(0.125 AS FLOAT), 2), round(0.285e0, 2), round(1e20, 2), round(-0.4e0), round(0.5e0), round(-0.5e0)",
        "trunc(2.7)",
        "sqrt(2), sqrt(-1), sqrt(0)",
        "power(2, 10), pow(0, 0), power(-8, 1), sign(-3), sign(0), signum(2.5), sign(-0e0), sign(CAST('NaN' AS DOUBLE))",
        "gcd(4, 6), greatest(1, 2)",
        "mod(-7, 3), mod(7.5, 2), pmod(-7, 3), try_divide(7, 2), try_divide(7, 0)",
        "isnan(1), nanvl(1, 2), nanvl(CAST('NaN' AS FLOAT), CAST(1 AS FLOAT))",
        "abs('5')",
        "abs('x')",
        "abs(true)",
        "sqrt('4')",
        "abs(-128Y)",
        "abs(-2147483648)",
        "ceil('2.5')",
        "round(2147483647, -1)",
        "ceil(1e30)",
        "floor(CAST('NaN' AS DOUBLE))",
        "sqrt(X'01')",
        "sqrt(CAST('Infinity' AS DOUBLE))",
    ),
    *each(
        "numbers",
        "abs(l), abs(x), abs(f), abs(d), abs(e), -d, sign(i), sign(x), signum(d)",
        "ceil(x), floor(x), ceil(f), floor(f), ceil(d), floor(d), ceil(e), floor(e), ceil(i), floor(l)",
        "round(x), round(x, 1), round(x, 3), round(f), round(f, 1), round(d), round(d, 1), round(d, 3), round(e, 2), round(i), round(l, 2)",
        "round(i, -1)",
        "round(l, -2)",
        "sqrt(abs(i)), sqrt(x), sqrt(d)",
        "mod(i, 5), mod(l, -5), mod(d, 1.5), isnan(x), nanvl(x, 0)",
        "greatest(i, l, x), least(i, l, d), greatest(d, e), least(f, x)",
        "coalesce(i, x), coalesce(d, l), coalesce(d, e), coalesce(f, i), nullif(i, l), nullif(x, d)",
        "CASE WHEN i > 0 THEN d ELSE e END, CASE WHEN i > 0 THEN i ELSE l END, if(i > 0, x, d), if(i > 0, f, i), if(i > 0, f, x), if(i > 0, d, i)",
        "i = l, x = f, d = x, d = e, l > x, f > 0.1, x > 0.1, i IN (1, 7, 2147483648), d IN (2.5, 1), x BETWEEN d AND l",
    ),
    *each(
        "people",
        "abs(x), sqrt(x), sign(x), round(x), round(x, 2), abs(f), round(f)",
        "ceil(x)",
        "abs(tiny)",
        "abs(small), abs(d)",
    ),
]
