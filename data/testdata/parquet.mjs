// Writes parquet.json: small Parquet files of DuckDB, in base64, with the values that DuckDB reads from them.
//
//     npm install @duckdb/node-api@1.5 && node parquet.mjs
import { DuckDBInstance } from '@duckdb/node-api'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

const db = await (await DuckDBInstance.create(':memory:')).connect()
const table = `SELECT (i * 37 % 100) / 8.0 AS d, CAST(i AS FLOAT) / 3 AS f, CAST(i AS TINYINT) AS small, CAST(i AS BIGINT) * 1000000 AS big,
	CAST(4000000000 + i AS UINTEGER) AS u, i % 3 = 0 AS flag, CAST(i AS DECIMAL(9, 2)) / 4 AS price, [i, i] AS list,
	CASE i % 3 WHEN 0 THEN 'owl' WHEN 1 THEN 'wren' END AS species FROM range(120) t(i)`
const files = {}
for (const codec of ['snappy', 'zstd', 'gzip', 'uncompressed', 'lz4_raw', 'brotli']) {
	await db.run(`COPY (${table}) TO 'x.parquet' (FORMAT parquet, COMPRESSION ${codec}, ROW_GROUP_SIZE 2048)`)
	const sums = (await db.runAndReadAll(`SELECT sum(d), sum(f), sum(small), sum(big), sum(u), sum(flag::INT), sum(price::DOUBLE), count(species) FROM 'x.parquet'`)).getRows()[0]
	files[codec] = { file: readFileSync('x.parquet').toString('base64'), sums: sums.map(Number) }
}
rmSync('x.parquet')
writeFileSync('parquet.json', JSON.stringify(files, null, 1))
