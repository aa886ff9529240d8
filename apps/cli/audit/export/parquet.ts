import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer'
import type { SourceRecord } from '../../shared/ledger-source.ts'
import { type Column, columns } from './columns.ts'
import type { Encoder } from './encoders.ts'

/** Limits of a row group, which is held in memory: records, and characters of their lines. */
const GROUP_RECORDS = 50_000
const GROUP_CHARS = 16 * 1024 * 1024

const TYPES: Readonly<Record<Column['type'], Partial<SchemaElement>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  number: { type: 'INT64' },
  time: { type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } },
}

/** Apache Parquet with Snappy. */
export function parquet(): Encoder {
  return new ParquetEncoder()
}

class ParquetEncoder implements Encoder {
  readonly #bytes = new ByteWriter()
  readonly #writer = new ParquetWriter({
    writer: this.#bytes,
    createdBy: 'plat',
    schema: [
      { name: 'root', num_children: columns.length },
      ...columns.map(
        ({ name, type }): SchemaElement => ({
          name,
          repetition_type: name === 'seq' ? 'REQUIRED' : 'OPTIONAL',
          ...TYPES[type],
        }),
      ),
    ],
  })
  #data = emptyColumns()
  #records = 0
  #chars = 0

  begin(): Uint8Array {
    return this.#written()
  }

  add(record: SourceRecord): Uint8Array {
    for (const [index, column] of columns.entries()) this.#data[index]?.push(cellOf(column, record))
    this.#records++
    this.#chars += record.text.length
    if (this.#records < GROUP_RECORDS && this.#chars < GROUP_CHARS) return new Uint8Array()
    this.#writeGroup()
    return this.#written()
  }

  end(): Uint8Array {
    if (this.#records > 0) this.#writeGroup()
    void this.#writer.finish()
    return this.#written()
  }

  #writeGroup(): void {
    const columnData = columns.map(({ name }, index) => ({ name, data: this.#data[index] ?? [] }))
    void this.#writer.write({ columnData, rowGroupSize: this.#records })
    this.#data = emptyColumns()
    this.#records = 0
    this.#chars = 0
  }

  /** Takes the bytes written so far. Positions count from the start of the file, wherever the buffer begins. */
  #written(): Uint8Array {
    const bytes = Uint8Array.from(this.#bytes.getBytes())
    this.#bytes.index = 0
    return bytes
  }
}

function emptyColumns(): (string | bigint | null)[][] {
  return columns.map(() => [])
}

function cellOf({ type, value }: Column, record: SourceRecord): string | bigint | null {
  const found = value(record)
  if (found === null) return null
  if (type === 'text') return String(found)
  return type === 'number' ? BigInt(found) : microsOf(String(found))
}

/** Microseconds since 1970 of an RFC 3339 time with six fractional digits, which a Date would cut. */
function microsOf(time: string): bigint | null {
  const ms = Date.parse(time)
  if (Number.isNaN(ms)) return null
  const micros = /\.\d{3}(\d{3})/.exec(time)?.[1] ?? '0'
  return BigInt(ms) * 1000n + BigInt(micros)
}
