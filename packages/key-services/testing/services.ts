import type { TestContext } from 'node:test'
import { noClouds } from '@plat/cloud/testing'
import { type Clock, systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { type Log, silentLog } from '@plat/process'
import type { KeyCallResult } from '../calls.ts'
import { createKeyServices, type KeyServices } from '../store.ts'

/** Key services with the system's clock, unless another is given; closed after the test. */
export function servicesOf(
  t: TestContext,
  env: NodeJS.ProcessEnv,
  { clock = systemClock, log = silentLog }: { readonly clock?: Clock; readonly log?: Log } = {},
): KeyServices & { readonly calls: KeyCallResult[] } {
  const dialer = createDialer({ log: silentLog })
  const calls: KeyCallResult[] = []
  const services = createKeyServices({
    cloudCredentials: noClouds,
    env,
    dialer,
    clock,
    ids: systemIds(systemClock),
    log,
    onCall: (result) => calls.push(result),
  })
  t.after(() => {
    services.close()
    dialer.close()
  })
  return Object.assign(services, { calls })
}
