import { cloudConfigOf } from '@plat/cloud'
import { type Clock, systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { createKeyServices } from '@plat/key-services'
import type { KeyStore } from '@plat/keys'
import { silentLog } from '@plat/process'

/** Runs `use` with keys in files and in key services, with the cloud credentials of the environment. */
export async function withKeys<T>(
  use: (keys: KeyStore) => Promise<T>,
  { env = process.env, clock = systemClock }: { readonly env?: NodeJS.ProcessEnv; readonly clock?: Clock } = {},
): Promise<T> {
  const dialer = createDialer({ clock, log: silentLog })
  const options = { cloudCredentials: cloudConfigOf(env), env, dialer, clock, ids: systemIds(clock), log: silentLog }
  const keys = createKeyServices(options)
  try {
    return await use(keys)
  } finally {
    keys.close()
    dialer.close()
  }
}
