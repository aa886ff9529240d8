import { randomBytes } from 'node:crypto'
import { type SharedPool, systemClock, systemIds } from '@plat/core'
import { createDialer, listen } from '@plat/http'
import type { Ledger, Rec } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { createMemoryJournal } from '@plat/state'
import { deny, type Identity, NO_CREDENTIAL, Snapshots, type Target } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { createLiveCalls, createRunner, matrix } from '../../../pipeline/index.ts'
import { admitted, stage } from '../../../pipeline/stage.ts'
import { testMetrics } from '../../../testing/metrics.ts'
import {
  createListReview,
  createMcpPlane,
  createSealer,
  type McpPlaneOptions,
  McpTasks,
  type McpUpstream,
} from '../index.ts'

/** A gateway with this plane and a real listener, runner and dialer; the test supplies identities and policy. */
export interface PlaneUnderTest {
  /** `http://127.0.0.1:<port>/mcp/` */
  readonly url: string
  readonly records: readonly Rec[]
  close(): Promise<void>
}

export interface PlaneSetup {
  /** By the name that callers use. */
  readonly servers: Readonly<Record<string, Partial<McpUpstream> & { readonly url: string }>>
  readonly allows?: (tool: string) => boolean
  readonly options?: Partial<McpPlaneOptions>
  /** Scopes of every session; default: all servers except `hidden`. */
  readonly scopes?: readonly string[]
  /** Counts the bytes that calls retain. */
  readonly bytes?: SharedPool
}

function upstreamsOf(named: (name: string) => McpUpstream | null): McpPlaneOptions['upstreams'] {
  return {
    upstream: (_, key) => named(key.slice('test/'.length)),
    named: (_, __, name) => named(name),
    nameOf: (_, __, name) => name,
    protocolVersions: (_, __, name) => named(name)?.protocolVersions ?? null,
  }
}

/** Starts the gateway. A bearer token is `<session>` or `<agent>:<session>`; every session may use all servers except `hidden`. */
export async function startPlane(setup: PlaneSetup): Promise<PlaneUnderTest> {
  const { servers, allows = () => true, options = {}, scopes = SCOPES, bytes } = setup
  const clock = systemClock
  const ids = systemIds(clock)
  const dialer = createDialer({ log: silentLog })
  const records: Rec[] = []
  const named = (name: string) => upstreamOf(name, servers[name])
  const sealer = createSealer([randomBytes(32)], clock, ids)
  const ledgers = { of: () => memoryLedger(records) }
  const tasks = await openTasks({ clock, ledgers, sealer })
  const plane = createMcpPlane({
    tasks,
    upstreams: upstreamsOf(named),
    clientOf: () => ({ refusals: 'result', answerAfterMs: 4_000 }),
    dialer,
    credentials: { of: () => NO_CREDENTIAL, renewed: async () => null },
    sealer,
    clock,
    log: silentLog,
    maxBodyBytes: 1024 * 1024,
    bodyReadTimeoutMs: 60_000,
    upstreamTimeoutMs: 60_000,
    ...{ extraCA: null, stdioSocket: null, stdioReady: () => null },
    origins: new Set(['http://console.example']),
    resourceBaseURL: null,
    metrics: testMetrics(),
    ...options,
  })
  const runner = createRunner({
    stages: [revoked, resolver((name) => named(name) !== null), policy(allows)],
    reviews: [plane.taskReview, createListReview((_, tools) => tools.map(allows))],
    matrix,
    authenticate: ({ wire }) => {
      const bearer = wire.headers.authorization?.replace('Bearer ', '')
      return bearer === undefined ? noToken : identityOf(bearer, scopes)
    },
    ledgers,
    auditFailurePolicy: 'closed',
    live: createLiveCalls(clock),
    snapshots: new Snapshots(),
    ...(bytes && { bytes }),
    clock,
    metrics: { decided() {}, responded() {}, upstream() {}, upstreamFailed() {} },
    log: silentLog,
  })
  const handle = (exchange: Parameters<typeof runner.run>[0]) => void runner.run(exchange, plane)
  const raw = [{ prefix: '/mcp/', handle }]
  const listener = await listen({ address: '127.0.0.1:0', clock, ids, log: silentLog, raw })
  return {
    url: `${listener.url}/mcp/`,
    records,
    async close() {
      await listener.close()
      await dialer.close()
      runner.close()
      await tasks.close()
    },
  }
}

function openTasks(
  parts: Pick<Parameters<typeof McpTasks.open>[0], 'clock' | 'ledgers' | 'sealer'>,
): Promise<McpTasks> {
  const open = async <E>() => createMemoryJournal<E>(() => parts.clock.now())
  const journals = { shared: false, catchUp: null, open }
  return McpTasks.open({ ...parts, journals, log: silentLog, config: { auditPath: '' } })
}

function upstreamOf(name: string, server: PlaneSetup['servers'][string] | undefined): McpUpstream | null {
  if (server === undefined) return null
  const auth = { type: 'none' } as const
  return { key: `test/${name}`, timeoutSeconds: null, caPEM: null, protocolVersions: null, auth, ...server }
}

const noToken = deny('unauthenticated', 'a token is required', {
  data: { challenge: 'Bearer realm="plat"', reason: 'missing' },
})

const SCOPES = ['tools:notes', 'tools:other', 'tools:everything', 'tools:fixture']

function identityOf(bearer: string, scopes: readonly string[]): Identity {
  const [session = '', agent = 'tester'] = bearer.split(':').reverse()
  return {
    ...testIdentity,
    namespace: 'test',
    agent,
    session,
    tier: 'tier-0',
    scopes: new Set(scopes),
    jti: `jti-${session}`,
    expiresAt: Number.MAX_SAFE_INTEGER,
    issuer: 'test',
  }
}

const revoked = stage({ name: 'revoked', needs: [], gives: [], skipped: {}, admit: () => admitted })

const target: Omit<Target, 'key' | 'server' | 'tool'> = {
  kind: 'mcp',
  trust: 'trusted',
  dataClass: 'internal',
  jurisdiction: null,
  labels: { taints: [], clearTaints: [], sinks: [] },
  builtin: false,
}

function resolver(exists: (name: string) => boolean) {
  return stage({
    name: 'resolve',
    needs: ['identity'],
    gives: ['target'],
    skipped: { target: { ...target, key: '', server: '', tool: null } },
    admit(call) {
      const { server, name } = call
      const scope = `tools:${server}`
      if (!call.facts.identity.scopes.has(scope)) return deny('insufficient_scope', 'no', { data: { scope } })
      if (!exists(server)) return deny('unknown_server', `no server named ${server}`)
      return {
        target: {
          ...target,
          key: `test/${server}`,
          server,
          tool: ['mcp.call', 'mcp.answer', 'mcp.task'].includes(call.operation) ? name : null,
        },
      }
    },
  })
}

const decision = {
  policy: null,
  rule: null,
  reason: 'test',
  revision: '',
  engines: [],
  wouldBe: [],
  rates: [],
} as const

function policy(allows: (tool: string) => boolean) {
  return stage({
    name: 'policy',
    needs: ['target'],
    gives: ['decision'],
    skipped: { decision: { action: 'allow', ...decision } },
    admit(call) {
      const { tool } = call.facts.target
      const denied = tool !== null && !allows(tool)
      if (denied) return deny('policy_denied', `${tool} is denied`, { policy: 'test/p', rule: 'r' })
      return { decision: { action: 'allow', ...decision } }
    },
  })
}

function memoryLedger(records: Rec[]): Ledger {
  return {
    append: async (rec) => ({ seq: records.push(rec), hash: '' }),
    enter: (rec, waiter) => waiter.durable({ seq: records.push(rec), hash: '' }),
    head: () => ({ seq: records.length, hash: '' }),
    health: 'ok',
    close: () => Promise.resolve(),
  }
}
