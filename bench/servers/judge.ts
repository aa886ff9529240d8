import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { buildInfo, type Clock, systemClock } from '@plat/core'
import { type Call, type Identity, Snapshots, type TaintView, type Target, unresolved } from '@plat/gateway/call'
import { createGatewayMetrics } from '@plat/gateway/metrics'
import { createPolicies } from '@plat/gateway/policy'
import { createServers } from '@plat/gateway/servers'
import { silentLog } from '@plat/process'
import type { PolicyFile, RuleEntry, RuleMatch, UpstreamsFile } from '@plat/resources/rendered'

const MANY = 1_000
/** Rules of the many that can match one call. */
export const CONCERNED = 5

export interface SetUp {
  readonly servers: number
  /** Call servers in turn, and not one: what they need has left the nearest caches by then. */
  readonly inTurn?: true
  readonly rules: readonly RuleEntry[]
}

/** The caller's server, tool, user and agent are number 500 of each. */
const MINE = MANY / 2

/** Rules of which five speak of the caller: three allow, and two would be stricter in another tier. */
function rulesOf(match: (n: number) => RuleMatch): RuleEntry[] {
  return Array.from({ length: MANY }, (_, n): RuleEntry => {
    const names = match(Math.floor(n / CONCERNED) * CONCERNED)
    const stricter = { ...names, tiers: ['tier-9'] }
    if (n % CONCERNED === 1) return { name: `rule-${n}`, action: 'require_approval', match: stricter }
    if (n % CONCERNED === 3) return { name: `rule-${n}`, action: 'deny', match: stricter }
    return { name: `rule-${n}`, action: 'allow', match: names }
  })
}

function everyRule(more: Partial<RuleEntry>): RuleEntry[] {
  const match = { servers: [`server-${MINE}`], methods: ['tools/*'] }
  return Array.from({ length: MANY }, (_, n) => ({ name: `rule-${n}`, action: 'allow', match, ...more }))
}

/** Of a thousand rules, or of one, few concern the call. */
export const FEW: Readonly<Record<string, SetUp>> = {
  one: { servers: 1, rules: [{ name: 'rule', action: 'allow', match: { servers: [`server-${MINE}`] } }] },
  'by server': { servers: MANY, rules: rulesOf((n) => ({ servers: [`server-${n}`] })) },
  'by server, 200 in turn': { servers: MANY, inTurn: true, rules: rulesOf((n) => ({ servers: [`server-${n}`] })) },
  'by tool': { servers: MANY, rules: rulesOf((n) => ({ servers: ['*'], tools: [`tool-${n}`] })) },
  'by tool pattern': { servers: MANY, rules: rulesOf((n) => ({ tools: [`*-${n}`] })) },
  'by user': { servers: MANY, rules: rulesOf((n) => ({ users: [`user-${n}`] })) },
  'by agent': { servers: MANY, rules: rulesOf((n) => ({ agents: [`agent-${n}`] })) },
}

/** Every rule matches, without conditions. */
export const ALL: Readonly<Record<string, SetUp>> = {
  'all matching': { servers: MANY, rules: everyRule({}) },
  'all matching and counting': {
    servers: MANY,
    rules: everyRule({ rateLimit: { count: 1_000_000, seconds: 60, per: 'agent' } }),
  },
}

/** Judges a call through both stages as the gateway builds them; throws when the verdict is not the expected one. */
async function judged(prefix: string, setUp: SetUp): Promise<() => void> {
  const files = { policyFile: `${prefix}-policies.json`, upstreamsFile: `${prefix}-upstreams.json` }
  writeFileSync(files.policyFile, JSON.stringify(policyFileOf(setUp.rules)))
  writeFileSync(files.upstreamsFile, JSON.stringify(upstreamsFileOf(setUp.servers)))
  const snapshots = new Snapshots()
  const metrics = createGatewayMetrics(buildInfo('gateway'), {})
  const parts = { snapshots, clock: stillClock, log: silentLog, metrics }
  const config = { ...files, upstreams: {}, policyReloadSeconds: 2 }
  const servers = createServers({ ...parts, config, credentials: noCredentials })
  const policies = createPolicies({ ...parts, config })
  await Promise.all([servers.check(), policies.check()])
  servers.close()
  policies.close()
  const every = Array.from({ length: MANY / CONCERNED }, (_, n) => n * CONCERNED)
  const calls = (setUp.inTurn ? every : [MINE]).map((server) => callIn(snapshots, `server-${server}`))
  let next = 0
  return () => {
    const call = calls[next++ % calls.length]
    if (call === undefined) throw new Error('void: no call')
    const resolved = servers.stage.admit(call)
    if (!('target' in resolved)) throw new Error('void: the server was not found')
    call.facts.target = resolved.target
    const verdict = policies.stage.admit(call)
    if (!('decision' in verdict)) throw new Error('void: the call was denied')
  }
}

/** Servers of this bench need no credentials. */
const noCredentials = { missing: () => null, follow: async () => {} }

/** A constant clock, so that reading it costs nothing. */
const stillClock: Clock = { ...systemClock, now: () => 1_700_000_000_000 }

function policyFileOf(rules: readonly RuleEntry[]): PolicyFile {
  const agents = Array.from({ length: MANY }, (_, n) => `agent-${n}`)
  const one = { name: 'default/all', namespace: 'default', agents, cedar: '', rules: [...rules] }
  return {
    version: 1,
    generation: 1,
    revision: 'sha256:bench',
    policies: [{ ...one, mode: 'enforce', defaultAction: 'deny' }],
  }
}

/** Servers around the caller's. */
function upstreamsFileOf(count: number): UpstreamsFile {
  const fixed = { implicit: false, trust: 'trusted', dataClass: 'internal' } as const
  const first = count === 1 ? MINE : 0
  const entries = Array.from({ length: count }, (_, n) => {
    const entry = {
      ...fixed,
      namespaces: [],
      url: `http://127.0.0.1:${10_000 + n}/mcp`,
      auth: { type: 'none' as const },
    }
    return [`default/server-${first + n}`, entry] as const
  })
  return { version: 1, servers: Object.fromEntries(entries), bindings: {}, agentWeb: {} }
}

function callIn(snapshots: Snapshots, server: string) {
  const identity: Identity = {
    tenant: '',
    trustDomain: '',
    namespace: 'default',
    agent: `agent-${MINE}`,
    session: 's1',
    user: `user-${MINE}`,
    groups: ['dev', 'oncall'],
    verified: 'requester',
    tier: 'tier-1',
    scopes: new Set([`tools:${server}`]),
    jti: 'j1',
    ancestors: [],
    delegators: [],
    forkedFrom: [],
    chain: [],
    expiresAt: stillClock.now(),
    jkt: null,
    issuer: 'plat-identity',
    forkRoot: null,
    inheritedTaints: [],
  }
  const facts: { identity: Identity; target: Target; taints: TaintView } = {
    identity,
    target: unresolved,
    taints: { labels: [] },
  }
  return {
    id: 'c',
    wire: { method: 'POST', path: '', query: '', headers: {}, body: Readable.from([]), remote: '' },
    signal: new AbortController().signal,
    receivedAt: stillClock.now(),
    snapshot: snapshots.current,
    retain: () => true,
    operation: 'mcp.call',
    method: 'tools/call',
    server,
    name: `tool-${MINE}`,
    body: null,
    parent: null,
    pass: 1,
    facts,
  } satisfies Call<'identity' | 'target'>
}

/** Judges so many calls for each number that it is sent, and answers the nanoseconds of CPU that one took; the other threads wait. */
async function serve(port: MessagePort, { name, dir }: { name: string; dir: string }): Promise<void> {
  const setUp = FEW[name] ?? ALL[name]
  if (setUp === undefined) throw new Error(`no set-up ${name}`)
  const judge = await judged(path.join(dir, name.replaceAll(' ', '-')), setUp)
  port.on('message', (calls: number) => {
    const before = process.cpuUsage()
    for (let n = 0; n < calls; n++) judge()
    const { user, system } = process.cpuUsage(before)
    port.postMessage(((user + system) / calls) * 1000)
  })
  port.postMessage('ready')
}

if (parentPort !== null) await serve(parentPort, workerData)
