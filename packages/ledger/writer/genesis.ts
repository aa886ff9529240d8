import { isObject } from '@plat/core'
import type { AppendHandle } from '@plat/state'

/** Content of the first record of a ledger. */
export interface Genesis {
  readonly ledgerId: string
  readonly tenant: string
  readonly replica: string
}

/** The genesis record is short: it fits in the first block. */
const GENESIS_BYTES = 8192

/** Reads the first line of a ledger. Returns null when it is missing or damaged. */
export function genesisOf(handle: AppendHandle): Genesis | null {
  const block = Buffer.alloc(GENESIS_BYTES)
  const text = block.toString('utf8', 0, handle.read(block, 0)).split('\n', 1)[0] ?? ''
  let line: unknown
  try {
    line = JSON.parse(text)
  } catch {
    return null
  }
  if (!isObject(line) || !isObject(line.rec)) return null
  const { ledgerId, tenant, replica } = line.rec
  const isWhole = typeof ledgerId === 'string' && typeof tenant === 'string' && typeof replica === 'string'
  return isWhole ? { ledgerId, tenant, replica } : null
}
