import assert from 'node:assert/strict'
import { type Duplex, Readable } from 'node:stream'
import { TestClock } from '@plat/core'
import type { Ledger, OpenIntent, Rec } from '@plat/ledger'
import {
  type Decision,
  type Denial,
  type Frame,
  type Head,
  type Identity,
  type Operation,
  type Outcome,
  Snapshots,
} from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { createLiveCalls } from '../../live.ts'
import { type Matrix, matrix } from '../../matrix.ts'
import type { Plane } from '../../plane.ts'
import { type AnyReview, type AnyStage, admitted, type Verdict } from '../../stage.ts'
import { GatewayRequest } from '../call.ts'
import { CallAbort } from '../call-abort.ts'
import type { Sink } from '../exchange.ts'
import { createRunner } from '../runner.ts'

const text = new TextEncoder()
export const args = text.encode('{"name":"milk"}')
const body = { bytes: text.encode('{"params":{"arguments":{"name":"milk"}}}'), value: {}, args }
export const eventStream = { status: 200, headers: { 'content-type': 'text/event-stream' } }
export const json = { status: 200, headers: { 'content-type': 'application/json' } }

export const ada: Identity = {
  ...testIdentity,
  agent: 'assistant',
  session: 's1',
  user: 'ada',
  groups: ['staff'],
  verified: 'requester',
  tier: 'tier-1',
  scopes: new Set(['tools:notes']),
  jti: 'j1',
  expiresAt: Date.UTC(2026, 0, 2),
}

const notes = {
  kind: 'mcp',
  key: 'default/notes',
  server: 'notes',
  tool: 'add_note',
  trust: 'trusted',
  dataClass: 'internal',
  jurisdiction: null,
  labels: { taints: [], clearTaints: [], sinks: [] },
  builtin: false,
} as const

interface Setup {
  /** Default: the matrix of the gateway. */
  readonly matrix?: Matrix
  readonly operation?: Operation
  readonly audit?: 'open' | 'closed'
  readonly authenticate?: () => Identity | Denial
  readonly revoked?: () => Verdict<never>
  readonly approval?: (pass: number) => unknown
  /** Called with the result of the call for which the approval stage settles. */
  readonly settled?: (result: Outcome['result']) => void
  /** The decision of policy; absent: allow. */
  readonly decided?: Decision['action']
  readonly still?: () => Denial | null
  readonly headers?: Record<string, string>
  readonly plane?: Partial<Plane>
  readonly head?: Head
  readonly batches?: readonly (readonly Frame[])[]
  readonly reviews?: readonly AnyReview[]
  /** The caller's connection, for tunnels. */
  readonly caller?: Duplex
  /** Returns true for records that the ledger cannot write. */
  readonly unwritable?: (rec: Rec) => boolean
}

/** Runs one call through the real runner, and records in order what reached the caller, the ledger and the metrics. */
export function setUp(setup: Setup = {}) {
  const clock = new TestClock()
  const live = createLiveCalls(clock)
  const snapshots = new Snapshots()
  const abort = new CallAbort()
  const records: Rec[] = []
  const open = new Set<OpenIntent | undefined>()
  const wire: string[] = []
  const metrics: string[] = []
  const sink = fakeSink(wire, setup.caller ?? null)
  const note =
    (name: string) =>
    (...values: readonly unknown[]) =>
      void metrics.push([name, ...values].join(' '))
  const logged: string[] = []
  const log = { error: (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`) }
  const runner = createRunner({
    stages: fakeStages(setup),
    reviews: setup.reviews ?? [],
    matrix: setup.matrix ?? matrix,
    authenticate: setup.authenticate ?? (() => ada),
    ledgers: { of: () => ledger(records, open, setup.unwritable) },
    auditFailurePolicy: setup.audit ?? 'closed',
    live,
    snapshots,
    clock,
    metrics: {
      decided: note('decided'),
      responded: note('answered'),
      upstream: note('upstream'),
      upstreamFailed: note('upstreamFailed'),
    },
    log,
    policyRevision: () => 'sha256:now',
  })
  const headers = { authorization: 'Bearer secret', cookie: 'a=b', dpop: 'proof', ...setup.headers }
  const wireRequest = { method: 'POST', path: '/mcp/notes', query: '', headers, body: Readable.from([]), remote: '' }
  const request = new GatewayRequest({
    id: 'c1',
    wire: wireRequest,
    sink,
    abort,
    snapshot: snapshots.current,
    clock,
    log,
  })
  const done = runner.govern(request, fakePlane(setup, wire, records))
  return { clock, live, snapshots, abort, records, open, wire, metrics, logged, headers, done }
}

/** Records what the caller receives. */
function fakeSink(wire: string[], caller: Duplex | null): Sink {
  const sink: Sink = {
    headSent: false,
    reply: (head, _overhead, bytes) => void wire.push(`${head.status} ${Buffer.from(bytes)}`),
    open(head) {
      Object.assign(sink, { headSent: true })
      wire.push(`${head.status}…`)
    },
    write: (bytes) => void wire.push(String(Buffer.from(bytes))),
    end: () => void wire.push('end'),
    tunnel(head) {
      Object.assign(sink, { headSent: true })
      wire.push(`${head.status} tunnel`)
      return caller
    },
    destroy: () => void wire.push('destroyed'),
  }
  return sink
}

function fakePlane(setup: Setup, wire: string[], records: readonly Rec[]): Plane {
  return {
    read: async () => ({
      operation: setup.operation ?? 'mcp.call',
      method: 'tools/call',
      server: 'notes',
      name: 'add_note',
      body,
      parent: null,
    }),
    async forward(_call, head) {
      wire.push(`forward ${head}, ${records.length} records`)
      const frames = async function* () {
        yield* setup.batches ?? [[frame('final', '{"ok":1}')]]
      }
      return {
        kind: 'frames',
        head: setup.head ?? json,
        frames: frames(),
        attempts: [{ endpoint: 'a', status: 200, ms: 3 }],
      }
    },
    keepAlive: () => ({ head: eventStream, heartbeat: () => frame('progress', ':') }),
    refuse: (_arrival, _parsed, denial) => ({ head: json, frame: frame('error', denial.code) }),
    abort: (_call, denial) => [frame('error', `abort ${denial.code}`)],
    encode: () => text.encode('encoded'),
    ...setup.plane,
  }
}

function fakeStages(setup: Setup): readonly AnyStage[] {
  const revoked: AnyStage = {
    name: 'revoked',
    needs: [],
    gives: [],
    skipped: {},
    admit: () => setup.revoked?.() ?? admitted,
    still: () => setup.still?.() ?? null,
  }
  const resolve: AnyStage = { ...revoked, name: 'resolve', gives: ['target'], admit: () => ({ target: notes }) }
  const action = setup.decided ?? 'allow'
  const decision = {
    action,
    policy: 'p',
    rule: 'r',
    reason: 'scope',
    revision: '',
    engines: [],
    wouldBe: [],
    rates: [],
  }
  const policy: AnyStage = { ...revoked, name: 'policy', gives: ['decision'], admit: () => ({ decision }) }
  const approval: AnyStage = {
    name: 'approval',
    needs: [],
    gives: ['approval'],
    skipped: { approval: null },
    admit: (call: { pass: number }) => setup.approval?.(call.pass) ?? { approval: null },
    settle: (_call, { result }) => setup.settled?.(result),
  }
  return setup.decided === undefined ? [revoked, resolve, approval] : [revoked, resolve, policy, approval]
}

/** `open`: the intents without an outcome. */
function ledger(records: Rec[], open: Set<OpenIntent | undefined>, unwritable: (rec: Rec) => boolean = () => false) {
  const append = async (rec: Rec) => {
    if (unwritable(rec)) throw new Error('no room')
    return { seq: records.push(rec), hash: '' }
  }
  const ledger: Ledger = {
    append,
    enter: (rec, waiter) => {
      if (rec.kind === 'intent') open.add(waiter.intent)
      if (rec.kind === 'outcome') open.delete(waiter.intent)
      append(rec).then(waiter.durable.bind(waiter), waiter.failed.bind(waiter))
    },
    head: () => ({ seq: 0, hash: '' }),
    health: 'ok',
    close: async () => {},
  }
  return ledger
}

export function only(records: readonly Rec[]): Rec {
  const [record, ...more] = records
  assert.ok(record !== undefined && more.length === 0)
  return record
}

export function frame(role: Frame['role'], raw: string): Frame {
  return { role, value: null, raw: text.encode(raw) }
}
