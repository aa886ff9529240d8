import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from '@plat/core'
import { adminList, adminPages } from '../shared/admin-api.ts'
import { findGateway } from '../shared/gateway.ts'
import type { GatewayEnv } from '../shared/home.ts'
import { CommandError, type Output } from '../shared/output.ts'
import { isLedgerRecord, type LedgerRecord } from '../shared/record.ts'
import { requireWholeLedger, writeRecords } from './fetched.ts'

export interface AuditPullOptions {
  /** The new folder. */
  readonly folder: string
  readonly dir?: string
}

/** Records of a page; the most that the admin API returns. */
const PAGE_RECORDS = 1000
const FOLDER_MODE = 0o700

/** A ledger of one replica, as the gateway lists it. */
export interface ReplicaLedger {
  readonly replica: string
  readonly ledgerId: string
  readonly seq: number
}

/** `plat audit pull`: copies the ledgers of all replicas into a folder, one folder each, as `plat audit verify` reads it. */
export async function auditPull({ folder, dir }: AuditPullOptions, output: Output): Promise<number> {
  const { env } = await findGateway(dir)
  await requireWholeLedger(env)
  const replicas = await replicaLedgers(env)
  await mkdir(folder, { mode: FOLDER_MODE }).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    throw new CommandError(`${folder} exists already: name a new folder`)
  })
  for (const ledger of replicas) {
    const target = join(folder, folderName(ledger))
    await mkdir(target, { mode: FOLDER_MODE })
    await writeRecords(join(target, 'audit.jsonl'), wholeLedger(env, ledger))
    output.out(`${target}: ${ledger.seq + 1} records of ${ledger.replica}`)
  }
  output.out(`verify with: plat audit verify ${folder} -key <public key of the checkpoints>`)
  return 0
}

/** Returns the ledgers of all replicas, that of the gateway first. */
export function replicaLedgers(env: GatewayEnv): Promise<readonly ReplicaLedger[]> {
  return adminList(env, '/v1/audit/replicas', isReplicaLedger)
}

function isReplicaLedger(value: unknown): value is ReplicaLedger {
  if (!isObject(value)) return false
  const { replica, ledgerId, seq } = value
  return typeof replica === 'string' && typeof ledgerId === 'string' && typeof seq === 'number'
}

/** Names come from the database: nothing of them may lead to another folder. */
function folderName({ replica, ledgerId }: ReplicaLedger): string {
  return `${replica}-${ledgerId}`.replaceAll(/[^\w.-]/g, '_').replace(/^\.+/, '_')
}

/** Yields all records up to the listed one. Throws CommandError if one is missing. */
async function* wholeLedger(env: GatewayEnv, { replica, ledgerId, seq }: ReplicaLedger): AsyncGenerator<LedgerRecord> {
  const query = new URLSearchParams({ replica: ledgerId, from: '0', to: String(seq), limit: String(PAGE_RECORDS) })
  let next = 0
  for await (const record of adminPages(env, `/v1/audit/records?${query}`, isLedgerRecord)) {
    if (record.seq !== next) throw missing(replica, next, record.seq - 1)
    next++
    yield record
  }
  if (next <= seq) throw missing(replica, next, seq)
}

function missing(replica: string, from: number, to: number): CommandError {
  return new CommandError(
    `records ${from} to ${to} of ${replica} are not at the gateway: GET /v1/audit/segments lists what left (auditRetention)`,
  )
}
