import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { readFile, rename, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { reasonOf } from '@plat/core'
import type { Counted, HoldItem } from '@plat/state'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { SentPercents } from '../alerts.ts'

/** Maximum size of the totals file, in bytes. A larger one is ignored, and the ledger is read. */
const MAX_TOTALS_BYTES = 256 * 1024 * 1024
/** Entries per write, so that a large file does not block calls. */
const WRITTEN_AT_ONCE = 500

const whole = () => Type.Integer({ minimum: 0 })
const itemSchema = Type.Object({
  key: Type.String(),
  window: Type.String(),
  cap: whole(),
  amount: whole(),
  unit: Type.Enum(['micros', 'tokens', 'calls'], { type: 'string' }),
})

const totalsSchema = Type.Object({
  version: Type.Literal(1),
  ledger: Type.Object({ seq: whole(), hash: Type.String() }),
  tenants: Type.Optional(Type.Record(Type.String(), Type.Object({ seq: whole(), hash: Type.String() }))),
  totalMicros: whole(),
  open: Type.Array(Type.Object({ call: Type.String(), at: whole(), items: Type.Array(itemSchema) })),
  told: Type.Array(Type.Object({ key: Type.String(), window: Type.String(), percents: Type.Array(whole()) })),
  counted: Type.Array(Type.Object({ key: Type.String(), window: Type.String(), spent: whole(), usedAt: whole() })),
  /** Digest of everything before it in the file. */
  sha256: Type.String(),
})

/** Totals of money, tokens and rates up to one ledger record (docs/spec/gateway.md, `finopsStatePath`). */
export interface SavedTotals {
  /** The last record of the fleet's ledger that the totals include. */
  readonly ledger: { readonly seq: number; readonly hash: string }
  /** The same of the ledgers of tenants, by name. */
  readonly tenants?: Readonly<Record<string, { readonly seq: number; readonly hash: string }>>
  readonly totalMicros: number
  readonly open: readonly OpenCall[]
  readonly told: readonly SentPercents[]
  readonly counted: readonly Omit<Counted, 'held'>[]
}

/** A call with an unsettled hold. */
export interface OpenCall {
  readonly call: string
  /** When the call began or later, in milliseconds since the epoch. */
  readonly at: number
  readonly items: readonly HoldItem[]
}

/**
 * Returns the saved totals, null if there are none, or a text with the reason why they cannot be used. Does not check that they belong
 * to the ledger.
 */
export async function readTotals(path: string): Promise<SavedTotals | string | null> {
  try {
    if ((await stat(path)).size > MAX_TOTALS_BYTES) return `larger than ${MAX_TOTALS_BYTES} bytes`
    const text = await readFile(path, 'utf8')
    const end = text.lastIndexOf(CHECKSUM)
    const value: unknown = JSON.parse(text)
    if (end < 0 || !Value.Check(totalsSchema, value)) return 'not a totals file'
    return createHash('sha256').update(text.slice(0, end)).digest('hex') === value.sha256
      ? value
      : 'the checksum does not match'
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    return error instanceof SyntaxError ? 'not JSON' : reasonOf(error)
  }
}

/** Replaces the file atomically. */
export async function writeTotals(path: string, totals: SavedTotals): Promise<void> {
  const temporary = `${path}.tmp`
  await pipeline(Readable.from(textOf(totals)), createWriteStream(temporary, { mode: 0o600 }))
  await rename(temporary, path)
}

const CHECKSUM = ',"sha256":"'

function* textOf({ counted, ...rest }: SavedTotals): Generator<string> {
  const hash = createHash('sha256')
  const piece = (text: string) => {
    hash.update(text)
    return text
  }
  yield piece(`${JSON.stringify({ version: 1, ...rest }).slice(0, -1)},"counted":[`)
  for (let from = 0; from < counted.length; from += WRITTEN_AT_ONCE) {
    const entries = counted.slice(from, from + WRITTEN_AT_ONCE).map((entry) => JSON.stringify(entry))
    yield piece(`${from === 0 ? '' : ','}${entries.join(',')}`)
  }
  yield piece(']')
  yield `${CHECKSUM}${hash.digest('hex')}"}\n`
}
