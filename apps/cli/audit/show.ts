import { readSecret } from '@plat/config'
import { isObject, reasonOf } from '@plat/core'
import { readPublicKeys } from '@plat/keys'
import {
  EXIT_CODES,
  hmacKeyOf,
  keysPath,
  readTrust,
  receiptBeside,
  VerifyUsageError,
  verifyReceipt,
} from '@plat/ledger'
import { placeOfRule } from '../policy/trial.ts'
import { AdminRefusalError, admin } from '../shared/admin-api.ts'
import { decisionRecords, decisionRows } from '../shared/decision.ts'
import type { LedgerSource, SourceRecord } from '../shared/ledger-source.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { printData, printObject } from '../shared/print.ts'
import { fetchReceipt } from './proof.ts'
import { replicaLedgers } from './pull.ts'

export type AuditShowOptions = LedgerSource & {
  readonly id: string
  /** Folder whose resources have the rule. */
  readonly file?: string
  /** Public keys of the checkpoints. Default: those of the gateway, or beside the ledger. */
  readonly key?: string
  readonly output: Format
}

/** Receipt of the last record of a decision, and how it verifies. */
interface Proof {
  readonly receipt: object | null
  readonly state: 'proven' | 'forged' | 'unsigned' | 'uncovered'
  readonly text: string
}

/**
 * `plat audit show`: a decision with its policy and rule, its records, approval and cost, and the receipt of the last record.
 * @returns 0, or 3 when the receipt does not verify
 * @throws CommandError if the ledger has no such call
 */
export async function auditShow(
  options: AuditShowOptions,
  output: Output,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const { id, file, output: format } = options
  const records = await decisionRecords(options, id)
  // Records of a call can be in the ledgers of several replicas: they are in the order of their times.
  const record = records.at(-1)
  if (record === undefined) throw new CommandError(`${id} has no record`)
  const { seq: last } = record
  const proof = await proofOf(options, record, env)
  const rows = decisionRows(records, true)
  const { policy = null, rule = null } = rows
  const place = file === undefined || policy === null ? null : await placeOfRule(file, { policy, rule })
  const exitCode = proof.state === 'forged' ? EXIT_CODES.broken : 0
  if (format !== 'table') {
    const { receipt, state } = proof
    const lines = records.map(({ text: _, ...line }) => line)
    printData(output, format, { records: lines, receipt, proof: state, ...(file !== undefined && { rule: place }) })
    return exitCode
  }
  const where = file === undefined ? {} : { 'rule at': place ?? `not in ${file}` }
  printObject(output, format, { ...rows, ...where, receipt: `of record ${last}: ${proof.text}` })
  return exitCode
}

async function proofOf(options: AuditShowOptions, record: SourceRecord, env: NodeJS.ProcessEnv): Promise<Proof> {
  const { seq } = record
  const receipt = 'env' in options ? await fetched(options, record) : await besideLedger(options.path, seq)
  if (typeof receipt === 'string') return { receipt: null, state: 'uncovered', text: receipt }
  const trust = await trustOf(options, env)
  const found = verifyReceipt(receipt, trust)
  if (typeof found === 'string') return { receipt, state: 'forged', text: `broken: ${found}` }
  const printed = `plat audit proof ${seq} prints it`
  if (found.signed !== true) {
    return { receipt, state: 'unsigned', text: `in the tree of a checkpoint that no given key signed; ${printed}` }
  }
  return { receipt, state: 'proven', text: `proven by a signed checkpoint over ${found.size} records; ${printed}` }
}

const UNCOVERED = 'no checkpoint covers it yet'

/** Returns a reason instead when there is none. */
async function fetched(
  { env }: Extract<LedgerSource, { env: unknown }>,
  { seq, rec, text }: SourceRecord,
): Promise<object | string> {
  const ledgers = await replicaLedgers(env)
  // Host names change, and several ledgers can have one.
  const named = ledgers.filter(({ replica }) => replica === rec.replica)
  for (const { ledgerId } of named.length === 0 ? ledgers : named) {
    const receipt = await fetchReceipt(env, seq, ledgerId).catch((error: unknown) => {
      if (error instanceof AdminRefusalError && error.code === 'not_found') return null
      throw error
    })
    if (receipt !== null && 'line' in receipt && receipt.line === text) return receipt
  }
  return UNCOVERED
}

/** Reads the tree beside the ledger: without it, a receipt needs a read of the whole ledger. */
async function besideLedger(path: string, seq: number): Promise<object | string> {
  const receipt = await receiptBeside(path, seq).catch((error: unknown) => {
    return `not available from the tree beside the ledger (${reasonOf(error)}); plat audit proof ${seq} ${path} reads the ledger`
  })
  return receipt === 'no checkpoint' || receipt === 'no record' ? UNCOVERED : receipt
}

/** Keys that are given, else those that the gateway publishes, or that are beside the ledger. */
async function trustOf(options: AuditShowOptions, env: NodeJS.ProcessEnv) {
  const hmacKey = hmacKeyOf(readSecret(env, 'PLAT_AUDIT_HMAC_KEY'))
  if (options.key === undefined && 'env' in options) {
    const published = await admin(options.env, 'GET', '/v1/audit/jwks')
    const hasKeys = isObject(published) && Array.isArray(published.keys) && published.keys.length > 0
    const keys = hasKeys ? readPublicKeys(JSON.stringify(published), 'the keys of the gateway') : []
    return keys.length === 0 && hmacKey === null ? null : { keys, hmacKey }
  }
  try {
    const key = options.key ?? ('path' in options ? keysPath(options.path) : undefined)
    return await readTrust({ ...(key !== undefined && { key }), hmacKey })
  } catch (error) {
    if (!(error instanceof VerifyUsageError)) throw error
    if (options.key !== undefined) throw new CommandError(error.message, EXIT_CODES.usage)
    return await readTrust({ hmacKey })
  }
}
