import type { Clock, Ids } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { Ciba } from './client.ts'
import type { CibaConfig } from './config.ts'

export interface CibaOptions {
  readonly config: { readonly ciba: CibaConfig }
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** CA bundle in addition to `caFile` and the system's; null: none. */
  readonly extraCA: string | null
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Confirmation by the user on a device (docs/spec/gateway.md, `ciba`). Null if it is off. Rejects if `caFile` cannot be read. */
export async function createCiba(options: CibaOptions): Promise<Ciba | null> {
  if (!options.config.ciba.enabled) return null
  const { openCiba } = await import('./client.ts')
  return openCiba(options)
}
