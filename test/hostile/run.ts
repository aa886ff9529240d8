import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { makeKeys, startIdentity } from '../../bench/harness/plat.ts'
import { sendOneByteChunks } from './one-byte.ts'
import { HealthPoller } from './poller.ts'
import { ANONYMOUS_REQUESTS, type HostileRequest, hostileRules, MCP_REQUESTS, MODEL_REQUESTS } from './requests.ts'
import { send } from './send.ts'

const MIB = 1024 * 1024
/** Maximum response time of `/healthz` under any load, in milliseconds. */
const MAX_HEALTH_MS = 200
const MAX_GROWTH_MIB = 64
/** How often each request is sent. The least of the longest polls counts: what the request costs comes back, noise does not. */
const TIMES = 3
/** How long a service is left alone before a measurement, in milliseconds. */
const REST_MS = 500

interface Attacked {
  readonly name: string
  readonly url: string
  readonly token: string
  readonly requests: readonly (readonly [path: string, request: HostileRequest])[]
}

/** Sends each request alone, and prints how long `/healthz` took meanwhile. Returns how many took it beyond its bound. */
async function attack({ name, url, token, requests }: Attacked): Promise<number> {
  const poller = new HealthPoller(url)
  let failed = 0
  try {
    await sleep(REST_MS)
    await poller.longestMs()
    await sleep(REST_MS)
    console.log(`${name} at rest: ${(await poller.longestMs()).toFixed(0)} ms`)
    for (const [at, request] of requests) {
      let least = Number.POSITIVE_INFINITY
      const statuses = new Set<string>()
      const bytes = request.make({ path: at, token })
      for (let times = 0; times < TIMES; times++) {
        await sleep(REST_MS)
        await poller.longestMs()
        statuses.add(await send(url, bytes))
        least = Math.min(least, await poller.longestMs())
      }
      if (least > MAX_HEALTH_MS) failed++
      const verdict = least > MAX_HEALTH_MS ? `  MORE THAN ${MAX_HEALTH_MS}` : ''
      console.log(`${name}, ${request.name} (${[...statuses].join(', ')}): ${least.toFixed(0)} ms${verdict}`)
    }
  } finally {
    await poller.close()
  }
  return failed
}

async function attackGateway(dir: string): Promise<number> {
  const upstream = await startScriptedUpstream()
  const model = await startModelServer()
  upstream.answers(({ body }, response) => {
    const { id } = JSON.parse(body)
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }))
  })
  const policyFile = path.join(dir, 'policies.json')
  await writeFile(policyFile, policiesFile([testPolicy({ rules: hostileRules })]))
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    scopes: ['models:small'],
    config: { policyFile, models: { small: { upstream: model.url } } },
  })
  try {
    return await attack({
      ...gateway,
      name: 'gateway',
      requests: [
        ...MCP_REQUESTS.map((request) => ['/mcp/notes', request] as const),
        ...MODEL_REQUESTS.map((request) => ['/llm/small/v1/chat/completions', request] as const),
      ],
    })
  } finally {
    await gateway.close()
    await model.close()
    await upstream.close()
  }
}

async function attackBroker(dir: string): Promise<number> {
  const broker = await startIdentity(dir, await makeKeys(dir))
  try {
    const { idleBytes, mostBytes, refusals } = await sendOneByteChunks(broker)
    const grown = (mostBytes - idleBytes) / MIB
    const statuses = [...new Set(refusals)].join(', ')
    console.log(`broker, 80 connections of one-byte chunks (${statuses}): ${grown.toFixed(0)} MiB above idle`)
    const failed = await attack({
      ...broker,
      name: 'broker',
      token: 'none',
      requests: ANONYMOUS_REQUESTS.map((request) => ['/v1/exchange', request] as const),
    })
    return failed + (grown > MAX_GROWTH_MIB || statuses !== '400' ? 1 : 0)
  } finally {
    await broker.stop()
  }
}

/** `npm run long -- -only hostile`: what one hostile request at a time does to `/healthz`, and many connections to memory. */
const dir = tempFolder()
const failed = (await attackBroker(dir)) + (await attackGateway(dir))
console.log(`beyond their bounds: ${failed}`)
process.exitCode = failed === 0 ? 0 : 1
