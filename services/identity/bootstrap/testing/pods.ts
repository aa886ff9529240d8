import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { json, startTestBroker } from '../../testing/broker.ts'
import { adoptedCluster, clusterOf, projectedToken } from './cluster.ts'

type StartOptions = Parameters<typeof startTestBroker>[1]

/** A broker with a bootstrap address beside a small API server, and the requests of pods. */
export async function setUp(t: TestContext, options: StartOptions = {}) {
  const server = await adoptedCluster(t)
  const cluster = await clusterOf(t, server)
  const broker = await startTestBroker(t, { bootstrapListen: '127.0.0.1:0', cluster, ...options })
  const url = broker.identity.bootstrapUrl
  const ask = async (query = '', authorization: string | null = `Bearer ${projectedToken()}`) => {
    const headers = authorization === null ? {} : { authorization }
    const response = await fetch(`${url}/v1/bootstrap${query}`, { method: 'POST', headers })
    return { status: response.status, headers: response.headers, body: await json(response) }
  }
  const refused = async (query = '') => {
    const { status, body } = await ask(query)
    assert.equal(typeof body.error_description, 'string')
    return `${status} ${body.error}`
  }
  return { server, broker, url, ask, refused, clock: broker.clock }
}

/** Waits for a condition; the test's own time-out is the bound. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}
