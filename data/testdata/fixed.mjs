// Writes fixed.json: a Parquet file of hyparquet-writer with values of a fixed number of bytes, in base64, and what they are: decimals with exact texts,
// floats of 16 bits as hyparquet reads them, UUIDs.
//
//     npm install hyparquet-writer@0.17 hyparquet && node fixed.mjs
import { parquetReadObjects } from 'hyparquet'
import { parquetWriteBuffer } from 'hyparquet-writer'
import { writeFileSync } from 'node:fs'

const scale = 4
const fixed = [0n, 1n, -1n, 12345n, -12345n, 99999999999999999999999999999n, -123456789012345678901234n, 5000n]
const halves = [0, 1, -2.5, 0.333251953125, 65504, -0.00006103515625, 5.960464477539063e-8, 1024.5]
const keys = fixed.map((_, i) => `0123abcd-89ef-4567-8${i}00-00000000000${i}`)
const decimal = (name, type, type_length, precision) => ({ name, type, type_length, converted_type: 'DECIMAL', scale, precision,
	logical_type: { type: 'DECIMAL', scale, precision }, repetition_type: 'OPTIONAL' })
const file = parquetWriteBuffer({
	columnData: [
		{ name: 'wide', data: fixed }, { name: 'long', data: fixed.map(v => BigInt.asIntN(60, v)) },
		{ name: 'half', data: halves }, { name: 'key', data: keys },
	],
	schema: [
		{ name: 'root', num_children: 4 }, decimal('wide', 'FIXED_LEN_BYTE_ARRAY', 16, 38), decimal('long', 'INT64', undefined, 18),
		{ name: 'half', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 2, logical_type: { type: 'FLOAT16' }, repetition_type: 'OPTIONAL' },
		{ name: 'key', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' }, repetition_type: 'OPTIONAL' },
	],
})
const text = v => {
	const digits = (v < 0n ? -v : v).toString().padStart(scale + 1, '0')
	return (v < 0n ? '-' : '') + digits.slice(0, -scale) + '.' + digits.slice(-scale)
}
const rows = await parquetReadObjects({ file })
writeFileSync('fixed.json', JSON.stringify({ file: Buffer.from(file).toString('base64'), wide: fixed.map(text), long: fixed.map(v => text(BigInt.asIntN(60, v))),
	half: rows.map(r => r.half), key: rows.map(r => r.key) }, null, 1) + '\n')
