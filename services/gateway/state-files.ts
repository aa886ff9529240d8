import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { type Clock, reasonOf } from '@plat/core'
import { tailLedger } from '@plat/ledger'
import type { Log } from '@plat/process'
import { lockPath, type MovableState, readJournalFile } from '@plat/state'
import type { GatewayConfig } from './config.ts'
import { openLimits } from './decide/budgets/index.ts'
import { SEAL_KEY_FILE } from './planes/mcp/seal/key.ts'
import { stateJournals } from './state-journals.ts'

/** State in files, locked until it is closed, so that no gateway uses it. */
export interface StateFiles extends Disposable {
  /** Files by the name of their journal; the ledger by `counters`. */
  readonly files: ReadonlyMap<string, string>
  readonly state: MovableState
}

/**
 * Reads the state of a gateway from its files without changing one. Throws LockedError while a gateway uses them, and an error with one line when a
 * file cannot be read.
 */
export async function readStateFiles(config: GatewayConfig, using: { clock: Clock; log: Log }): Promise<StateFiles> {
  const stack = new DisposableStack()
  try {
    // A file that does not exist is not locked: its folder may not exist either.
    const lock = (file: string) => void (existsSync(file) && stack.defer(lockPath(file)))
    lock(config.auditPath)
    const journals: MovableState['journals'][0][] = []
    const files = new Map([['counters', config.auditPath]])
    for (const { name, path: file, decode } of stateJournals(config)) {
      if (file !== '') lock(file)
      files.set(name, file)
      const read = file === '' ? null : readJournalFile(file, decode)
      journals.push({ name, ...(read ?? { seq: 0, events: [] }) })
    }
    const sealKey = path.join(path.dirname(config.auditPath), SEAL_KEY_FILE)
    files.set(SEAL_KEY_FILE, sealKey)
    const key = existsSync(sealKey) ? (await readFile(sealKey, 'utf8')).trimEnd() : null
    const secrets = key === null ? [] : [{ name: SEAL_KEY_FILE, value: key }]
    const counters = await readCounters(config, { ...using, lock })
    const held = stack.move()
    return { files, state: { journals, counters, secrets }, [Symbol.dispose]: () => held.dispose() }
  } catch (error) {
    stack.dispose()
    throw error
  }
}

/** Amounts spent in current windows: the saved totals, with the records of all ledgers after them. */
async function readCounters(
  config: GatewayConfig,
  { clock, log, lock }: { clock: Clock; log: Log; lock: (file: string) => void },
): Promise<MovableState['counters']> {
  const ledgers = await ledgersOf(config)
  for (const { tenant, file } of ledgers) if (tenant !== '') lock(file)
  const read = async (rebuild: boolean) => {
    const { limits, spending } = await openLimits({ config, shared: null, rebuild, clock, log })
    for (const { tenant, file } of ledgers) {
      const see = spending.seeOf(tenant)
      const from = spending.sinceOf(tenant)?.seq ?? 0
      for await (const { seq, hash, rec } of tailLedger(file, { from }))
        see(Buffer.from(JSON.stringify(rec)), { seq, hash })
    }
    const isForeign = spending.mustReadAgain
    spending.finish()
    return { limits, isForeign }
  }
  try {
    const saved = await read(false)
    const { limits } = saved.isForeign ? await read(true) : saved
    return [...limits.counted()].filter(({ spent }) => spent > 0)
  } catch (error) {
    throw new Error(`${config.auditPath}: the spent amounts cannot be read from the ledger: ${reasonOf(error)}`)
  }
}

/** The ledgers that exist: the fleet's, and those of tenants. */
async function ledgersOf({ auditPath, tenantsFile, tenantLedgerDir }: GatewayConfig) {
  const dir = tenantLedgerDir || path.join(path.dirname(auditPath), 'tenants')
  const names = tenantsFile === '' ? [] : await readdir(dir).catch(() => [])
  const all = [
    { tenant: '', file: auditPath },
    ...names.map((tenant) => ({ tenant, file: path.join(dir, tenant, 'audit.jsonl') })),
  ]
  return all.filter(({ file }) => existsSync(file))
}
