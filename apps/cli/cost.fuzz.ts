import { costTarget, type Families, type Row } from '../../test/fuzz/cost.ts'
import { json, text } from '../../test/fuzz/families.ts'
import { parquet } from './audit/export/parquet.ts'
import { withoutComments } from './import/jsonc.ts'

/** Commands are alone in their process: work of a longer input need not be divided, only grow as slowly. */
const INPUT = 128 * 1024

const commented: Families = {
  ...text,
  ...json,
  commas: (n) => `[${','.repeat(n)}]`,
  'commas and spaces': (n) => `[${', '.repeat(n / 2)}]`,
  'trailing commas': (n) => `[${'[1,],'.repeat(n / 5)}1]`,
  'open comments': (n) => '/*'.repeat(n / 2),
  'ends of comments': (n) => `/*${'*'.repeat(n)}`,
  comments: (n) => '/**/'.repeat(n / 4),
  'comments of lines': (n) => '//\n'.repeat(n / 3),
  'slashes alone': (n) => '/ '.repeat(n / 2),
  'open strings': (n) => '"\\'.repeat(n / 2),
}

/** Records of one export, one a line. */
const records: Families = {
  'short records': (n) => '{"kind":"call"}\n'.repeat(n / 16),
  'long members': (n) => `${JSON.stringify({ kind: 'a'.repeat(n / 2), tool: 'b'.repeat(n / 2) })}\n`,
  'different members': (n) =>
    Array.from({ length: n / 40 }, (_, at) => `{"kind":"a${at}","tool":"b${at}","ms":${at}}\n`).join(''),
  'the same members': (n) => '{"kind":"a","tool":"b","ms":1}\n'.repeat(n / 31),
  'long times': (n) => `${JSON.stringify({ at: `2026-01-01T00:00:00.${'0'.repeat(n)}Z` })}\n`,
  'repeated bytes': (n) => `${JSON.stringify({ tool: '\0'.repeat(n / 6) })}\n`,
  wide: (n) => `${JSON.stringify({ tool: 'é\u{1f600}'.repeat(n / 3) })}\n`,
}

const rows: readonly Row[] = [
  { parser: 'JSON with comments', limit: INPUT, families: commented, run: withoutComments },
  {
    parser: 'exports to Parquet',
    limit: INPUT / 4,
    families: records,
    prepare(input) {
      const lines = input.split('\n').filter((line) => line !== '')
      const all = lines.map((line, seq) => ({ seq, rec: JSON.parse(line), text: line }))
      return () => {
        const encoder = parquet()
        encoder.begin()
        for (const record of all) encoder.add(record)
        return encoder.end()
      }
    },
  },
]

export const target = costTarget('cost/cli', rows)
