import { readFile } from 'node:fs/promises'
import { readSecret } from '@plat/config'
import { isObject, reasonOf } from '@plat/core'
import {
  ArchivedError,
  EXIT_CODES,
  hmacKeyOf,
  type Receipt,
  readTrust,
  receiptBeside,
  receiptFromLedger,
  SegmentListError,
  VerifyUsageError,
  verifyReceipt,
} from '@plat/ledger'
import { admin } from '../shared/admin-api.ts'
import { EXIT } from '../shared/exit-codes.ts'
import type { GatewayEnv } from '../shared/home.ts'
import type { LedgerSource } from '../shared/ledger-source.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { printData, printObject } from '../shared/print.ts'

export type AuditProofOptions = LedgerSource & {
  /** The record's number, as typed. */
  readonly seq: string
  readonly output: Format
}

/** Prints one record with its proof of inclusion, which can be verified with only the public key. */
export async function auditProof(options: AuditProofOptions, output: Output): Promise<number> {
  const { seq, output: format } = options
  if (!/^\d{1,15}$/.test(seq)) throw new CommandError(`${seq}: give the number of a record`, EXIT_CODES.usage)
  const receipt = 'env' in options ? await fetchReceipt(options.env, Number(seq)) : await ownReceipt(options.path, seq)
  printData(output, format === 'yaml' ? 'yaml' : 'json', receipt)
  return 0
}

/** @throws CommandError if the record does not exist, or no checkpoint covers it */
async function ownReceipt(path: string, seq: string): Promise<Receipt> {
  const receipt = await readReceiptOf(path, Number(seq)).catch((error: unknown) => {
    const isElsewhere = error instanceof ArchivedError || error instanceof SegmentListError
    throw new CommandError(reasonOf(error), isElsewhere ? EXIT.failed : EXIT_CODES.broken)
  })
  if (receipt === 'no record') throw new CommandError(`${path} has no record ${seq}`, EXIT_CODES.usage)
  if (receipt !== 'no checkpoint') return receipt
  throw new CommandError(
    `no checkpoint covers record ${seq} yet; the gateway makes them with auditCheckpointKey`,
    EXIT_CODES.unproven,
  )
}

/**
 * Reads the tree beside the ledger, which is fast and has the hashes of records whose segments left. Where it is missing or of another ledger, all records
 * are hashed.
 */
async function readReceiptOf(path: string, seq: number): ReturnType<typeof receiptFromLedger> {
  const receipt = await receiptBeside(path, seq).catch((error: unknown) => {
    if (error instanceof ArchivedError) throw error
    return null
  })
  return typeof receipt === 'object' && receipt !== null ? receipt : receiptFromLedger(path, seq)
}

/** The receipt of a record by the admin API; `ledgerId`: of another replica. @throws AdminRefusalError `not_found` likewise */
export async function fetchReceipt(env: GatewayEnv, seq: number, ledgerId?: string): Promise<object> {
  const query = ledgerId === undefined ? '' : `?replica=${encodeURIComponent(ledgerId)}`
  const receipt = await admin(env, 'GET', `/v1/audit/proof/${seq}${query}`)
  if (isObject(receipt) && typeof receipt.line === 'string') return receipt
  throw new CommandError('the response of the gateway is not a receipt')
}

export interface VerifyProofOptions {
  /** Output of `plat audit proof` or `/v1/audit/proof/{seq}`. */
  readonly file: string
  readonly key?: string
  readonly output: Format
}

/** Checks a record and its proof without any ledger: 0 proven, 3 forged, 4 not signed by what was given. */
export async function auditVerifyProof(
  { file, key, output: format }: VerifyProofOptions,
  output: Output,
  env: NodeJS.ProcessEnv = process.env,
): Promise<number> {
  const hmacKey = hmacKeyOf(readSecret(env, 'PLAT_AUDIT_HMAC_KEY'))
  try {
    const trust = await readTrust({ ...(key !== undefined && { key }), hmacKey })
    if (trust === null) throw new VerifyUsageError('name the public key of the checkpoints with -key')
    const found = verifyReceipt(await readReceipt(file), trust)
    if (typeof found === 'string') {
      output.out(`broken: ${found}`)
      return EXIT_CODES.broken
    }
    const { seq, hash, ledgerId, size, signed } = found
    if (signed !== true) {
      output.out('unproven: nothing that was given signed the checkpoint')
      return EXIT_CODES.unproven
    }
    if (format === 'table') {
      output.out(`valid: record ${seq}, hash ${hash}, is in ledger ${ledgerId}, signed with its first ${size} records`)
    } else printObject(output, format, { verdict: 'valid', seq, hash, ledgerId, size })
    return EXIT_CODES.valid
  } catch (error) {
    if (!(error instanceof VerifyUsageError)) throw error
    output.err(`plat: ${error.message}`)
    return EXIT_CODES.usage
  }
}

async function readReceipt(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    throw new VerifyUsageError(`${file} holds no receipt that can be read: ${reasonOf(error)}`)
  }
}
