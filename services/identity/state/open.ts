import { reasonOf, watchedPool } from '@plat/core'
import type { Log } from '@plat/process'
import { openPostgresOnceSets, readDsn } from '@plat/state'
import { PoolLog } from '../serve/pools.ts'
import { type BrokerState, memoryState, type StateParts, sharedState } from './state.ts'

export interface OpenState {
  readonly state: BrokerState
  close(): Promise<void>
}

/** Opens what flag `-state-dsn-file` names. Rejects with one line naming the flag; it never quotes the DSN. */
export async function openState(dsnFile: string, parts: StateParts & { readonly log: Log }): Promise<OpenState> {
  const { clock, ids, log } = parts
  const common = { clock, ids, pools: new PoolLog(clock, log) }
  if (dsnFile === '') return { state: memoryState(common), close: async () => {} }
  try {
    const dsn = await readDsn(dsnFile)
    const requests = watchedPool({ name: 'set_requests', observer: common.pools.of('set_requests') })
    const sets = await openPostgresOnceSets({ dsn, clock, requests, warn: (message) => log.warn({}, message) })
    return { state: sharedState(sets, common), close: () => sets.close() }
  } catch (error) {
    throw new Error(`-state-dsn-file ${dsnFile}: ${reasonOf(error)}`)
  }
}
