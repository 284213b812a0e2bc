"""Somebody's own Spark program that reads and writes by JDBC: ``spark_client.py PORT DRIVER_JAR``; answers as JSON.

A process of its own: Spark takes a driver's jar only when it starts, and a test run has a Spark already.
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import DataFrame, SparkSession

MANY = 20_000


def main(port: str, jar: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "600m")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    url = f"jdbc:postgresql://127.0.0.1:{port}/tidemark?reWriteBatchedInserts=true"
    driver = {"url": url, "user": "spark", "driver": "org.postgresql.Driver"}

    def read(**options: str) -> DataFrame:
        return spark.read.format("jdbc").options(**driver, **options).load()

    def write(frame: DataFrame, table: str, mode: str, **options: str) -> None:
        frame.write.format("jdbc").options(**driver, dbtable=table, **options).mode(mode).save()

    two = spark.createDataFrame([(100, "from spark"), (101, None)], "k int, s string")
    write(two, "into_append", "append")
    write(two, "into_new", "errorifexists")
    write(two, "into_overwrite", "overwrite")
    begun = time.monotonic()
    write(spark.range(MANY).selectExpr("id", "concat('row ', id) AS s").repartition(4), "into_many", "overwrite")
    took_s = time.monotonic() - begun
    many = {"partitionColumn": "id", "lowerBound": "0", "upperBound": str(MANY), "numPartitions": "4"}
    tables = ("into_append", "into_new", "into_overwrite")
    answers = {
        "types": read(dbtable="every").dtypes,
        "rows": [[str(value) for value in row] for row in read(dbtable="every").orderBy("k").collect()],
        "view": sorted(map(list, read(dbtable="counted").collect()), key=str),
        "query": read(query="SELECT k % 3 AS g, count(*) AS n FROM every GROUP BY k % 3").count(),
        "filtered": read(dbtable="into_many").where("id >= 10 AND s <> 'row 10'").count(),
        "by page": read(dbtable="into_many", fetchsize="1000").agg({"id": "sum"}).first()[0],
        "in parts": read(dbtable="into_many", **many).agg({"id": "sum"}).first()[0],
        "written": {table: sorted(map(list, read(dbtable=table).collect())) for table in tables},
        "rows/s": round(MANY / took_s),
    }
    print(json.dumps(answers))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
