"""docs/sql.md, made from the tables in the code and from the corpus of refusals.  Pure.

``TIDEMARK_REWRITE=1 pytest tests/docs/test_sql_page.py`` writes the page; read that diff like code.
"""

from __future__ import annotations

import re
from pathlib import Path

from adapter.duck.calls import known
from adapter.duck.macros import MACROS
from adapter.state.variables import KNOWN
from functions.registry import OF_ARRAYS
from sql.system.resolve import BY_NAME as SYSTEM_FUNCTIONS
from sql.typing.check import NAMED as BY_NAME
from sql.typing.check_functions import KNOWN_ELSEWHERE, NAMED
from trees.types import shown
from values.types import SqlType

ROOT = Path(__file__).resolve().parents[2]
STORIES = ROOT / "tests" / "sql" / "stories"

HEAD = """\
# SQL, as it is here

The dialect is PostgreSQL's: where a statement is taken it means what it means there, with the same types, errors and
order of NULLs; a differential test asks both. What is not here is refused with a SQLSTATE and a hint, never answered by
another meaning. This page is made from the tables in the code (`tests/docs/test_sql_page.py`); types are in
[types.md](types.md), what can be asked about the system in [monitoring.md](monitoring.md).

## Statements

| statement | what it does here |
|---|---|
| `SELECT`, `VALUES`, `WITH`, `TABLE` | any query over one's own relations or over system relations, not both |
| a query and `AS OF …` | what there was at that timestamp: below |
| `[WITH …] INSERT INTO t [(…)] VALUES …` or a query | rows of a table; `RETURNING`, `ON CONFLICT`: below |
| `[WITH …] MERGE INTO t USING s ON … WHEN …` | as in PostgreSQL 15: below |
| `UPDATE`, `DELETE`, `TRUNCATE` of a table | rows go and come in one commit: below |
| `COPY t FROM STDIN`, `COPY t TO STDOUT`, `COPY (query) TO STDOUT` | rows in bulk, as text, CSV or binary: below |
| `CREATE SEQUENCE`, `ALTER SEQUENCE … [RE]START`, `INCREMENT`… | `nextval` and its kin draw values: below |
| `CREATE SCHEMA`, `TABLE`, `VIEW`, `MATERIALIZED VIEW`, `INDEX` | each one record in the catalog; `IF NOT EXISTS` |
| `CREATE SOURCE … FROM KAFKA …` | a topic's rows; what does not fit is in `…_errors`: below |
| `CREATE SOURCE … FROM LOAD GENERATOR …` | rows that are made up: [generators.md](generators.md) |
| `CREATE SOURCE … FROM WEBHOOK BODY FORMAT …` | rows that are posted over HTTP: [webhooks.md](webhooks.md) |
| `CREATE CONNECTION … TO KAFKA (…)`, `… TO CONFLUENT SCHEMA REGISTRY (…)` | where a system outside is: below |
| `CREATE SINK … FROM … INTO KAFKA (…) FORMAT JSON ENVELOPE …` | what a table or a view becomes, on a topic: below |
| `ALTER TABLE … ADD`, `DROP`, `RENAME COLUMN`, `ALTER COLUMN` | no row is written anew; not `TYPE`: below |
| `ALTER TABLE` (`VIEW`, `INDEX`, `SCHEMA`…) `RENAME TO`, `SET SCHEMA` | what reads it reads on; `TABLE` may name any |
| `… WITH (RETAIN HISTORY = FOR '1h')`, `ALTER … SET (RETAIN…)`, `RESET` | how long the past can be read: below |
| `… CLUSTER BY (a, b)`, `ALTER … CLUSTER BY (a, b)`, `… NONE` | what is near each other in files: below |
| `ALTER CLUSTER … SET (gear = 'auto')`, `RESET (gear)` | who evaluates changes and reads: `auto`, `process`, `spark` |
| `DROP …`, `ALTER SOURCE … RESET [CASCADE]`, `COMMENT ON …` | `CASCADE` drops what depends on it |
| `EXPLAIN [PLAN]`, `EXPLAIN TIMESTAMP`, `EXPLAIN STRATEGY` | who answers and how, as of when, how a view is kept |
| `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT` | reads at one timestamp and of what it wrote; commits all of it or none |
| `VACUUM [FULL] [t, …]` | what is settled is sealed, merged and tidied up now: below |
| `ANALYZE`, `REINDEX`, `REFRESH MATERIALIZED VIEW` | what they name is looked up; there is nothing to do |
| `SET`, `SHOW`, `RESET`, `DISCARD` | the session's variables |
| `PREPARE`, `EXECUTE`, `DEALLOCATE`, `DECLARE`, `FETCH`, `MOVE`, `CLOSE` | as in Postgres |

### A plan

`EXPLAIN` of a query shows its plan as a tree, one operator a line, each above what it reads:

    > EXPLAIN SELECT name, count(*) FROM items WHERE price > 3 GROUP BY name
    Outputs: name text, count int8 not null
    Project #0{name}::text, #1::int8
      Reduce by #1{name}: count(*)
        Filter #2{price} > 3
          Get public.items (u1) (id, name, price)

`#1{name}` is the second column of what the operator reads, and `name` what it was called where it came from; `^#0` is a
column of the row around a subquery, whose plan stands below its operator as `q1`. Plain views are opened. The text that
Spark gets comes behind it.

Of a query that a cluster reads the last lines say what that would be, by relation, as the session's cluster has it
now:

    Files, as the cluster has them now:
      public.items (u1): 12 considered, 11 pruned, 1 read (4,100 bytes); 35 changes beside them

*Considered* are the relation's files of settled rows, *pruned* those whose statistics say that they hold nothing of
what the query seeks, *beside them* the changes that are not settled yet. Nothing is loaded for it, nobody is waited
for, and parameters count as NULL.

### The past

    SELECT count(*) FROM orders AS OF now() - interval '2 minutes'
    SELECT count(*) FROM orders AS OF 1764252000000

`AS OF` stands behind the whole query, as in Materialize (not `AT LEAST`). A whole number is a timestamp as the system
shows it, in milliseconds since 1970 (`EXPLAIN TIMESTAMP`, `tm_internal`); a `timestamptz`, or what is read as one by
the session's zone, is the millisecond that it lies in. It is one value without parameters and relations. The answer is
what a strict read at that timestamp had, rows and no others, by the columns that there are now: of columns that came
since it has what old rows have, of a table that was not there yet nothing. No index is asked. What is not kept any more
is 22023, and the detail says from when on there is something; a timestamp up to ten seconds ahead is waited for, and
beyond that 22023. A materialized view can be read where it was exact, at one of its last 512 ticks and until its inputs
changed next, and is 22023 elsewhere: read its inputs by its query. In a transaction block such a read takes no
part: it neither decides where the block reads, nor shows what the block wrote, nor conflicts with anybody. A read of
what its cluster does not hold in memory any more loads its relations for itself alone. System relations have no past.

Everybody's past is kept for five minutes (the storage controller's `--retain`). A table or source keeps it for longer
by `CREATE … WITH (RETAIN HISTORY = FOR '1h')` or `ALTER TABLE`, `ALTER SOURCE … SET (RETAIN HISTORY = FOR '1h')`, from
then on, and as others do again after `RESET (RETAIN HISTORY)`; in environments made with catalog format 9 or later.
Each commit to it is then a place in memory of every process: of one relation the newest 50,000 commits are kept, of
all together 200,000, and less history than was asked for where there are more. `EXPLAIN TIMESTAMP` says from when on.
What is kept stays on its topic, too, and is sealed in files later. Of materialized views nothing is kept for longer.

### CLUSTER BY

    CREATE TABLE events (at timestamptz, device int, value float8) CLUSTER BY (device, at)
    ALTER MATERIALIZED VIEW totals CLUSTER BY (region)

Settled rows lie in files, sorted by the columns that `CLUSTER BY` names (up to four; not arrays, jsonb, intervals, nor
`numeric` without a scale), else by the table's `PRIMARY KEY`. Where more than eight files hold one key they are written
anew as ranges of keys, in the background; `VACUUM FULL` does so at once with all there are. A read whose filter
compares the first of these columns with values then opens few files (`EXPLAIN` says how many it passes over). It stands
behind the columns of `CREATE TABLE` and behind a source's format, before or after `WITH`, and behind `IN CLUSTER` of
`CREATE MATERIALIZED VIEW … AS`. `ALTER …` counts for what is written from then on, `CLUSTER BY NONE` leaves files as
they are. A column that is dropped is taken out of it. No answer hangs on it.

### INSERT, UPDATE, DELETE, TRUNCATE

`RETURNING` gives of each row that was written what it asks for, as the table keeps it, with the values of its defaults;
of an INSERT in the order in which its rows were written. It asks in an INSERT and an UPDATE without subqueries that
read relations (of its own WITH queries it may ask those that read none), and nowhere for values of sequences. In a
block, or where several statements are sent as one, rows are returned before they are committed, as ever: nothing of
them is there where the COMMIT is refused.

`WITH x AS (INSERT | UPDATE | DELETE … [RETURNING …])` in front of a query, an INSERT, an UPDATE or a DELETE is as in
Postgres: all parts read what there was before any of them, each is done once, whether it is read or not, and all are
one commit. What RETURNING gives may be read by the parts behind it: up to 64 MiB of each, and up to 8 MiB by a part
that reads tables, too (54000). A row that two parts would take away is refused (21000; Postgres does one of the two).
At the top of a statement only (0A000). `EXPLAIN` shows each part.

`[WITH …] MERGE INTO t USING s ON … WHEN MATCHED [AND …] THEN UPDATE SET … | DELETE | DO NOTHING WHEN NOT MATCHED
[AND …] THEN INSERT … VALUES (…) | DO NOTHING` is as in PostgreSQL 15, 21000 for a row that would be changed twice
included: each WHEN is a change of the rows for which none before it was, all at one snapshot and in one commit. Where
ON says `=` of all columns of a key and values of their types, only rows of those keys are read, up to 1,000 of them,
and the commit hangs on these keys, there or not, instead of the table. Not
`INSERT DEFAULT VALUES`, not `DEFAULT` among values without a list of columns, and not behind a WITH query called
as the table is (0A000).

The others are as in Postgres, with `FROM` or `USING`, `WITH` in front, subqueries, `SET (a, b) = (…)` and `DEFAULT`
(not `WHERE CURRENT OF`). `SET a[2] = v` sets an item of an array (one that is too short gets NULLs in between; not a
slice: 0A000, and the first item of none is `a[1]`: 2202E), and `SET j['key'][0] = v` what a document has there: what of
the path is missing is made. A row goes once, however many rows of FROM match it: of several the one that an UPDATE
takes is chosen by their values. Where a table has no key, equal rows go together, and each of them counts. What is
changed is what was read: the commit is refused where a table that the statement read, its own among them, was written
meanwhile, or, where a table is read by its key alone, where rows of those keys were: `WHERE id BETWEEN 100 AND 199` of
a PRIMARY KEY `(id)`, `tenant = 7 AND at > '…'` of one on `(tenant, at)`, `IN`, `= ANY ($1)`, parameters, any of these
with `OR` between them (up to 64 ranges). A row that comes into a range counts. Keys are told by comparisons of the
key's columns, from the first one on, with values of their own type, in `WHERE` or in the `ON` of a join, in subqueries
and plain views too; by anything else (`<>`, `NOT`, `IS NULL`, a column that is reckoned with, floats, what is above a
LIMIT or a window, the table that an `UPDATE … FROM` changes, a materialized view) all of the table is read, and so it
is in environments of a catalog format below 13. Outside of a transaction block the statement is then made anew from
what there is now, up to 16 times within some two seconds, then it is 40001; in a block COMMIT is 40001, and the block
reads what it has changed at the one timestamp where it read it, at any isolation level. Where whole tables are read, an
UPDATE of one into which others insert all the time may lose. One statement takes back at most 64 MiB of rows, and a
transaction writes as much; more is 54000 (`TRUNCATE` included: delete by ranges). `TRUNCATE … RESTART IDENTITY` begins
the sequences of the tables' columns anew once the rows are gone: what others insert in between has the values that came
next before, and a transaction block cannot say it (0A000). `nextval` in SET (other than by `DEFAULT`) is not there.

### CHECK

`CHECK (condition)` on a column or on a table, with a name or without, in `CREATE TABLE` and `ALTER TABLE … ADD`. The
condition is of the row's own columns: no subqueries, aggregates or whole rows, and, other than in Postgres, nothing
that is another thing at another time or to another session (`now()`, `random()`, what hangs on the time zone), or rows
that kept it once might not keep it later (0A000). Whatever writes rows keeps it, COPY and ON CONFLICT included; 23514
names the first row that does not. It goes on when its columns are renamed, and goes with a column that it is of.
`SHOW CREATE TABLE`, `\\d`, `pg_constraint` and `information_schema` show the condition as it was written, its columns
called as they are now. Catalogs of format 10 keep checks.

### ALTER TABLE … ADD, DROP and RENAME CONSTRAINT

`ADD [CONSTRAINT name] PRIMARY KEY | UNIQUE (…) | CHECK (…)` of a table that has rows: first the constraint is
announced, and whoever writes keeps it from then on, through any adapter; then the rows that are there are looked at,
as a query does; then it holds, or is taken back (23505, 23514, 23502). Where the adapter ends in between, it stays
announced: writers keep it, `pg_constraint.convalidated` is false, and it may be dropped, or added again, which goes on
with it. Not in one statement with `DROP CONSTRAINT` (0A000). `ADD COLUMN … PRIMARY KEY | UNIQUE | CHECK (…)` brings a
column and what holds of it, or neither; beside it may stand other columns, constraints and `SET NOT NULL`, and nothing
else (0A000). While rows are looked at others see the column; where the adapter ends then, it is there with a constraint
that is announced. `ADD … CHECK (…) NOT VALID` is the first half alone: writers keep it, of what is there nobody is
asked, and `pg_constraint.convalidated` is false until `VALIDATE CONSTRAINT name`, which looks at the rows (23514 where
one does not keep it, and it stays as it was). Both in one statement are 0A000. `DROP CONSTRAINT [IF EXISTS] name
[CASCADE | RESTRICT]`, `RENAME CONSTRAINT name TO name`.

### PRIMARY KEY and UNIQUE

`PRIMARY KEY` and `UNIQUE` on a column or on a table, with names or without, in `CREATE TABLE` or by `ALTER TABLE …
ADD`. They are immediate, and NULLs are distinct. Each is an index of its name, which the cluster that the
session had when it made the table keeps like any other: whether a key is free is looked up there, and the commit is
refused, by the log, where somebody else wrote the key since; then the statement looks again. So a key that is there is
23505, whoever wrote it at the same time through whichever adapter, and nobody waits for a lock. In a transaction block
keys are looked up where the block reads, and who comes second hears of it at COMMIT (40001). An UPDATE may exchange
keys, since only the rows that it leaves are compared (Postgres refuses some of that). Where the index's cluster is
away, who writes keys waits as who reads does, 60 s or `statement_timeout`, and then writes nothing; UPDATEs that leave
the keys as they are and DELETEs are refused where they cannot read. More than 4,000 keys in one commit count as all of
the table. Columns of jsonb, arrays, intervals and numerics without a precision are no keys, and there are no foreign
keys, EXCLUDE, deferrable constraints or `NULLS NOT DISTINCT`. Catalogs of format 9 keep constraints.

`ON CONFLICT [(columns) | ON CONSTRAINT name] DO NOTHING` or `DO UPDATE SET … [WHERE …]`, with `excluded` and
`RETURNING`, on a PRIMARY KEY or UNIQUE: the rows that have the keys are looked up, and the commit hangs on these keys,
so what is updated is the row that is there when it is committed, and every count that was acknowledged is there. Where
somebody wrote one of them meanwhile the statement is made anew, 64 times at most; sessions of one adapter that meet one
row stand in line. In a block, and where several statements are sent as one, it is 40001 at the COMMIT instead. Not by
expressions or `WHERE` behind the columns, without subqueries that read relations in SET, and not `DO UPDATE` of a
table that lost columns.

### COPY

As in PostgreSQL 15: text, CSV and binary, the options in brackets and those of before (`COPY t FROM STDIN CSV
HEADER`), a list of columns, `HEADER MATCH`, `FORCE_QUOTE`, `FORCE_NULL`, `FORCE_NOT_NULL`, `WHERE` of COPY FROM
(without subqueries). Columns that are left out have their DEFAULT. What is wrong with a row is told with Postgres's
SQLSTATE and its place (`COPY t, line 3, column a: "x"`), and then none of the rows is in the table. All of a load
becomes visible by one commit, whatever its size, and the memory that it takes does not grow with that; in a
transaction block it is a write of the block, of which the block reads up to 1 MiB itself. A table that is altered
while it is being loaded takes nothing (40001). Keys are kept: a row whose key is there is 23505, and where somebody
else wrote one of a load's keys meanwhile it is 40001, since its rows cannot be asked for again; a load has at most
1,000,000 keys. Data is UTF-8. Files and programs of the server's are nobody's here (42501): `\\copy` in psql reads and
writes those of the client. A view is copied out by `COPY (SELECT …)`, and so are the rows that a statement with
RETURNING gives. `COPY … FREEZE` is refused. `pg_stat_progress_copy` tells how far each of an adapter's is.

### VACUUM

The storage controller does it all by itself in time: rows older than history is kept go to files once they are many,
files merge, and all of a relation is written anew once half of it cancels out. `VACUUM t` has it do so now, however few
rows there are, and remove files and cut topics that nobody can be reading any more; `VACUUM FULL t` writes anew
whatever anything can be taken away from. Where nothing is named, relations with few rows to be sealed are left as they
are. It is answered once that is done (or after ten minutes, or `statement_timeout`: what is done stays), with a notice
of what it won, and of how many rows stay where they were written because they may still be read as of when they came.
No reader or writer waits for it. `FREEZE`, `VERBOSE`, `ANALYZE` and Postgres's other options are taken and say nothing
here. In a transaction block it is 25001; where the storage controller is away it is an error.

### Sequences

`CREATE SEQUENCE` with all of Postgres's options; `nextval('s')`, `currval`, `lastval` and `setval` stand
among the outputs of a query, in VALUES, in a WITH query whose rows are all that is shown, and in the DEFAULT of a
column. Over rows (`SELECT setval('s', max(id)) FROM t`, `SELECT nextval('s'), a FROM t ORDER BY a`) everything is read
first, at the statement's own timestamp, and then a value is drawn for each row in their order, 64 MiB of rows at most;
`INSERT … SELECT` draws what its query says before what the DEFAULTs of its columns say. In CASE, AND, OR and COALESCE
what is not evaluated draws nothing. Not beside DISTINCT, in WHERE, in aggregates or in views. The sequence's name is a
literal. Values come in order and without gaps within one adapter while it lives; adapters take
theirs in reserves, so two of them interleave, and what a killed one had is a gap ([GUARANTEES.md](GUARANTEES.md)).
`SELECT last_value, is_called FROM s` and `pg_sequences` say how far it has come, which is the end of the last reserve.

Columns may be `serial`, `bigserial` and `smallserial`, or `GENERATED ALWAYS` or `BY DEFAULT AS IDENTITY [(…)]`, with a
sequence of their own that goes with them, called as Postgres calls it; `OVERRIDING SYSTEM` and `USER VALUE`,
`pg_get_serial_sequence`, `OWNED BY`. `ALTER COLUMN … ADD GENERATED`, `SET GENERATED`, `SET INCREMENT …`, `RESTART` and
`DROP IDENTITY` make such a column of one that is NOT NULL, alter it and end it. `ADD COLUMN` of a serial or an identity
is refused: rows that are there would need a value each, and what was written is never written anew. Without a
key nothing refuses a value that is written twice.

`ALTER COLUMN … SET NOT NULL` and `ADD COLUMN … NOT NULL` without a `DEFAULT` look at the rows, as a query does, on the
session's cluster: 23502 where one has a NULL there, or there is any row for a column that comes. Meanwhile nobody
writes a NULL into the column. Such an `ADD COLUMN` stands beside no other kind of action.

### Connections

    CREATE CONNECTION kafka TO KAFKA (BROKER 'b1:9092,b2:9092', SECURITY PROTOCOL = 'SASL_SSL',
        SASL MECHANISMS = 'PLAIN', SASL USERNAME = 'me', SASL PASSWORD = SECRET ENV 'TIDEMARK_SECRET_KAFKA')
    CREATE CONNECTION registry TO CONFLUENT SCHEMA REGISTRY (URL 'https://host:8081', USERNAME = 'me',
        PASSWORD = SECRET FILE 'registry/password')

The options are Materialize's: of Kafka `BROKER` or `BROKERS (…)`, `SECURITY PROTOCOL` (`PLAINTEXT`, `SSL`,
`SASL_PLAINTEXT`, `SASL_SSL`; where nobody says it, `SASL_SSL` if there is anything of SASL, else `SSL`), `SASL
MECHANISMS` (`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`), `SASL USERNAME`, `SASL PASSWORD`; of a registry `URL`,
`USERNAME`, `PASSWORD`; of both `SSL CERTIFICATE AUTHORITY`, `SSL CERTIFICATE` and `SSL KEY`, as PEM. `=` may be left
out. Nobody is asked whether somebody is there: `WITH (VALIDATE = false)` is what is done anyway. `VALIDATE CONNECTION
c` asks, from the adapter: for some eight seconds the brokers what topics they have, or the registry what subjects.
Nothing is told where we are taken in; else 08001 (nobody answers, try again), 28000 (who we are is not known there),
22023 (something else answers, or a certificate is none) or 55000 (a secret is not in its place).

**A secret is never in a statement**: of passwords and keys only the place is said, and of user names and certificates
it may be. `SECRET ENV 'TIDEMARK_SECRET_…'` is a variable of the environment of the process that connects, which must
be called so; `SECRET FILE 'a/b'` is a file there, below the directory that `TIDEMARK_SECRETS` names or
`/run/secrets`. A text instead is 22023, and no complaint about options repeats a text of the statement (a quote that
never ends is shown from where it begins, as in Postgres). `DROP`, `ALTER … RENAME TO` and `SET SCHEMA`, `COMMENT ON
CONNECTION`, `SHOW CONNECTIONS`, `SHOW CREATE CONNECTION`; `tm_catalog.connections` lists them. They are no relations,
so `pg_class` has none, but their names are among those of relations. They are kept by catalogs of format 8.

### Sources

    CREATE SOURCE s [(column type [NOT NULL], …)]
        FROM KAFKA [CONNECTION c] (TOPIC 't' [, START OFFSET (n, …) | , START TIMESTAMP ms])
        { FORMAT f | KEY FORMAT f VALUE FORMAT f }
        [INCLUDE KEY [AS n], PARTITION [AS n], OFFSET [AS n], TIMESTAMP [AS n], HEADERS [AS n]]
        [ENVELOPE NONE | UPSERT | DEBEZIUM]

Without `CONNECTION` the brokers are the environment's own, and `TOPIC 't'` may stand without parentheses. `START
OFFSET` names the first offset of partitions 0, 1…; partitions that it does not name, or that are added later, begin
with what is oldest. Rows come once, in whole commits, whatever dies; upstream transactions that were aborted are no
rows.

| format | columns of a value | of a key |
|---|---|---|
| `JSON` | as listed: a list is needed | `key jsonb` |
| `TEXT` | `text text` | `key text` |
| `BYTES` | `data bytea` | `key bytea` |
| `CSV WITH n COLUMNS [DELIMITED BY 'c']` | `column1 text`…, or as listed, read as COPY reads CSV | none |
| `CSV WITH HEADER [(name, …)] [DELIMITED BY 'c']` | the names, as text, or as listed, which are names too | none |
| `AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION r` | fields of the newest schema of subject `t-value` | of `t-key` |
| `AVRO USING SCHEMA '…'` | the fields of that schema; messages are bare Avro | the same |
| `PROTOBUF MESSAGE 'package.Name' USING SCHEMA '\\x…'` | the fields of that message | the same |

Of `JSON` an integer is a number without fraction and exponent, as older releases have it, where the source is read in
place (see below). Where it is copied any whole number is one, however it is written (`1.0`, `1e3`), as pandas and
others write them; `1.5` is no row, and is not rounded.

A message of CSV whose fields are exactly the names of its `HEADER` is a header: no row and no error, wherever it
stands, for a topic has no first line, and files are sent one after another. (As identifiers names are in lower case,
unless they are in quotes.) It needs catalog format 11.

Of Avro a list chooses fields, each of the type that it has: `int` int4, `long` int8, `float` float4, `double` float8,
`boolean` bool, `string` and `enum` text, `bytes` and `fixed` bytea, `decimal` numeric(p,s), `uuid` (a string or 16
bytes), `date`, `time-…` time, `timestamp-…` timestamptz (they are instants), `local-timestamp-…` timestamp, an array
of these an array, records, maps and other arrays jsonb, a union of null and one type that type. `timestamp-nanos` and
`local-timestamp-nanos` are cut to microseconds (the last one that is not later); a list that says int8 has the
nanoseconds, as one that says bytea has the bytes of a `uuid`. A union of several types is a column where one type has
every value of each: of `int` and `long` int8, of `int`, `float` and `double` float8, of `string` and `enum` text, of
`bytes` and `fixed` bytea, none of them of a logical type; no other is a column.
The schema is the source's for ever; messages may be written by any that Avro's rules resolve to it, and whose logical
types are the same.

Of `PROTOBUF` the schema is a `FileDescriptorSet` in hex, as a bytea is written: what `protoc --include_imports
--descriptor_set_out=f p.proto` makes, at most 256 KiB (`'\\x'` before `xxd -p f | tr -d '\\n'`). A list chooses
fields, each of the type that it has: `int32` and its kin int4, `int64` and its kin int8, `uint32` and `fixed32`
int8, `uint64` and `fixed64` numeric(20,0), `float` float4, `double` float8, `bool`, `string` text, `bytes` bytea,
an enum text (its value's name, or the number where there is none), `google.protobuf.Timestamp` timestamptz (cut to
microseconds), its wrappers what they wrap; messages, maps and whatever is repeated jsonb, as Materialize has them,
with every field by its name, `google.protobuf.Struct` and its kin as the JSON that they say. NULL is what a
message lacks where its type can tell: messages, `optional` fields, members of a oneof, proto2's fields without a
default; otherwise the default stands for it, and the column is NOT NULL. Unknown fields are passed over. A message
is bare Protobuf: what Confluent's serializers put before it, and `USING CONFLUENT SCHEMA REGISTRY`, are not read.
Messages that hold themselves are jsonb, to 100 levels; of message
types at most 250 may stand in each other. It needs catalog format 12.

`ENVELOPE UPSERT`: a message is what its key is from then on, one without a value takes it away. `DEBEZIUM` (JSON or
Avro) likewise, by `after`; `before` is not looked at. Both need a format of keys (a registry's Avro has one by
itself), and the key is columns before those of the value; fields of a key in Avro or Protobuf that the value has too
are one column. Messages that say their own schema, as Kafka Connect's JsonConverter writes them unless
`schemas.enable` is off (`{"schema": …, "payload": …}`), are what is in them under `DEBEZIUM`, keys as well.
What is shown between two messages of one batch is nobody's to see. `INCLUDE TIMESTAMP` is timestamptz, `HEADERS` jsonb
(`[{"key": …, "value": …}]`, a value that is no text is `{"hex": …}`).

A message that is no row is in `s_errors`, also one whose schema does not fit, whose id its registry does not know, or
that has no key where one is needed, or whose row would be larger than 4 MiB, however short it is itself (`1e131071` in
JSON); a key keeps what it had then. A broker or a registry that is away delays the
source and nothing else: `tm_internal.source_status` says what it waits for, and why a source has failed (its topic
was made anew, or lost records that were not read yet). All but plain JSON of one's own brokers is **copied**: decoded
once into a topic of Tidemark's, so that later the user's topic may lose what was read, and views need neither
connection nor registry. It needs catalog format 8.

The storage controller reads topics and asks registries for the schemas of messages; the adapter that runs `CREATE
SOURCE` asks for the newest one. So both processes have the secrets of these connections in their places.

`CREATE SOURCE s FROM LOAD GENERATOR COUNTER | KEY VALUE | AUCTION | NEXMARK | TPCH [(option …)]` reads nothing and
makes up its rows: [generators.md](generators.md) has the options. It needs catalog format 10. `FOR ALL TABLES` and `FOR
TABLES (a [AS x], …)` make a source of each relation, which advance by one commit, and need format 12.

### Sinks

    CREATE SINK out FROM totals INTO KAFKA CONNECTION kafka (TOPIC 'totals', PARTITION COUNT 3)
        KEY (name) FORMAT JSON ENVELOPE UPSERT

A sink writes what a table, a source or a materialized view becomes: first all rows that there are, then the changes of
each timestamp. Without `CONNECTION` the topic is on the environment's own brokers. It is made where it is not there,
with `PARTITION COUNT` and `REPLICATION FACTOR` if they are said, and so is the `PROGRESS TOPIC` (`<topic>-progress`
unless said otherwise; one partition, compacted). A plain view has no changes of its own: make a materialized view.

**Each change is there once**, for consumers with `isolation.level=read_committed`, whatever process is killed when:
messages and a note of how far they go are one Kafka transaction, and a process that begins goes on from the note that
is in the progress topic. Messages of one key are in one partition (`murmur2`, as Kafka's own producers have it), in the
order of their timestamps; the header `tidemark-timestamp` has it. The note is `{"timestamp": T}` under the key
`{"log": …, "sink": id}`: everything at or below T is in the topic. One comes with each transaction, and where nothing
changes every five seconds.

| `ENVELOPE` | a change is |
|---|---|
| `UPSERT` | the row of its key, or no value where that is gone; one message of a key in one timestamp. Needs `KEY` |
| `DEBEZIUM` | `{"before": …, "after": …, "op": …, "ts_ms": T}`; with `KEY` what goes and comes of one key is one |
| `NONE` | the row that came; one that goes ends the sink with an error, since there is no message for it |

`op` is `r` for the rows that it begins with, `c`, `u`, `d`. With `UPSERT` no two rows may have one key at a timestamp:
the sink looks itself, remembering the keys that there are (two million at most), and ends with an error where it is
not so; nothing of that timestamp is written. After `NOT ENFORCED` it takes your word for it, but for two rows that come
in one timestamp. In JSON a `numeric` is a string, since its digits are more than a float has, and so is a float that is
not finite; `bytea` is in hex; dates and times are in ISO 8601; `jsonb` and arrays are themselves. `CREATE SOURCE …
FORMAT JSON` reads it all back, but for numbers that are not finite, a `numeric` of more than 150 characters and a
`jsonb` that is `null`, or nested 126 deep and more: a message may be 128 deep with what is around it.

`FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION r [(option …)]` writes as Confluent's serializers do: a zero
byte, four bytes of the schema's id, the value. The schemas follow from the columns and are registered before anything
is written, under the subjects `<topic>-value` and, where there is a `KEY`, `<topic>-key`. `int2` and `int4` are
`int`, `int8` `long`, `float4` `float`, `float8` `double`, `bool` `boolean`, `bytea` `bytes`, `numeric(p,s)` of up to
38 digits `decimal`, `date` `date`, `time` `time-micros`, `timestamptz` `timestamp-micros`, `timestamp`
`local-timestamp-micros`, `uuid` `uuid`, `interval` a record of `months`, `days` and `micros`, `jsonb` a string
(`connect.name` `io.debezium.data.Json`), an array an array of null or its type, all others strings as Postgres shows
them, `numeric` without a precision among them. What may be NULL is a union of null and its type. `CREATE SOURCE …
FORMAT AVRO` reads it all back, `jsonb` as text and an interval as `jsonb`. (The time `24:00:00` is 86,400,000,000
microseconds, which some readers refuse, fastavro's own among them: a day of theirs has none.) With `DEBEZIUM` a value
is the record `before`, `after`, `op`, `ts_ms`. A column whose name is none in Avro (`[A-Za-z_][A-Za-z0-9_]*`) is
refused (42602), never called otherwise in silence. Options, as Materialize has them: `AVRO KEY FULLNAME 'a.b.K'` and
`AVRO VALUE FULLNAME 'V'` (`row` and `envelope` where they are not said), `NULL DEFAULTS` (what may be NULL is so by
default), `KEY COMPATIBILITY LEVEL 'FULL'` and `VALUE COMPATIBILITY LEVEL`, which a subject gets that has no level of
its own. A column that becomes nullable is so in a new version of the value's schema, registered with the first NULL or
when the sink's process begins anew, and stays so after `SET NOT NULL`; of a key it cannot, since the same key would be
other bytes: a NULL there ends the sink. A registry that is away delays its own sinks; what it does not take is told in
its words. Both are tried again, after ten seconds at most. Two sinks may write one topic: each keeps its own promises,
and none is made of both, so messages of one key are in no order then. The storage controller asks the registry, CREATE
SINK does not: `VALIDATE CONNECTION r` tells whether it answers. Catalogs of format 11 keep sinks that write Avro.

What has to be written again and again waits alone: a target that is away delays its own sink (`tm_internal.sink_status`
says why), and what it has not written yet is kept for an hour, in which it goes on where it was; later it says so and
has to be made anew, as after an error that ended it. A view that has an error has no rows to write, so its sink waits.

    CREATE SINK out FROM totals INTO ICEBERG CATALOG CONNECTION lake (NAMESPACE 'shop', TABLE 'totals')
        KEY (name) MODE UPSERT WITH (COMMIT INTERVAL '10s')

writes an Iceberg table: one snapshot an interval, of a timestamp that it names, so that several tables can be read at
one and the same ([iceberg.md](iceberg.md)). It needs catalog format 11.
All rows that a sink begins with are one transaction (15 minutes at most), and they, as the changes of one timestamp,
are in memory at once: 1 GiB at most. A column that came later is not written; one that is written cannot be dropped.
`DROP`, `ALTER SINK … RENAME TO` and `SET SCHEMA`, `COMMENT ON SINK`, `SHOW SINKS`, `SHOW CREATE SINK`;
`tm_catalog.sinks` lists them. The topics stay when a sink goes. Sinks are kept by catalogs of format 9.

### A topic for a source

A broker that makes topics by itself makes them with its own defaults, so make one yourself:

    kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --create --topic orders --partitions 3

and then `CREATE SOURCE orders (…) FROM KAFKA TOPIC 'orders' FORMAT JSON`. Topics `<env>.*` are Tidemark's own.
"""


def _shown(kind: SqlType) -> str:
    return kind.name if kind.name.startswith("any") else shown(kind)


def _named() -> str:
    typed = [(name, each.args, each.result, each.variadic, each.many) for name, all_ in NAMED.items() for each in all_
             if not each.lacking]  # fmt: skip
    typed += [(each.name, each.arguments, each.result, False, each.many) for each in OF_ARRAYS]
    lines = ["| function | arguments | result |", "|---|---|---|"]
    for name, arguments, result, variadic, many in sorted(typed, key=lambda each: each[0]):
        given = [*map(_shown, arguments)]
        if variadic:
            given[-1] = f"VARIADIC {given[-1]}"
        lines.append(f"| `{name}` | {', '.join(given) or '–'} | {'SETOF ' * many}{_shown(result)} |")
    return "\n".join(lines)


def _list(names) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def refusals() -> list[tuple[str, str, str, str]]:
    """``(statement, SQLSTATE, message, hint)`` of every statement in the stories that is refused."""
    found = []
    for story in sorted(STORIES.glob("*.txt")):
        for part in re.split(r"\n(?=> )", story.read_text()):
            head, *rest = part.strip().splitlines()
            if rest and (error := re.match(r"ERROR (\w{5})(?: at \d+)?: (.*)", rest[0])):
                hint = next((line.removeprefix("  hint: ") for line in rest if line.startswith("  hint: ")), "")
                found.append((head.removeprefix("> "), error[1], error[2], hint))
    return found


def _refused() -> str:
    lines = ["| statement | what is said | and |", "|---|---|---|"]
    seen: set[str] = set()
    for text, sqlstate, message, hint in refusals():
        if sqlstate == "0A000" and message not in seen and len(text) < 200:
            seen.add(message)
            cells = (text, message, "" if hint.startswith("docs/") else hint)
            cells = tuple(cell.replace("|", "\\|") for cell in cells)
            lines.append(f"| `{cells[0]}` | {cells[1]} | {cells[2]} |")
    return "\n".join(lines)


WRITTEN = {"coalesce", "current_date", "greatest", "least", "nullif", "row"}
"""What Postgres's grammar knows, and its table of functions does not."""


def page() -> str:
    """The whole of docs/sql.md."""
    elsewhere = {*KNOWN_ELSEWHERE, *BY_NAME} - NAMED.keys() - {each.name for each in OF_ARRAYS}
    system = MACROS.keys() & SYSTEM_FUNCTIONS.keys()
    return "\n".join(
        [
            HEAD,
            "## Functions over rows and constants\n",
            "Of one shape, by their arguments:\n",
            _named(),
            "\nOf several shapes, as Postgres types them (aggregates and window functions among them):\n",
            _list(elsewhere),
            "\nA function that is in neither list is 42883, whatever an engine may know by its name.\n",
            "## Functions over system relations\n",
            "Queries over `pg_catalog`, `information_schema`, `tm_catalog` and `tm_internal` are answered in the\n"
            "adapter. Beside Postgres's own about the catalog:\n",
            _list(system),
            "\nthey may call:\n",
            _list((known() & SYSTEM_FUNCTIONS.keys() | WRITTEN) - system),
            "\n## Session variables\n",
            _list(each.name for each in KNOWN.values()),
            "\n## What is refused, and why\n",
            "Each a statement of the corpus (`tests/sql/stories`) with what is said to it:\n",
            _refused(),
            "",
        ]
    )
