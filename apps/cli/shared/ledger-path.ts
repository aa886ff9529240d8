import { join } from 'node:path'
import { findFolder } from './gateway.ts'

/** The ledger that a command means: the one named, else that of the running plat. */
export async function ledgerPath(path: string | undefined, dir: string | undefined): Promise<string> {
  if (path !== undefined) return path
  const { home } = await findFolder(dir)
  return join(home.state, 'audit.jsonl')
}
