import { join } from 'node:path'
import { tempFolder } from '@plat/testkit/local'
import type { Up } from '../up/up.ts'

const NAMES = [
  'PLAT_ADMIN_URL',
  'PLAT_GATEWAY_URL',
  'PLAT_IDENTITY_URL',
  'PLAT_ADMIN_TOKEN',
  'PLAT_BROKER_TOKEN',
  'PLAT_CONTEXTS',
] as const

/** Makes commands of this process talk to a gateway by its addresses alone, as on another machine; returns a function that ends this. */
export function onlyAddresses({ env }: Pick<Up, 'env'>): () => void {
  const before = NAMES.map((name) => [name, process.env[name]] as const)
  const given = { ...env, PLAT_CONTEXTS: join(tempFolder(), 'contexts.json') }
  for (const name of NAMES) process.env[name] = given[name]
  return () => {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}
