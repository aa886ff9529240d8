import { mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isObject } from '@plat/core'
import { checkpointsPath, keysPath } from '@plat/ledger'
import { isWhoami } from '../login/whoami.ts'
import { admin, adminList } from '../shared/admin-api.ts'
import type { GatewayEnv } from '../shared/home.ts'
import { headSeq, recordsFrom } from '../shared/ledger-source.ts'
import { CommandError } from '../shared/output.ts'
import { isLedgerRecord, type LedgerRecord } from '../shared/record.ts'

/** Bytes that are written at once. */
const WRITE_BYTES = 1024 * 1024

/**
 * Copies the ledger of a gateway, with its checkpoints and their public keys, into a temporary folder, and removes it after `use`. Lines are canonical
 * JSON, so the copy has the bytes of the ledger.
 * @throws CommandError unless the caller may read the records of all namespaces
 */
export async function withFetchedLedger<T>(env: GatewayEnv, use: (path: string) => Promise<T>): Promise<T> {
  await requireWholeLedger(env)
  const folder = await mkdtemp(join(tmpdir(), 'plat-ledger-'))
  try {
    const path = join(folder, 'audit.jsonl')
    // Records that are added meanwhile are left out, and so are the checkpoints that cover them.
    const head = await headSeq(env)
    await writeRecords(path, recordsFrom(env, 0, head))
    const checkpoints = await adminList(env, '/v1/audit/checkpoints', isLedgerRecord)
    const lines = checkpoints.filter(({ seq }) => seq <= head).toReversed()
    await writeFile(checkpointsPath(path), lines.map((line) => `${JSON.stringify(line)}\n`).join(''), { mode: 0o600 })
    const keys = await admin(env, 'GET', '/v1/audit/jwks')
    if (hasKeys(keys)) await writeFile(keysPath(path), JSON.stringify(keys), { mode: 0o600 })
    return await use(path)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function hasKeys(value: unknown): boolean {
  return isObject(value) && Array.isArray(value.keys) && value.keys.length > 0
}

/** A role in one namespace shows only part of the records, which would look like a ledger with missing ones. */
export async function requireWholeLedger(env: GatewayEnv): Promise<void> {
  const who = await admin(env, 'GET', '/v1/whoami')
  if (isWhoami(who) && who.roles.some((role) => role === 'auditor' || role === 'admin')) return
  throw new CommandError('verifying a whole ledger needs the role auditor in all namespaces (adminAuth.roles)')
}

/** Writes records as lines of a new file. */
export async function writeRecords(path: string, records: AsyncIterable<LedgerRecord>): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    let lines: string[] = []
    let bytes = 0
    for await (const record of records) {
      const line = `${JSON.stringify(record)}\n`
      lines.push(line)
      bytes += line.length
      if (bytes < WRITE_BYTES) continue
      await file.write(lines.join(''))
      lines = []
      bytes = 0
    }
    await file.write(lines.join(''))
  } finally {
    await file.close()
  }
}
