import { adminList } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import type { GatewayEnv } from '../shared/home.ts'
import { CommandError, type Output, plain, printData, printObject } from '../shared/output.ts'
import { eventOf, isLedgerRecord, type LedgerRecord, targetOf, textOf } from '../shared/record.ts'
import type { SessionsOptions } from './sessions.ts'

/**
 * `plat show`: one call by its id, which refusals have as `decisionId`.
 * @throws CommandError if the ledger has no such call
 */
export async function showCall(
  { dir, id, output: format }: SessionsOptions & { readonly id: string },
  output: Output,
): Promise<number> {
  const { env } = await findGateway(dir)
  const records = await callRecords(env, id)
  if (format === 'name') output.out(plain(id))
  else if (format === 'json' || format === 'yaml') printData(output, format, records)
  else printObject(output, 'table', callRows(records, format === 'wide'))
  return 0
}

/** The records of a call. @throws CommandError if the ledger has none */
export async function callRecords(env: GatewayEnv, id: string): Promise<readonly LedgerRecord[]> {
  const records = await adminList(env, `/v1/audit/records?call=${encodeURIComponent(id)}`, isLedgerRecord)
  if (records.length > 0) return records
  throw new CommandError(`the ledger has no call ${plain(id)}; plat session <id> -o wide lists the calls of a session`)
}

/** The call in rows: later records know more than earlier ones. */
export function callRows(records: readonly LedgerRecord[], wide: boolean): Readonly<Record<string, string>> {
  const [first] = records
  const known: Readonly<Record<string, unknown>> = Object.assign({}, ...records.map(({ rec }) => rec))
  const text = (name: string) => textOf(known[name])
  const number = (name: string, unit = '') => (typeof known[name] === 'number' ? `${known[name]}${unit}` : '')
  const rows: Readonly<Record<string, string>> = {
    call: text('call'),
    at: textOf(first?.rec.at),
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
