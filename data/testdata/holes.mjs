// Writes holes.json: a Parquet file of DuckDB with NULLs, in base64, and the .csv of the same rows in which DuckDB has put 9 + k/16 for NULL in place k of
// the columns a and b.
//
//     npm install @duckdb/node-api && node holes.mjs
import { DuckDBInstance } from '@duckdb/node-api'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

const db = await (await DuckDBInstance.create(':memory:')).connect()
await db.run(`CREATE TABLE t AS SELECT i, CASE WHEN i % 5 <> 2 THEN i * 37 % 100 / 8.0 END AS a, CASE WHEN i % 3 <> 1 THEN 'no ' || i || ', "x"' END AS note,
	CASE WHEN i % 7 <> 3 THEN CAST(i AS FLOAT) / 3 END AS b, CASE WHEN i % 4 <> 0 THEN DATE '2024-01-01' + CAST(i AS INT) END AS day FROM range(60) t(i)`)
await db.run(`COPY (SELECT * EXCLUDE i FROM t ORDER BY i) TO 'x.parquet' (FORMAT parquet)`)
await db.run(`COPY (SELECT coalesce(a, 9 + 2 * i / 16.0) AS a, note, coalesce(b, CAST(9 + (2 * i + 1) / 16.0 AS FLOAT)) AS b, day FROM t ORDER BY i) TO 'x.csv' (FORMAT csv, HEADER)`)
writeFileSync('holes.json', JSON.stringify({ file: readFileSync('x.parquet').toString('base64'), csv: readFileSync('x.csv').toString() }, null, 1) + '\n')
rmSync('x.parquet')
rmSync('x.csv')
