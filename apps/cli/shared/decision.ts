import { rfc3339Micros } from '@plat/core'
import { earliestOf, type RecordFilter } from '@plat/ledger'
import { type LedgerSource, type SourceRecord, searchRecords } from './ledger-source.ts'
import { leftText } from './left-records.ts'
import { CommandError, plain } from './output.ts'
import { eventOf, hitsOf, targetOf, textOf } from './record.ts'

/**
 * Returns the records of a call, and of the approval that it used. The id of a call says when it began, so that the ledger before is searched only
 * when it has no such call afterwards.
 * @throws CommandError if the ledger has none
 */
export async function decisionRecords(source: LedgerSource, id: string): Promise<readonly SourceRecord[]> {
  const records = await recordsOfCall(source, id)
  const approval = records.map(({ rec }) => textOf(rec.approval)).find((one) => one !== '')
  if (approval === undefined) return records
  const about = await selected(source, { kind: 'approval', text: approval }, { id: approval, isEnd: () => false })
  // Ledgers of several replicas can have records of one number.
  const all = new Map([...about, ...records].map((record) => [record.text, record]))
  return [...all.values()].toSorted(byTime)
}

/** Records of one ledger in their order, those of several by their times. */
function byTime(one: SourceRecord, other: SourceRecord): number {
  const [at, otherAt] = [textOf(one.rec.at), textOf(other.rec.at)]
  return at === otherAt ? one.seq - other.seq : at < otherAt ? -1 : 1
}

async function recordsOfCall(source: LedgerSource, id: string): Promise<readonly SourceRecord[]> {
  const isEnd = ({ rec }: SourceRecord) => rec.kind === 'outcome' || rec.kind === 'decision'
  const records = await selected(source, { call: id }, { id, isEnd })
  if (records.length > 0) return records
  const earliest = earliestOf(id)
  const left = await leftText(source, { from: earliest === null ? 0 : { at: rfc3339Micros(earliest) } })
  const why = left ?? 'plat session <id> -o wide lists the calls of a session'
  throw new CommandError(`the ledger has no call ${plain(id)}; ${why}`)
}

interface Expected {
  /** Id that says when the first record was written. */
  readonly id: string
  readonly isEnd: (record: SourceRecord) => boolean
}

async function selected(
  source: LedgerSource,
  filter: RecordFilter,
  expected: Expected,
): Promise<readonly SourceRecord[]> {
  const earliest = earliestOf(expected.id)
  const froms = earliest === null ? [0] : [{ at: rfc3339Micros(earliest) }, 0]
  const records: SourceRecord[] = []
  for (const from of froms) {
    for await (const record of searchRecords(source, { filter, from })) {
      records.push(record)
      if (expected.isEnd(record)) return records
    }
    if (records.length > 0) return records
  }
  return records
}

/** The call in rows: later records know more than earlier ones. */
export function decisionRows(records: readonly SourceRecord[], wide: boolean): Readonly<Record<string, string>> {
  const calls = records.filter(({ rec }) => rec.kind !== 'approval')
  const known: Readonly<Record<string, unknown>> = Object.assign({}, ...calls.map(({ rec }) => rec))
  const text = (name: string) => textOf(known[name])
  const number = (name: string, unit = '') => (typeof known[name] === 'number' ? `${known[name]}${unit}` : '')
  const rows: Readonly<Record<string, string>> = {
    call: text('call'),
    at: textOf(calls[0]?.rec.at),
    session: [text('namespace'), text('agent'), text('session')].join('/'),
    user: text('user'),
    target: targetOf(known),
    action: text('action'),
    policy: text('policy'),
    rule: text('rule'),
    reason: text('reason'),
    code: text('code'),
    result: text('result'),
    status: number('status'),
    took: number('ms', ' ms'),
    cost: costOf(known),
    dlp: dlpOf(known),
    approval: approvalOf(records),
    events: records.map(({ rec }) => eventOf(rec)).join(', '),
    records: records.map(({ seq }) => seq).join(', '),
    ...(wide && {
      method: text('method'),
      arguments: text('argsSha256'),
      policyRevision: text('policyRevision'),
      token: text('jti'),
      trace: text('traceId'),
    }),
  }
  return Object.fromEntries(Object.entries(rows).filter(([, value]) => value !== ''))
}

function costOf({ costMicros, currency }: Readonly<Record<string, unknown>>): string {
  if (typeof costMicros !== 'number' || costMicros === 0) return ''
  return `${(costMicros / 1e6).toFixed(6)} ${textOf(currency)}`.trimEnd()
}

/** Hits by detector: `credit_card in arguments: 2 redact`. */
function dlpOf(rec: Readonly<Record<string, unknown>>): string {
  return hitsOf(rec)
    .map(({ action, count, detector, direction }) => plain(`${detector} in ${direction}: ${count} ${action}`))
    .join(', ')
}

/** Id of the approval, its decision, and the person who decided. */
function approvalOf(records: readonly SourceRecord[]): string {
  const about = records.filter(({ rec }) => rec.kind === 'approval')
  const id = textOf(about[0]?.rec.approval)
  const decided = about.findLast(({ rec }) => rec.event === 'granted' || rec.event === 'denied')?.rec
  if (id === '' || decided === undefined) return id
  const by = textOf(decided.by)
  return `${id} ${textOf(decided.event)}${by === '' ? '' : ` by ${by}`}`
}
