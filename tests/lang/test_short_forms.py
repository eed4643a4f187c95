"""Short forms that the tables of examples do not show: buckets, templates of TO_CHAR, parts of a URL."""

from __future__ import annotations

import pytest
from examples import bound

from cq.errors import CqError
from cq.reference.evaluate import evaluate

URL = "'https://u:p@ex.com:80/a/b.html?k=1&q=x%20y&q=2#top?z=3'"


@pytest.mark.parametrize(
    ("short", "value"),
    [
        ("time_bucket(INTERVAL '5' MINUTE, TIMESTAMP '2024-01-31 10:03:59')", "TIMESTAMP '2024-01-31 10:00:00'"),
        ("time_bucket(INTERVAL '7' DAY, DATE '2024-01-31')", "TIMESTAMP '2024-01-29 00:00:00'"),
        ("time_bucket(INTERVAL '7' DAY, DATE '1969-12-31')", "TIMESTAMP '1969-12-29 00:00:00'"),
        (
            "date_bin(INTERVAL '15' MINUTE, TIMESTAMP '2024-01-31 10:03:00', TIMESTAMP '2030-01-01 00:05:00')",
            "TIMESTAMP '2024-01-31 09:50:00'",
        ),
        ("add_months(DATE '2024-01-31', 1)", "DATE '2024-02-29'"),
        ("add_months(TIMESTAMP '2024-03-31 10:00:00', -1)", "TIMESTAMP '2024-02-29 10:00:00'"),
        ("to_timestamp(1700000000)", "TIMESTAMP '2023-11-14 22:13:20'"),
        ("to_timestamp_ltz(1700000000000, 3)", "to_timestamp_ltz(1700000000, 0)"),
        ("to_char(TIMESTAMP '2024-01-31 13:04:05.6', 'Dy, FMDD Mon YYYY \"at\" HH12:MI:SS.MS PM')",
         "'Wed, 31 Jan 2024 at 01:04:05.600 PM'"),
        ("to_char(DATE '2024-01-31', 'yyyy-MM-dd')", "'2024-01-31'"),
        ("to_date('31/01/2024', 'DD/MM/YYYY')", "DATE '2024-01-31'"),
        (f"parse_url({URL}, 'PROTOCOL')", "'https'"),
        (f"parse_url({URL}, 'HOST')", "'ex.com'"),
        (f"parse_url({URL}, 'AUTHORITY')", "'u:p@ex.com:80'"),
        (f"parse_url({URL}, 'USERINFO')", "'u:p'"),
        (f"parse_url({URL}, 'PATH')", "'/a/b.html'"),
        (f"parse_url({URL}, 'FILE')", "'/a/b.html?k=1&q=x%20y&q=2'"),
        (f"parse_url({URL}, 'QUERY')", "'k=1&q=x%20y&q=2'"),
        (f"parse_url({URL}, 'REF')", "'top?z=3'"),
        (f"parse_url({URL}, 'QUERY', 'q')", "'x%20y'"),
        (f"parse_url({URL}, 'QUERY', 'z')", "CAST(NULL AS VARCHAR)"),
        ("parse_url('no url', 'HOST')", "CAST(NULL AS VARCHAR)"),
        # one of several
        ("decode(2, 1, 'one', 2, 'two', 'other')", "'two'"),
        ("decode(3, 1, 'one', 2, 'two', 'other')", "'other'"),
        ("decode(3, 1, 'one')", "CAST(NULL AS VARCHAR)"),
        ("decode(NULL, 1, 'one', NULL, 'none')", "'none'"),
        ("elt(2, 'a', 'b')", "'b'"),
        ("choose(3, 'a', 'b')", "CAST(NULL AS VARCHAR)"),
        ("elt(NULL, 1, 2.5)", "CAST(NULL AS DECIMAL(2, 1))"),
        ("field('b', 'a', 'b', 'b')", "2"),
        ("field('c', 'a', 'b')", "0"),
        ("field(NULL, 'a', NULL)", "0"),
        ("equal_null(NULL, NULL)", "TRUE"),
        ("equal_null(1, NULL)", "FALSE"),
        ("typeof(1.50)", "'DECIMAL(3,2)'"),
        ("typeof(ARRAY['a'])", "'VARCHAR ARRAY'"),
        # operators
        ("add(1, 2)", "3"),
        ("subtract(TIMESTAMP '2024-01-02 00:00:00', TIMESTAMP '2024-01-01 00:00:00')", "INTERVAL '1' DAY"),
        ("multiply(1.5, 2.5)", "1.5 * 2.5"),
        ("divide(7, 2)", "3"),
        ("fmod(-7.5e0, 2)", "-1.5e0"),
        ("negative(3)", "-3"),
        ("square(1.5)", "1.5 * 1.5"),
        ("safe_divide(1, 4)", "0.25e0"),
        ("safe_divide(1, 0)", "CAST(NULL AS DOUBLE)"),
        ("getbit(5, 2)", "CAST(1 AS INTEGER)"),
        ("try_add(2147483647, 1)", "CAST(NULL AS INTEGER)"),
        ("try_add(9223372036854775807, -1)", "9223372036854775806"),
        ("try_subtract(-9223372036854775807, 2)", "CAST(NULL AS BIGINT)"),
        ("try_multiply(-9223372036854775807, -9223372036854775807)", "CAST(NULL AS BIGINT)"),
        ("try_multiply(3, 4)", "12"),
        ("try_add(1.5e0, 1)", "2.5e0"),
        ("yearweek(DATE '2024-12-30')", "202501"),
        ("EXTRACT(CENTURY FROM DATE '2024-12-30')", "21"),
        # JSON
        ("to_json('a\"b')", "'\"a\\\"b\"'"),
        ("to_json(1.50)", "'1.50'"),
        ("to_json(DATE '2024-01-31')", "'\"2024-01-31\"'"),
        ("to_json(ARRAY[1, NULL])", "'[1,null]'"),
        ("to_json(CAST(NULL AS BIGINT))", "CAST(NULL AS VARCHAR)"),
        ("json_array(1, 'x', NULL, TRUE, CAST('NaN' AS DOUBLE), 1e20)", "'[1,\"x\",null,true,null,1.0E20]'"),
        ("json_array()", "'[]'"),
        ("json_object('a', 1, 'b', 'x')", "'{\"a\":1,\"b\":\"x\"}'"),
        ("json_object('a', CAST(NULL AS BIGINT))", "'{\"a\":null}'"),
        ("json_value(json_object('k', 'é\"/'), '$.k')", "'é\"/'"),
        # texts
        ("insert('abcdef', 2, 3, 'xx')", "'axxef'"),
        ("stuff('abcdef', 2, 0, 'xx')", "'axxbcdef'"),
        ("find_in_set('c', 'a,b,c')", "CAST(3 AS BIGINT)"),
        ("find_in_set('', 'a,b,c')", "CAST(0 AS BIGINT)"),
        # arrays
        ("array_append([1, NULL], 2)", "ARRAY[1, NULL, 2]"),
        ("array_append([1], 2.5)", "ARRAY[1] || ARRAY[2.5]"),
        ("list_append(CAST(NULL AS BIGINT[]), 1)", "CAST(NULL AS BIGINT[])"),
        ("array_prepend(['b'], 'a')", "ARRAY['a', 'b']"),
        ("list_prepend('a', ['b'])", "ARRAY['a', 'b']"),
        ("list_first([1, 2])", "1"),
        ("list_last([1, NULL])", "CAST(NULL AS INTEGER)"),
        ("list_reverse_sort([1, NULL, 3, 2])", "ARRAY[3, 2, 1, NULL]"),
        ("array_union([2, 1, 2, NULL], [NULL, 3, 1])", "ARRAY[2, 1, NULL, 3]"),
        ("list_unique([2, 1, 2, NULL])", "CAST(2 AS BIGINT)"),
        ("list_avg([1, NULL, 2])", "1.5e0"),
        ("list_avg(CAST([] AS BIGINT[]))", "CAST(NULL AS DOUBLE)"),
        ("list_aggregate([1, NULL, 2], 'SUM')", "CAST(3 AS BIGINT)"),
        ("list_aggregate([1, NULL, 2], 'avg')", "1.5e0"),
        ("array_aggr(['b', 'a'], 'max')", "'b'"),
        ("generate_series(1, 5, 2)", "sequence(1, 5, 2)"),
        ("generate_series(5, 1)", "CAST([] AS BIGINT[])"),
        ("range(3)", "sequence(0, 2)"),
        ("range(3, 0, -1)", "sequence(3, 1)"),
        ("range(0, 10, 5)", "sequence(0, 5, 5)"),
        ("range(2, 2)", "CAST([] AS BIGINT[])"),
        # lengths, days and times of day
        ("to_days(2)", "INTERVAL '2' DAY"),
        ("to_seconds(-90)", "INTERVAL '-90' SECOND"),
        ("to_years(2)", "INTERVAL '24' MONTH"),
        ("make_time(13, 4, 5.25)", "TIME '13:04:05.25'"),
        ("make_time(0, 59, 60)", "TIME '01:00:00'"),
        ("next_day(DATE '2024-01-31', 'Mon')", "DATE '2024-02-05'"),
        ("next_day(DATE '2024-01-31', 'wednesday')", "DATE '2024-02-07'"),
        ("next_day(TIMESTAMP '1969-12-31 23:00:00', 'TH')", "DATE '1970-01-01'"),
        ("epoch_ns(TIMESTAMP '1970-01-01 00:00:00.000002')", "CAST(2000 AS BIGINT)"),
        # formats
        ("format_string('%d of %s: %%', 3, 'x')", "'3 of x: %'"),
        ("printf('[%5d|%-5d|%05d|%+d]', 42, 42, -42, 42)", "'[   42|42   |-0042|+42]'"),
        ("printf('%d %2$s %1$d', 1, 'b')", "'1 b 1'"),
        ("printf('%,d %,d %,d', 123456, -1234567, 12)", "'123,456 -1,234,567 12'"),
        ("printf('%.2f %f %.0f', 2.345, 1e0, 2.5e0)", "'2.35 1.000000 3'"),
        ("printf('%08.2f|%,.1f', -3.14159e0, 1234567.25)", "'-0003.14|1,234,567.3'"),
        ("printf('%x %X %04x', 255, 255, 10)", "'ff FF 000a'"),
        ("printf('%.2s|%5s|%-5s|%c', 'abc', 'ä', 'b', 65)", "'ab|    ä|b    |A'"),
        ("printf('no field')", "'no field'"),
        ("printf('%d', CAST(NULL AS BIGINT))", "CAST(NULL AS VARCHAR)"),
        ("format('{} and {}', 1, 'x')", "'1 and x'"),
        ("format('{1} {0} {{}}', 1, 'x')", "'x 1 {}'"),
        ("format('{:5d}|{:<5d}|{:05d}|{:+d}|{:,}', 42, 42, -42, 42, 1234)", "'   42|42   |-0042|+42|1,234'"),
        ("format('{:.2f}|{:5}|{:>5}|{:5}', 2.5e0, 'a', 'b', 7)", "'2.50|a    |    b|    7'"),
        ("format('%s!', 'x')", "'x!'"),
        ("format(1234567.891, 2)", "'1,234,567.89'"),
        ("format_number(1234567.5e0, 0)", "'1,234,568'"),
        ("format_number(-1234, 2)", "'-1,234.00'"),
    ],
)  # fmt: skip
def test_a_short_form_is_what_it_stands_for(short: str, value: str) -> None:
    got, wanted = bound(short, value)
    assert (evaluate(got), got.type) == (evaluate(wanted), wanted.type)


@pytest.mark.parametrize(
    ("call", "message", "way_out"),
    [
        ("time_bucket(INTERVAL '1' MONTH, TIMESTAMP '2024-01-31 10:03:00')", "constant width of days or less",
         "DATE_TRUNC('month', TIMESTAMP '2024-01-31 10:03:00')"),
        ("to_char(DATE '2024-01-31', 'yyyy-mm-dd')", "mm is the minute", "to_char(DATE '2024-01-31', 'YYYY-MM-DD')"),
        ("to_timestamp_ltz(1, 6)", "counts seconds, 0, or milliseconds, 3", "to_timestamp_ltz(1, 3)"),
        ("parse_url('x', 'DOMAIN')", "takes the name of a part", "parse_url('x', 'HOST')"),
        ("parse_url('x', 'HOST', 'a')", "takes the name of a part", "parse_url('x', 'QUERY', 'a')"),
        ("decode('a', 'utf-8')", "takes a value, then pairs", "decode(1, 1, 'one', 2, 'two', 'other')"),
        ("list_aggregate([1], 'skewness')", "takes the name of an aggregate", "list_aggregate([1], 'sum')"),
        ("try_add(1.5, 1)", "TRY_ADD is of integers and DOUBLEs", "CAST(1.5 AS DOUBLE) + 1"),
        ("json_object('a')", "takes a name and a value for each field", "json_object('a', 1, 'b', 2)"),
        ("to_json(ARRAY['a'])", "TO_JSON does not take VARCHAR ARRAY", "ARRAY_TO_STRING(ARRAY['a'], ',')"),
        ("elt(1)", "ELT needs values to choose from", "elt(1, 'first', 'second')"),
        ("field(1)", "FIELD needs values to choose from", "field('x', 'first', 'second')"),
        ("next_day(DATE '2024-01-31', 'Moon')", "the name of a weekday", "next_day(DATE '2024-01-31', 'Mon')"),
        ("printf('%q', 1)", "`%q` is not a field of PRINTF", "printf('%d: %s', 1, 'x')"),
        ("printf('%d', 1.5)", "a field with d takes an integer, not DECIMAL", "printf('%.2f', 1.5)"),
        ("printf('%d %d', 1)", "the format has a field 2, but there are 1 values", "printf('%d: %s', 1, 'x')"),
        ("printf('%d', 1, 2)", "2 values are given, but the format shows 1", "printf('%d: %s', 1, 'x')"),
        ("printf('%5000d', 1)", "at most 1000 characters", "printf('%500d', 1)"),
        ("printf(STRING(x), 1)", "PRINTF needs a constant format", "CONCAT(1, ': ', 'x')"),
        ("format('{', 1)", "`{` is not a field of FORMAT", "format('{{ {:5d}', 1)"),
        ("format(1.5, -1)", "takes the number of digits", "format(1.5, 2)"),
        ("format(DATE '2024-01-31', 'yyyy')", "FORMAT needs a constant format",
         "DATE_FORMAT(DATE '2024-01-31', 'yyyy-MM-dd')"),
    ],
)  # fmt: skip
def test_what_is_refused_names_a_way_out_that_works(call: str, message: str, way_out: str) -> None:
    with pytest.raises(CqError, match=message):
        bound(call)
    bound(way_out)
