import { Duplex } from 'node:stream'
import type { TestClock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { type Body, deny, type Fact, type Facts, type Frame, type Identity, Snapshots } from '../../call/index.ts'
import type { LiveCalls } from '../live.ts'
import { matrix } from '../matrix.ts'
import { CallAbort } from '../runner/call-abort.ts'
import type { Sink } from '../runner/exchange.ts'
import type { StepName } from '../stage.ts'
import type { Scenario } from './scenario.ts'

/** Shared by many scenarios: one clock, one registry of live calls, one event every ten minutes. */
export interface ScenarioFixture {
  readonly clock: TestClock
  readonly live: LiveCalls
  tenMinutes(): Promise<void>
}

/** Everything observed during one scenario, judged when it has ended. */
export class ScenarioResult {
  readonly id: string
  readonly scenario: Scenario
  readonly fixture: ScenarioFixture
  readonly identity: Identity
  readonly abort = new CallAbort()
  readonly snapshots = new Snapshots()
  readonly sink: FakeSink
  readonly records: Rec[] = []
  /** `pass 1 admits policy`, `policy settles: completed`, in order of occurrence. */
  readonly admits: { readonly pass: number; readonly name: StepName }[] = []
  readonly settles: { readonly name: StepName; readonly result: string }[] = []
  readonly reviewEnds = new Map<StepName, number>()
  readonly mistakes: string[] = []
  opened = 0
  held = 0
  forwards = 0
  over = false

  constructor(id: string, scenario: Scenario, fixture: ScenarioFixture) {
    this.id = id
    this.scenario = scenario
    this.fixture = fixture
    this.identity = { ...somebody, session: id, expiresAt: fixture.clock.now() + 24 * 3_600_000 }
    this.sink = new FakeSink(this)
  }

  leave(): void {
    this.sink.gone = true
    this.abort.stop('client', null)
  }

  revoke(): void {
    const judge = (who: Identity) =>
      who.session === this.id ? deny('revoked', 'the session is revoked', { revoked: 'session' }) : null
    this.fixture.live.cut(judge)
  }
}

const somebody: Omit<Identity, 'session' | 'expiresAt'> = {
  tenant: '',
  trustDomain: '',
  namespace: 'default',
  agent: 'assistant',
  user: 'ada',
  groups: ['staff'],
  verified: 'requester',
  tier: 'tier-1',
  scopes: new Set(['tools:notes']),
  jti: 'jti-1',
  ancestors: [],
  delegators: [],
  forkedFrom: [],
  chain: [],
  jkt: null,
  issuer: 'https://broker.example',
  forkRoot: null,
  inheritedTaints: [],
}

/** A caller that records each violation of the rules of a response. */
class FakeSink implements Sink {
  readonly #scenario: ScenarioResult
  headSent = false
  finished = false
  gone = false
  writes = 0
  tunnelled: Duplex | null = null

  constructor(fixture: ScenarioResult) {
    this.#scenario = fixture
  }

  reply(): void {
    this.#head()
    this.end()
  }

  open(): void {
    this.#head()
  }

  write(): void | Promise<void> {
    if (this.finished) this.#scenario.mistakes.push('a write after the end')
    if (!this.headSent) this.#scenario.mistakes.push('a write before the head')
    this.writes++
    // Every other write has to wait for a slow reader.
    return this.writes % 2 === 0 ? Promise.resolve() : undefined
  }

  end(): void {
    if (this.finished) this.#scenario.mistakes.push('ended twice')
    this.finished = true
  }

  tunnel(): Duplex | null {
    this.#head()
    this.tunnelled = pipeEnd()
    return this.tunnelled
  }

  destroy(): void {
    this.finished = true
  }

  #head(): void {
    if (this.headSent) this.#scenario.mistakes.push('two heads')
    this.headSent = true
  }
}

/** A connection whose other end is the test: pushed data is read, written data is discarded. */
export function pipeEnd(): Duplex {
  return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
}

const bytes = new TextEncoder().encode('{"a":1}')
export const body: Body = { bytes, value: { a: 1 }, args: bytes }

export function frame(role: Frame['role']): Frame {
  return { role, value: {}, raw: bytes }
}

/** Facts that each stage gives when it works. */
export const gives: Readonly<Partial<Record<StepName, readonly Fact[]>>> = {
  resolve: ['target'],
  pins: ['pin'],
  taints: ['taints'],
  policy: ['decision'],
  redact: ['redacted'],
  approval: ['approval'],
  reserve: ['hold'],
}

const good: Omit<Facts, 'identity' | 'hold'> = {
  target: {
    kind: 'mcp',
    key: 'default/notes',
    server: 'notes',
    tool: 'add_note',
    trust: 'trusted',
    dataClass: 'internal',
    jurisdiction: 'eu',
    labels: { taints: [], clearTaints: [], sinks: [] },
    builtin: false,
  },
  pin: null,
  taints: { labels: [] },
  decision: {
    action: 'allow',
    policy: 'default/assistant',
    rule: 'all',
    reason: 'rule all',
    revision: 'sha256:00',
    engines: [],
    wouldBe: [],
    rates: [],
  },
  redacted: { text: '', hits: 0 },
  approval: { approvalId: 'ap-1', by: ['eve'] },
}

/** Returns the facts of a working stage; `reserve` increments the number of open holds. */
export function goodFacts(fixture: ScenarioResult, name: StepName): Partial<Facts> {
  if (name === 'reserve') {
    fixture.held++
    const items = [{ key: 'usd/x', window: 'life', cap: 10, amount: 1, unit: 'micros' } as const]
    return { hold: { id: fixture.id, items, settled: null, extend: () => null, settle: () => {}, release: () => {} } }
  }
  const facts = gives[name] ?? []
  return Object.fromEntries(Object.entries(good).filter(([fact]) => facts.some((given) => given === fact)))
}

/** In these rows every stage runs for every operation, so that each fault is tried in each stage. */
export const faultMatrix = {
  'mcp.call': matrix['mcp.call'],
  'mcp.listen': { ...matrix['mcp.call'], long: true },
  tunnel: { ...matrix['mcp.call'], long: true, reply: 'tunnel' },
} as const
