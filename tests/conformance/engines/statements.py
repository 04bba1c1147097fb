"""All statements of the suite, by topic."""

from tests.conformance.engines import casts, counts, groups, moments, nesting, queries, scalars, texts

QUERIES: dict[str, list[str]] = {
    "literals": scalars.LITERALS,
    "arithmetic": scalars.ARITHMETIC,
    "comparisons": scalars.COMPARISONS,
    "conditions": scalars.CONDITIONS,
    "casts": casts.CASTS,
    "texts": texts.TEXTS,
    "numbers": counts.NUMBERS,
    "moments": moments.MOMENTS,
    "nested": nesting.NESTED,
    "aggregates": groups.AGGREGATES,
    "windows": groups.WINDOWS,
    "filters": queries.FILTERS,
    "ordering": queries.ORDERING,
    "joins": queries.JOINS,
    "subqueries": queries.SUBQUERIES,
    "common-tables": queries.COMMON_TABLES,
    "set-operations": queries.SET_OPERATIONS,
    "sources": queries.SOURCES,
    "versions": queries.VERSIONS,
}
