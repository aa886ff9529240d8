import type { Ciba, CibaOptions } from './client.ts'

/** Confirmation by the user on a device (docs/spec/gateway.md, `ciba`). Null if it is off. Rejects if `caFile` cannot be read. */
export async function createCiba(options: CibaOptions): Promise<Ciba | null> {
  if (!options.config.ciba.enabled) return null
  const { openCiba } = await import('./client.ts')
  return openCiba(options)
}
