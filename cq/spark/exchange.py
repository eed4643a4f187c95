"""Arrow tables into Spark and out again, with every SQL type kept.

By default PySpark reads an Arrow timestamp without a zone as an instant in the session's zone; so every table is passed
with an explicit schema.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cq.errors import Diagnostic, EngineError
from cq.spark.session import private_directory, spark_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

FILE_ROWS: Final = 20_000  # in, one query, out: equal here; at 100,000 a file takes half the time, rows fill the heap
ROW_GROUP_ROWS: Final = 262_144  # Spark splits a file between row groups: 1 M rows make 4 tasks


def to_spark(session: SparkSession, table: pa.Table, name: str) -> DataFrame:
    """`table` as a temp view `name`, types kept, every column nullable; the rows have no order there.

    Names of columns must be unique. Large tables go through a Parquet file that ends with the session.
    """
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name), f"not a plain view name: {name!r}"
    _demand_unique(table.column_names, f"the table for view {name}")
    schema = spark_schema(table.schema)
    # times are cut to microseconds, dictionaries become strings; one chunk: Spark drops what follows an empty one
    plain = table.cast(arrow_schema(schema), safe=False).combine_chunks()
    directory = private_directory()
    with spark_errors():
        if directory is None or plain.num_rows < FILE_ROWS:
            # PySpark cannot convert arrays without rows
            frame = session.createDataFrame(plain if plain.num_rows else [], schema=schema)
        else:
            import pyarrow.parquet as pq

            path = directory / f"{name}-{uuid.uuid4().hex}.parquet"  # a new one each time: earlier frames are lazy
            pq.write_table(plain, path, row_group_size=ROW_GROUP_ROWS, compression="none")
            frame = session.read.schema(schema).parquet(str(path))
        frame.createOrReplaceTempView(name)
    return frame


def forget(session: SparkSession, name: str) -> None:
    """Drop what `to_spark` registered as `name`, with its file; frames made from it must have been computed."""
    with spark_errors():
        session.catalog.dropTempView(name)
    directory = private_directory()
    for path in directory.glob(f"{name}-*.parquet") if directory is not None else ():
        path.unlink(missing_ok=True)


def query(session: SparkSession, text: str, constants: Mapping[str, object] | None = None) -> pa.Table:
    """The rows of a SQL text. constants: values for its `:names`; they never become text."""
    with spark_errors():
        return from_spark(session.sql(text, args=dict(constants or {})))


def from_spark(frame: DataFrame) -> pa.Table:
    """The rows of `frame` (this is where Spark computes them): TIMESTAMP_NTZ as timestamp[us], everything nullable."""
    _demand_unique(frame.columns, "the result of Spark")
    with spark_errors():
        return frame.toArrow().cast(arrow_schema(frame.schema))


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark types of Arrow columns, all nullable."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(f.name, _spark_type(f.type, f.name), True) for f in schema])


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow types of Spark columns, all nullable."""
    import pyarrow as pa

    return pa.schema([pa.field(f.name, _arrow_type(f.dataType, f.name)) for f in schema.fields])


def _spark_type(kind: pa.DataType, column: str) -> DataType:
    import pyarrow.types as is_a
    from pyspark.sql import types

    plain = {
        "bool": types.BooleanType,
        "int8": types.ByteType,
        "int16": types.ShortType,
        "int32": types.IntegerType,
        "int64": types.LongType,
        "float": types.FloatType,
        "double": types.DoubleType,
        "string": types.StringType,
        "large_string": types.StringType,
        "string_view": types.StringType,
        "binary": types.BinaryType,
        "large_binary": types.BinaryType,
        "date32[day]": types.DateType,
        "null": types.NullType,
    }
    if str(kind) in plain:
        return plain[str(kind)]()
    if is_a.is_timestamp(kind):
        return types.TimestampNTZType() if kind.tz is None else types.TimestampType()
    if is_a.is_decimal(kind):
        return types.DecimalType(kind.precision, kind.scale)
    if is_a.is_dictionary(kind):
        return _spark_type(kind.value_type, column)
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        return types.ArrayType(_spark_type(kind.value_type, column), True)
    raise _no_type(column, str(kind))


def _arrow_type(kind: DataType, column: str) -> pa.DataType:
    import pyarrow as pa
    from pyspark.sql import types

    plain = {
        types.BooleanType: pa.bool_(),
        types.ByteType: pa.int8(),
        types.ShortType: pa.int16(),
        types.IntegerType: pa.int32(),
        types.LongType: pa.int64(),
        types.FloatType: pa.float32(),
        types.DoubleType: pa.float64(),
        types.StringType: pa.string(),
        types.BinaryType: pa.binary(),
        types.DateType: pa.date32(),
        types.TimestampNTZType: pa.timestamp("us"),
        types.TimestampType: pa.timestamp("us", "UTC"),
        types.DayTimeIntervalType: pa.duration("us"),
        types.NullType: pa.null(),
    }
    if type(kind) in plain:
        return plain[type(kind)]
    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, types.ArrayType):
        return pa.list_(_arrow_type(kind.elementType, column))
    raise _no_type(column, kind.simpleString())


def _no_type(column: str, kind: str) -> EngineError:
    return EngineError(
        Diagnostic("CQ0901", f"column {column} has a type that does not cross to Spark and back: {kind}")
    )


def _demand_unique(names: list[str], what: str) -> None:
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise EngineError(Diagnostic("CQ0409", f"{what} has several columns named {', '.join(twice)}"))
