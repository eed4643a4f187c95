"""How many random queries have each operator in their plan, and each construct in their text:
`python -m tests.random_coverage` prints the table."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "support"))

from random_functions import FUNCTIONS, prepared
from random_queries import random_query
from slt_coverage import cases_of_operators

FIRST_SEED = 70_000_000
CONSTRUCTS = {
    "TUMBLE": r"TUMBLE\(",
    "HOP": r"HOP\(",
    "CUMULATE": r"CUMULATE\(",
    "SESSION": r"SESSION\(",
    "windows of a number of rows": r"ROWS (3|2, ROWS 5)\)",
    "windows of months": r"(TUMBLE|HOP|CUMULATE)\([^()]*\([^()]*\)[^()]*MONTH",
    "groups of a window by sets": r"window_end, (ROLLUP|CUBE|GROUPING SETS)",
    "window join, inner": r"\) AS l JOIN .*l\.window_end = r\.window_end",
    "window join, outer": r"(LEFT|RIGHT|FULL) JOIN .*l\.window_end = r\.window_end",
    "window join, semi or anti": r"(EXISTS|SEMI|ANTI).*l\.window_end = r\.window_end",
    "window join, USING": r"USING \(window_start, window_end",
    "sets of windows": r"AS window_end.* (EXCEPT|INTERSECT|UNION)( ALL)? SELECT window_start",
    "interval join": r"r\.\S+ (BETWEEN|>=|>) l\.\S+ [+-] INTERVAL",
    "interval join, semi or anti": r"(EXISTS|SEMI|ANTI) .*r\.\S+ (BETWEEN|>=|>) l\.\S+ [+-] INTERVAL",
    "ASOF join": r"ASOF",
    "ASOF join with a tolerance": r"ASOF.* - .* <= INTERVAL",
    "ASOF join, USING": r"ASOF.*USING \(",
    "FOR SYSTEM_TIME AS OF": r"FOR SYSTEM_TIME AS OF",
    "join, LEFT": r"LEFT JOIN",
    "join, RIGHT": r"RIGHT JOIN",
    "join, FULL": r"FULL JOIN",
    "join, USING": r"JOIN .* USING",
    "join, NATURAL": r"NATURAL",
    "CROSS JOIN": r"CROSS JOIN \S+ AS r",
    "UNNEST of SPLIT": r"UNNEST\(SPLIT",
    "UNNEST of a column": r"UNNEST\(s\.",
    "LATERAL": r"LATERAL",
    "IN (SELECT)": r" IN \(SELECT",
    "EXISTS": r"EXISTS",
    "EXISTS of a derived table": r"EXISTS \(SELECT 1 FROM \(",
    "a function in Python": rf"\b({'|'.join(f.name for f in FUNCTIONS)})\(",
    "fields of a row": r"\bm\.\S",
    "rows IN (SELECT)": r"\(o\.[^()]*, [^()]*\) IN \(SELECT",
    "ANY, ALL": r"[<>]=? (ANY|ALL) \(",
    "scalar sub-query": r"\(SELECT [A-Z_]+\(.* FROM \S+ AS i",
    "sub-query with LIMIT 1": r"LIMIT 1\)",
    "OVER by time, a frame": r"ORDER BY (ts|window_\S+) (ROWS|RANGE)",
    "OVER by any order": r"OVER \(.*ORDER BY .* (DESC|ASC|NULLS)",
    "frame: RANGE with a distance": r"RANGE BETWEEN (\d+|INTERVAL \S+ \S+) (PRECEDING|FOLLOWING)",
    "frame: GROUPS": r"GROUPS (BETWEEN|1)",
    "frame: FOLLOWING": r"FOLLOWING",
    "frame: EXCLUDE": r"EXCLUDE (CURRENT|GROUP|TIES)",
    "LAG, LEAD": r"(LAG|LEAD)\(",
    "FIRST_VALUE, LAST_VALUE": r"(FIRST|LAST)_VALUE\(",
    "NTH_VALUE": r"NTH_VALUE\(",
    "IGNORE NULLS": r"IGNORE NULLS",
    "LAG, LEAD with IGNORE NULLS": r"(LAG|LEAD)\([^;]*? IGNORE NULLS\)",
    "NTILE, PERCENT_RANK, CUME_DIST": r"NTILE|PERCENT_RANK|CUME_DIST",
    "QUALIFY": r"QUALIFY",
    "WINDOW": r"WINDOW w AS",
    "ORDER BY": r"ORDER BY \S+[^()]*;",
    "LIMIT, OFFSET, FETCH": r"LIMIT|OFFSET|FETCH",
    "DISTINCT": r"SELECT DISTINCT (?!ON)",
    "DISTINCT ON": r"DISTINCT ON",
    "DISTINCT in an aggregate": r"\(DISTINCT",
    "FILTER": r"FILTER \(",
    "HAVING": r"HAVING",
    "ORDER BY in an aggregate": r"(ARRAY_AGG|STRING_AGG|FIRST|LAST)\([^;]*? ORDER BY",
    "UNION ALL": r"UNION ALL",
    "INTERSECT ALL": r"INTERSECT ALL",
    "EXCEPT ALL": r"EXCEPT ALL",
    "GROUPING SETS": r"GROUPING SETS",
    "ROLLUP": r"ROLLUP",
    "CUBE": r"CUBE",
    "GROUP BY ALL": r"GROUP BY ALL",
    "VALUES": r"VALUES",
    "WITH": r"\(WITH",
    "EXCLUDE, REPLACE": r"\* (EXCLUDE|REPLACE)",
    "late rows as a stream": r"FROM s\d_late",
    "arrays": r"ARRAY\[|SPLIT\(",
    "ARRAY_AGG": r"ARRAY_AGG",
    "regular expressions": r"regexp_",
    "JSON paths": r"(json_value|get_json_object)\(",
    "DECIMAL(38)": r"DECIMAL\(38",
    "TIME": r"TIME '|AS TIME\)",
    "TIMESTAMP_LTZ": r"TIMESTAMP_LTZ",
}


def queries_of_constructs(seeds: Iterable[int]) -> tuple[Counter[str], Counter[str]]:
    """In how many of the queries of these seeds each construct is, and each operator."""
    patterns = {name: re.compile(pattern) for name, pattern in CONSTRUCTS.items()}
    constructs, plans = Counter(dict.fromkeys(CONSTRUCTS, 0)), []
    for seed in seeds:
        query = random_query(seed)
        views = "".join(view.text() for view in query.views)
        constructs.update(name for name, pattern in patterns.items() if pattern.search(views))
        plans.append(prepared(query.text()).compiled.plan)
    return constructs, cases_of_operators(plans)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.random_coverage")
    parser.add_argument("--cases", type=int, default=2000)
    options = parser.parse_args()
    constructs, operators = queries_of_constructs(range(FIRST_SEED, FIRST_SEED + options.cases))
    print(f"{options.cases} random queries")
    for counts in (operators, constructs):
        print()
        for name, count in counts.most_common():
            print(f"{count:5} {name}")


if __name__ == "__main__":
    main()
