import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startModelServer } from '@plat/testkit/model-server'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { randomToken, startTestService } from '@plat/testkit/processes/service'
import { makeKeys, startIdentity } from '../../bench/harness/plat.ts'
import { sendOneByteChunks } from './one-byte.ts'
import {
  A2A_REQUESTS,
  CARD_REQUESTS,
  CONNECT_REQUESTS,
  EXEC_REQUESTS,
  FILE_REQUESTS,
  SHARED_REQUESTS,
  STORED_REQUESTS,
} from './planes.ts'
import { HealthPoller } from './poller.ts'
import {
  ADMIN_REQUESTS,
  ANONYMOUS_REQUESTS,
  FORM_REQUESTS,
  type HostileRequest,
  hostileRules,
  MCP_REQUESTS,
  MODEL_REQUESTS,
  PLAN_REQUESTS,
} from './requests.ts'
import { send } from './send.ts'
import { mcpResult, startHostileUpstream, startSilentHost } from './upstreams.ts'

const MIB = 1024 * 1024
/** Largest body of broker and attestation service. */
const SERVICE_BODY_BYTES = 64 * 1024
/** Maximum response time of `/healthz` under any load, in milliseconds. */
const MAX_HEALTH_MS = 200
const MAX_GROWTH_MIB = 64
/** How often each request is sent. The least of the longest polls counts: what the request costs comes back, noise does not. */
const TIMES = 3
/** How long a service is left alone before a measurement, in milliseconds. */
const REST_MS = 500

/** Only requests whose names contain this text are sent. */
const [chosen = ''] = process.argv.slice(2)
let worst = { ms: 0, name: '' }

interface Attacked {
  readonly name: string
  readonly url: string
  /** Process that answers `/healthz`. */
  readonly pid: number
  readonly token: string
  readonly maxBodyBytes: number
  readonly requests: readonly (readonly [path: string, request: HostileRequest])[]
}

function at(path: string, requests: readonly HostileRequest[]): Attacked['requests'] {
  return requests.map((request) => [path, request])
}

/** Sends each request alone, and prints how long `/healthz` took meanwhile. Returns how many took it beyond its bound. */
async function attack({ name, url, pid, token, maxBodyBytes, requests }: Attacked): Promise<number> {
  const poller = new HealthPoller({ url, pid })
  let failed = 0
  try {
    await sleep(REST_MS)
    await poller.longestMs()
    await sleep(REST_MS)
    console.log(`${name} at rest: ${(await poller.longestMs()).toFixed(0)} ms`)
    for (const [path, request] of requests) {
      if (!`${name}, ${request.name}`.includes(chosen)) continue
      let least = Number.POSITIVE_INFINITY
      const statuses = new Set<string>()
      const bytes = request.make({ path, token, maxBodyBytes })
      for (let times = 0; times < TIMES; times++) {
        await sleep(REST_MS)
        await poller.longestMs()
        statuses.add(await send(url, bytes))
        least = Math.min(least, await poller.longestMs())
      }
      if (least > MAX_HEALTH_MS) failed++
      if (least > worst.ms) worst = { ms: least, name: `${name}, ${request.name}` }
      const verdict = least > MAX_HEALTH_MS ? `  MORE THAN ${MAX_HEALTH_MS}` : ''
      console.log(`${name}, ${request.name} (${[...statuses].join(', ')}): ${least.toFixed(0)} ms${verdict}`)
    }
  } finally {
    await poller.close()
  }
  return failed
}

/** Requests to all planes. `hostPort`: where tunnels lead. */
function planeRequests(hostPort: number): Attacked['requests'] {
  return [
    ...at('/mcp/notes', MCP_REQUESTS),
    ...at('/llm/small/v1/chat/completions', MODEL_REQUESTS),
    ...at('/llm/small/v1/images/edits', FORM_REQUESTS),
    ...at('/v1/infra/plans', PLAN_REQUESTS),
    ...at('/mcp', SHARED_REQUESTS),
    ...at('/llm/small/v1/responses', STORED_REQUESTS),
    ...at('/llm/small/v1/files', FILE_REQUESTS),
    ...at('/a2a/default/helper', A2A_REQUESTS),
    ...at('/a2a/default/helper/.well-known/agent-card.json', CARD_REQUESTS),
    ...at('/v1/sessions/s1/exec', EXEC_REQUESTS),
    ...at(`localhost:${hostPort}`, CONNECT_REQUESTS),
  ]
}

/** Writes the rules and the routes to an agent. */
async function writeFiles(dir: string, agentPort: number): Promise<{ policyFile: string; routesFile: string }> {
  const [policyFile, routesFile] = [path.join(dir, 'policies.json'), path.join(dir, 'agents.json')]
  const helper = { endpoint: `http://127.0.0.1:${agentPort}/rpc`, allowedCallers: [], skills: [], streaming: true }
  const agents = { 'default/helper': { ...helper, trust: 'trusted', version: '1.0.0' } }
  await writeFile(routesFile, JSON.stringify({ version: 1, agents }))
  await writeFile(policyFile, policiesFile([testPolicy({ rules: hostileRules })]))
  return { policyFile, routesFile }
}

async function attackGateway(dir: string): Promise<number> {
  const upstream = await startScriptedUpstream()
  const model = await startModelServer()
  upstream.answers(({ body }, response) => {
    const { id, method } = JSON.parse(body)
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${mcpResult(method)}}`)
  })
  const [agent, host] = [await startHostileUpstream(), await startSilentHost()]
  const { policyFile, routesFile } = await writeFiles(dir, agent.port)
  const adminToken = randomToken()
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    scopes: [
      ...['models:small', 'models.images:small', 'models.files:small', 'tools:plat-infra'],
      ...['agents:helper', 'tools:plat-exec', 'tools:plat-egress'],
    ],
    env: { PLAT_ADMIN_TOKEN: adminToken },
    config: {
      policyFile,
      models: { small: { upstream: model.url } },
      adminListen: 'localhost:0',
      infra: { enabled: true },
      a2a: { routesFile },
      exec: { enabled: true, endpointTemplate: `http://127.0.0.1:${agent.port}/{session}` },
      egress: { enabled: true },
      web: { allowedDomains: ['localhost'], allowedPorts: [host.port], allowedCIDRs: ['127.0.0.0/8', '::1/128'] },
      dlpProfiles: { all: { maxScanBytes: 4 * MIB } },
      dlp: { defaultProfile: 'all' },
    },
  })
  const { pid, token } = gateway
  try {
    const failed = await attack({
      ...{ name: 'gateway', url: gateway.url, pid, token, maxBodyBytes: 4 * MIB },
      requests: planeRequests(host.port),
    })
    const admin = { url: gateway.adminUrl, pid, maxBodyBytes: MIB }
    return (
      failed +
      (await attack({ ...admin, name: 'admin', token: adminToken, requests: at('/v1/revocations', ADMIN_REQUESTS) })) +
      (await attack({ ...admin, name: 'admin, refused', token, requests: at('/v1/policies/simulate', ADMIN_REQUESTS) }))
    )
  } finally {
    await gateway.close()
    for (const one of [model, upstream, agent, host]) await one.close()
  }
}

async function attackBroker(dir: string): Promise<number> {
  const broker = await startIdentity(dir, await makeKeys(dir))
  try {
    const { idleBytes, mostBytes, refusals } = await sendOneByteChunks(broker)
    const grown = (mostBytes - idleBytes) / MIB
    const statuses = [...new Set(refusals)].toSorted().join(', ')
    console.log(`broker, 80 connections of one-byte chunks (${statuses}): ${grown.toFixed(0)} MiB above idle`)
    const failed = await attack({
      ...broker,
      name: 'broker',
      token: 'none',
      maxBodyBytes: SERVICE_BODY_BYTES,
      requests: at('/v1/exchange', ANONYMOUS_REQUESTS),
    })
    return failed + (grown > MAX_GROWTH_MIB || !/^400(?:, 503)?$/.test(statuses) ? 1 : 0)
  } finally {
    await broker.stop()
  }
}

async function attackAttestation(dir: string): Promise<number> {
  const token = randomToken()
  const service = await startTestService('attestation', {
    env: { PLAT_ATTESTATION_TOKEN: token, PLAT_BROKER_TOKEN: randomToken() },
    flags: ['-state-path', path.join(dir, 'releases.jsonl')],
  })
  try {
    return await attack({
      ...{ name: 'attestation', url: service.url, pid: service.pid, token, maxBodyBytes: SERVICE_BODY_BYTES },
      requests: [...at('/v1/challenge', ANONYMOUS_REQUESTS), ...at('/v1/releases', ANONYMOUS_REQUESTS)],
    })
  } finally {
    await service.stop()
  }
}

/** `npm run long -- -only hostile`: the effect of one hostile request at a time on `/healthz`, and of many connections on memory. */
const dir = tempFolder()
const failed = (await attackBroker(dir)) + (await attackAttestation(dir)) + (await attackGateway(dir))
console.log(`longest: ${worst.ms.toFixed(0)} ms (${worst.name})`)
console.log(`beyond their bounds: ${failed}`)
process.exitCode = failed === 0 ? 0 : 1
