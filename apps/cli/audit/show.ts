import { callRecords, callRows } from '../sessions/show.ts'
import { AdminRefusalError } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import type { GatewayEnv } from '../shared/home.ts'
import { type Format, type Output, printData, printObject } from '../shared/output.ts'
import { fetchReceipt } from './proof.ts'

export interface AuditShowOptions {
  readonly dir?: string | undefined
  readonly id: string
  readonly output: Format
}

/**
 * `plat audit show`: a decision with its policy and rule, its records, and the receipt of the last one.
 * @throws CommandError if the ledger has no such call
 */
export async function auditShow({ dir, id, output: format }: AuditShowOptions, output: Output): Promise<number> {
  const { env } = await findGateway(dir)
  const records = await callRecords(env, id)
  const last = Math.max(...records.map(({ seq }) => seq))
  const receipt = await receiptOf(env, last)
  if (format !== 'table') {
    printData(output, format, { records, receipt })
    return 0
  }
  const next = receipt === null ? 'no checkpoint covers it yet' : `plat audit proof ${last} prints it`
  printObject(output, format, { ...callRows(records, true), receipt: `of record ${last}: ${next}` })
  return 0
}

/** Null: no checkpoint covers the record yet. */
async function receiptOf(env: GatewayEnv, seq: number): Promise<object | null> {
  return await fetchReceipt(env, seq).catch((error: unknown) => {
    if (error instanceof AdminRefusalError && error.code === 'not_found') return null
    throw error
  })
}
