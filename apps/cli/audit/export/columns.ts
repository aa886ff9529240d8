import type { SourceRecord } from '../../shared/ledger-source.ts'
import { hitsOf } from '../../shared/record.ts'

/** A column of an exported table: a text, a whole number, or a time in microseconds since 1970. */
export interface Column {
  readonly name: string
  readonly type: 'text' | 'number' | 'time'
  /** Returns null when the record has no such value. */
  value(record: SourceRecord): string | number | null
}

/** Columns of CSV and Parquet, in order; docs/ledger.md lists them. `record` has all members, also those that are columns. */
export const columns: readonly Column[] = [
  { name: 'seq', type: 'number', value: ({ seq }) => seq },
  { name: 'at', type: 'time', value: ({ rec }) => textIn(rec.at) },
  ...textsOf('kind', 'namespace', 'agent', 'session', 'user', 'op', 'server', 'tool', 'method', 'call', 'action'),
  ...textsOf('policy', 'rule', 'reason', 'code', 'result'),
  ...numbersOf('status', 'ms', 'upstreamMs'),
  ...textsOf('route', 'model'),
  usageOf('promptTokens', 'prompt'),
  usageOf('completionTokens', 'completion'),
  ...numbersOf('costMicros'),
  ...textsOf('currency', 'argsSha256', 'approval', 'traceId'),
  { name: 'dlpHits', type: 'number', value: hitCount },
  { name: 'hash', type: 'text', value: ({ text }) => HASH.exec(text)?.[1] ?? null },
  { name: 'record', type: 'text', value: ({ rec }) => JSON.stringify(rec) },
]

const HASH = /^\{"hash":"([0-9a-f]{64})"/

function textsOf(...names: readonly string[]): Column[] {
  return names.map((name) => ({ name, type: 'text', value: ({ rec }) => textIn(rec[name]) }))
}

function numbersOf(...names: readonly string[]): Column[] {
  return names.map((name) => ({ name, type: 'number', value: ({ rec }) => numberIn(rec[name]) }))
}

function usageOf(name: string, member: string): Column {
  return {
    name,
    type: 'number',
    value: ({ rec: { usage } }) =>
      typeof usage === 'object' && usage !== null ? numberIn(Reflect.get(usage, member)) : null,
  }
}

/** Null if there were none. */
function hitCount({ rec }: SourceRecord): number | null {
  const hits = hitsOf(rec)
  return hits.length === 0 ? null : hits.reduce((sum, { count }) => sum + count, 0)
}

function textIn(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function numberIn(value: unknown): number | null {
  return Number.isSafeInteger(value) ? Number(value) : null
}
