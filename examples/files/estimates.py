"""Reads the files that `gqlstream run --parquet estimates` writes.

    pip install polars            # or: pip install pandas pyarrow
    python examples/files/estimates.py estimates
    python examples/files/estimates.py estimates --pandas
"""

import argparse
import pathlib


def with_polars(directory):
    import polars as pl

    estimates = pl.scan_parquet(f"{directory}/*.parquet").filter(
        (pl.col("method") == "auto") & ~pl.col("suppressed")
    )
    share = estimates.select(
        "community",
        "time",
        share=pl.col("prevalence").list.get(0),
        low=pl.col("low").list.get(0),
        high=pl.col("high").list.get(0),
        flags=pl.col("flags").list.join(", "),
    )
    print(share.group_by("community").last().sort("community").collect())


def with_pandas(directory):
    import pandas as pd

    files = sorted(pathlib.Path(directory).glob("*.parquet"))
    estimates = pd.concat(pd.read_parquet(file) for file in files)
    auto = estimates[(estimates["method"] == "auto") & ~estimates["suppressed"]]
    share = auto.assign(
        share=auto["prevalence"].str[0],
        low=auto["low"].str[0],
        high=auto["high"].str[0],
    )
    print(share.groupby("community")[["time", "share", "low", "high"]].last())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory")
    parser.add_argument("--pandas", action="store_true")
    arguments = parser.parse_args()
    read = with_pandas if arguments.pandas else with_polars
    read(arguments.directory)
