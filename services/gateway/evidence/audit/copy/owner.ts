import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Ids } from '@plat/core'
import { replaceText } from '@plat/ledger'
import { type LedgerCopies, systemFiles } from '@plat/state'

/** Where the copy of a ledger is, and what it is compared with. */
export interface CopyStore {
  readonly copies: LedgerCopies
  /** The last durable record of each ledger. */
  readonly heads: { read(ledgerId: string): Promise<string | null>; remove(ledgerId: string): Promise<void> }
}

/** Name of a ledger among all gateways. */
export interface CopyName {
  readonly tenant: string
  readonly replica: string
  readonly path: string
}

/** Returns the name of a ledger of this gateway: the host and the path of its file. */
export function nameOf(path: string, tenant: string): CopyName {
  return { tenant, replica: hostname(), path: resolve(path) }
}

const UUID = /^[0-9a-f-]{36}$/

/** Returns the id of the disk of a ledger, made at the first call: a process that starts again on it is no other writer. */
export async function writerOf(path: string, ids: Ids): Promise<string> {
  const file = `${path}.writer`
  const known = Buffer.from(systemFiles.readWhole(file) ?? [])
    .toString()
    .trim()
  if (UUID.test(known)) return known
  const made = ids.uuid()
  await replaceText(file, `${made}\n`)
  return made
}
