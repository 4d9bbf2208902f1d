"""Write tables of edges through pyarrow, pandas, Polars, DuckDB, fastparquet and Spark.

    python others.py FOLDER COUNT SEED [spark]

Each table has random types, encodings, compressions and page sizes. A line of FOLDER/want.ndjson
says what a reader must find in it: the rows, those that it must refuse, and the edges as src, dst,
weight and time in nanoseconds. Times without a zone are meant in UTC. With spark, all tables are
written by Spark, which needs Java.
"""

import datetime
import decimal
import json
import os
import random
import shutil
import sys
import uuid

import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

UTC = datetime.timezone.utc


def edges(r):
    """Return rows of an edge list: ids of one form, some of them missing."""
    n = r.choice([0, 1, 12, 12, 60, 300])
    form = r.choice(["int", "int", "large", "small", "text", "words", "uuid"])
    pool = {
        "int": lambda: r.randrange(1, 10**6),
        "large": lambda: r.randrange(2**53, 2**63),
        "small": lambda: r.randrange(100),
        "text": lambda: f"user-{r.randrange(10**6)}",
        "words": lambda: r.choice(["ann", "bob", "Zoë", "李雷", "a name that is long, with a comma"]),
        "uuid": lambda: uuid.UUID(int=r.getrandbits(128)),
    }[form]
    missing = r.choice([0, 0, 0.2])
    rows = []
    for _ in range(n):
        src, dst = pool(), pool()
        if r.random() < missing:
            src = None
        time = datetime.datetime(2024, 5, 1, tzinfo=UTC) + datetime.timedelta(
            milliseconds=r.randrange(10**9))
        rows.append([src, dst, r.choice([1.0, 0.5, 2.25, 1024.0, None]), time])
    return form, rows


def id_type(r, form, rows):
    """Return an Arrow type for ids of a form."""
    if form in ("text", "words"):
        plain = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
        return r.choice(plain + [pa.dictionary(pa.int16(), pa.string()),
                                 pa.dictionary(pa.int32(), pa.large_string())])
    if form == "uuid":
        return pa.uuid()
    types = [pa.int64(), pa.uint64(), pa.string(), pa.decimal128(20, 0), pa.decimal128(38, 0),
             pa.decimal256(40, 2)]
    if form == "small":
        types += [pa.int8(), pa.uint8(), pa.int16(), pa.float32(), pa.float64()]
    if form == "int":
        types += [pa.int32(), pa.uint32(), pa.float64(), pa.decimal128(10, 0)]
    return r.choice(types)


def arrow_table(r, form, rows, view=True):
    of = id_type(r, form, rows)
    while not view and of in (pa.string_view(), pa.uuid()):
        of = pa.string()

    def ids(at):
        values = [row[at] for row in rows]
        if pa.types.is_decimal(of):
            values = [None if x is None else decimal.Decimal(x) for x in values]
        elif pa.types.is_floating(of):
            values = [None if x is None else float(x) for x in values]
        elif of == pa.uuid():
            values = [None if x is None else x.bytes for x in values]
        elif not pa.types.is_integer(of):
            values = [None if x is None else str(x) for x in values]
        return pa.array(values, of)

    weight = r.choice([pa.float64(), pa.float32(), pa.float16(), pa.decimal128(12, 3)])
    weights = [row[2] for row in rows]
    if pa.types.is_decimal(weight):
        weights = [None if x is None else decimal.Decimal(x) for x in weights]
    time = pa.timestamp(r.choice(["ms", "us", "ns"]), r.choice([None, "UTC", "Europe/Berlin"]))
    times = [row[3] if time.tz else row[3].replace(tzinfo=None) for row in rows]
    columns = {"src": ids(0), "dst": ids(1), "weight": pa.array(weights, weight),
               "time": pa.array(times, time)}
    if r.random() < .3:
        columns["note"] = pa.array([[{"a": i}] for i in range(len(rows))])
    names = list(columns)
    r.shuffle(names)
    return pa.table({name: columns[name] for name in names})


def by_pyarrow_parquet(r, form, rows, path):
    table = arrow_table(r, form, rows)
    simple = not any(pa.types.is_nested(t) for t in table.schema.types)
    encoding = {}
    if simple and r.random() < .4:
        for field in table.schema:
            if pa.types.is_integer(field.type) and field.type.bit_width >= 32:
                encoding[field.name] = r.choice(
                    ["DELTA_BINARY_PACKED", "PLAIN", "BYTE_STREAM_SPLIT"])
            elif pa.types.is_floating(field.type) and field.type != pa.float16():
                encoding[field.name] = r.choice(["BYTE_STREAM_SPLIT", "PLAIN"])
            elif pa.types.is_string(field.type):
                encoding[field.name] = r.choice(
                    ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "PLAIN"])
    int96 = r.random() < .2
    pa.parquet.write_table(
        table, path, compression=r.choice(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        use_dictionary=False if encoding else r.choice([True, False]),
        column_encoding=encoding or None, use_byte_stream_split=False,
        data_page_version=r.choice(["1.0", "2.0"]), data_page_size=r.choice([64, 1024, None]),
        row_group_size=r.choice([7, 100, None]), version=r.choice(["1.0", "2.4", "2.6"]),
        store_schema=r.choice([True, False]), use_deprecated_int96_timestamps=int96,
        write_page_checksum=r.choice([True, False]), write_page_index=r.choice([True, False]))


def by_pyarrow_arrow(r, form, rows, path):
    table = arrow_table(r, form, rows)
    options = pa.ipc.IpcWriteOptions(
        compression=r.choice([None, "lz4", "zstd"]),
        metadata_version=r.choice([pa.ipc.MetadataVersion.V5, pa.ipc.MetadataVersion.V4]))
    make = r.choice([pa.ipc.new_file, pa.ipc.new_stream])
    with make(path, table.schema, options=options) as w:
        w.write_table(table, max_chunksize=r.choice([5, 1000]))


def by_feather(r, form, rows, path):
    pa.feather.write_feather(arrow_table(r, form, rows, view=False), path)


def frame(r, form, rows):
    table = arrow_table(r, form, rows, view=False)
    backed = r.choice([None, pandas.ArrowDtype])
    if r.random() < .5 and form not in ("large",):
        backed = None
    f = table.to_pandas(types_mapper=backed)
    if form == "large":
        f = table.to_pandas(types_mapper=pandas.ArrowDtype)
    if r.random() < .3:
        f.index = [f"row {i}" for i in range(len(f))]
    if r.random() < .3 and form in ("text", "words"):
        f["src"] = f["src"].astype("category")
    return f


def by_pandas_parquet(r, form, rows, path):
    frame(r, form, rows).to_parquet(path, engine="pyarrow", index=r.choice([None, True, False]))


def by_pandas_feather(r, form, rows, path):
    frame(r, form, rows).reset_index(drop=True).to_feather(path)


def by_fastparquet(r, form, rows, path):
    import fastparquet
    if not rows:
        return False
    f = pandas.DataFrame({
        "src": [None if x[0] is None else str(x[0]) for x in rows],
        "dst": [str(x[1]) for x in rows],
        "weight": [x[2] for x in rows],
        "time": pandas.to_datetime([x[3] for x in rows], utc=True).tz_localize(None),
    })
    # its INT96 times are wrong where pandas keeps microseconds, so those of Spark and pyarrow do
    fastparquet.write(path, f, compression=r.choice(["SNAPPY", "GZIP", "UNCOMPRESSED"]),
                      write_index=False)
    return True


def polars_frame(r, form, rows):
    import polars as pl
    f = pl.from_arrow(arrow_table(r, form, rows, view=False))
    if r.random() < .4 and form in ("text", "words"):
        f = f.with_columns(pl.col("src").cast(pl.String).cast(pl.Categorical))
    return f


def by_polars_parquet(r, form, rows, path):
    polars_frame(r, form, rows).write_parquet(
        path, compression=r.choice(["zstd", "snappy", "gzip", "uncompressed", "lz4"]),
        row_group_size=r.choice([None, 50]), data_page_size=r.choice([None, 256]),
        statistics=r.choice([True, False]))


def by_polars_ipc(r, form, rows, path):
    f = polars_frame(r, form, rows)
    write = f.write_ipc if r.random() < .5 else f.write_ipc_stream
    write(path, compression=r.choice(["uncompressed", "lz4", "zstd"]))


def by_duckdb(r, form, rows, path):
    import duckdb
    db = duckdb.connect()
    edges = arrow_table(r, form, rows, view=False)
    db.register("edges", edges)
    version = r.choice(["V1", "V2"])
    codec = r.choice(["snappy", "zstd", "gzip", "uncompressed", "lz4", "brotli"])
    columns = "*" if r.random() < .5 else "src::VARCHAR AS src, dst::VARCHAR AS dst, weight, time"
    if form in ("int", "large", "small") and r.random() < .3:
        columns = "src::HUGEINT::DECIMAL(20,0) AS src, dst::HUGEINT::DECIMAL(38,0) AS dst, weight, time"
    db.execute(f"COPY (SELECT {columns} FROM edges) TO '{path}' "
               f"(FORMAT parquet, PARQUET_VERSION {version}, COMPRESSION {codec}, "
               f"ROW_GROUP_SIZE {r.choice([2048, 122880])})")


def by_spark(r, form, rows, path):
    from pyspark.sql import SparkSession, types as T
    spark = SparkSession.builder.master("local[1]").appName("edges").config(
        "spark.sql.session.timeZone", "UTC").config("spark.ui.enabled", "false").getOrCreate()
    of = {"int": [T.IntegerType(), T.LongType(), T.DecimalType(20, 0), T.StringType()],
          "small": [T.ShortType(), T.ByteType(), T.DoubleType(), T.DecimalType(9, 0)],
          "large": [T.LongType(), T.DecimalType(38, 0), T.StringType()]}.get(form, [T.StringType()])
    of = r.choice(of)
    convert = {T.StringType: str, T.DecimalType: decimal.Decimal, T.DoubleType: float}.get(
        type(of), lambda x: x)
    weight = r.choice([T.FloatType(), T.DoubleType(), T.DecimalType(10, 2)])
    spark.conf.set("spark.sql.parquet.outputTimestampType",
                   r.choice(["INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"]))
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", r.choice(["true", "false"]))
    schema = T.StructType([
        T.StructField("src", of), T.StructField("dst", of),
        T.StructField("weight", weight), T.StructField("time", T.TimestampType())])
    data = [[None if a is None else convert(a), convert(b),
             None if w is None else decimal.Decimal(w) if isinstance(weight, T.DecimalType) else w,
             t] for a, b, w, t in rows]
    spark.createDataFrame(data, schema).coalesce(1).write.option(
        "parquet.writer.version", r.choice(["v1", "v2"])).parquet(
        path + ".d", mode="overwrite", compression=r.choice(["snappy", "gzip", "zstd", "none"]))
    part = [name for name in os.listdir(path + ".d") if name.endswith(".parquet")]
    shutil.move(os.path.join(path + ".d", part[0]), path)
    shutil.rmtree(path + ".d")


WRITERS = [
    (by_pyarrow_parquet, "parquet"), (by_pyarrow_parquet, "parquet"), (by_pyarrow_arrow, "arrow"),
    (by_feather, "feather"), (by_pandas_parquet, "parquet"), (by_pandas_feather, "feather"),
    (by_fastparquet, "parquet"), (by_polars_parquet, "parquet"), (by_polars_ipc, "arrow"),
    (by_duckdb, "parquet"),
]


def main(folder, count, seed, *spark):
    os.makedirs(folder, exist_ok=True)
    writers = [(by_spark, "parquet")] if spark else WRITERS
    r = random.Random(int(seed))
    with open(os.path.join(folder, "want.ndjson"), "a") as out:
        for i in range(int(count)):
            write, ending = writers[i % len(writers)]
            form, rows = edges(r)
            name = f"{write.__name__.removeprefix('by_')}-{seed}-{i}.{ending}"
            path = os.path.join(folder, name)
            try:
                if write(r, form, rows, path) is False:
                    continue
            except BaseException as e:  # of Polars, a panic
                print(f"{name}: not written: {e}", file=sys.stderr)  # the program has no such file
                if os.path.exists(path):
                    os.remove(path)
                continue
            kept = [row for row in rows if row[0] is not None and row[0] != row[1]]
            out.write(json.dumps({
                "file": name, "rows": len(rows), "refused": len(rows) - len(kept),
                "edges": [[str(a), str(b), 1.0 if w is None else w,
                           int((t - datetime.datetime(1970, 1, 1, tzinfo=UTC))
                               / datetime.timedelta(microseconds=1)) * 1000]
                          for a, b, w, t in sorted(kept, key=lambda row: row[3])],
            }, ensure_ascii=False) + "\n")


main(*sys.argv[1:])
