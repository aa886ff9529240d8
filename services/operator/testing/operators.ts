import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { parseFlags } from '@plat/config'
import { systemClock, systemIds } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { operatorFlags } from '../flags.ts'
import { type Operator, startOperator } from '../start.ts'

export const API = '/apis/plat.dev/v1alpha1'
export const OUT = '/api/v1/namespaces/plat-system'

/** An API server, and operators on it, until the test ends. `rendered`: content of `plat-<name>`, compressed or not; null: it is not there. */
export async function setUpOperators(t: TestContext) {
  const server = new KubernetesApiServer()
  await server.start()
  const clock = systemClock
  const dialer = createDialer({ clock, log: silentLog })
  const running: Operator[] = []
  t.after(async () => {
    await Promise.all(running.map((operator) => operator.drain()))
    dialer.close()
    await server.stop()
  })
  const start = async (...more: readonly string[]): Promise<Operator> => {
    const quick = ['-leader-elect-renew-deadline=5s', '-leader-elect-retry-period=100ms']
    const argv = ['-metrics-bind-address=127.0.0.1:0', ...quick, ...more]
    const parsed = parseFlags(operatorFlags, argv)
    if (!parsed.ok) assert.fail(parsed.message)
    const access = {
      server: server.url,
      namespace: 'plat-system',
      credentials: async () => ({ headers: {}, trust: {} }),
    }
    const parts = { access, dialer, clock, ids: systemIds(clock), log: silentLog, host: 'test', broker: null }
    const operator = await startOperator({ flags: parsed.values, ...parts })
    running.push(operator)
    return operator
  }
  const rendered = (name: string) => {
    const { data, binaryData } = Object(server.get(`${OUT}/configmaps/plat-${name}`))
    const packed = binaryData?.[`${name}.json.gz`]
    if (packed !== undefined) return JSON.parse(gunzipSync(Buffer.from(packed, 'base64')).toString())
    return data === undefined ? null : JSON.parse(data[`${name}.json`])
  }
  return { server, start, rendered }
}
