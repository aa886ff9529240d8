import type { Ledger, Ledgers, Rec } from '@plat/ledger'
import {
  type Call,
  type Denial,
  deny,
  type Fact,
  type Frame,
  type Outcome,
  type Reply,
  UpstreamError,
} from '../../call/index.ts'
import type { Plane } from '../plane.ts'
import { type AnyReview, type AnyStage, admitted, type RunningReview } from '../stage.ts'
import { body, frame, gives, goodFacts, pipeEnd, type ScenarioResult } from './fixture.ts'
import { isHeld, type ReviewFault, reviewNames, type StageName, stageNames } from './scenario.ts'

/** Time until the approver decides, in milliseconds. */
const THINKING_MS = 3_000
/** Later than the deadline of a stage, in milliseconds. */
const LATE_MS = 40_000

const no = deny('policy_denied', 'rule no')
const never = new Promise<never>(() => {})

export function fakeStages(fixture: ScenarioResult): readonly AnyStage[] {
  return stageNames.map((name) => ({
    name,
    needs: [],
    gives: gives[name] ?? [],
    skipped: {},
    admit(call: Call<Fact>) {
      const fault = fixture.scenario.stage?.name === name ? admitWrong(fixture, name, call) : undefined
      if (fault !== undefined) return fault.verdict
      if (name === 'approval' && call.pass === 1 && isHeld(fixture.scenario)) return waitFor(fixture)
      return works(fixture, name, call.pass)
    },
    settle(_call: Call<Fact>, outcome: Outcome) {
      fixture.settles.push({ name, result: outcome.result })
      if (name === 'reserve') fixture.held--
      if (fixture.scenario.settle?.name !== name) return
      if (fixture.scenario.settle.fault === 'throws') throw new Error('settle')
      return fixture.scenario.settle.fault === 'rejects' ? Promise.reject(new Error('settle')) : never
    },
    still() {
      if (fixture.scenario.stage?.name !== name) return null
      if (fixture.scenario.stage.fault === 'throws when rechecked') throw new Error('still')
      return fixture.scenario.stage.fault === 'no longer holds' ? no : null
    },
  }))
}

/** Returns undefined when this fault does not affect the verdict. */
function admitWrong(fixture: ScenarioResult, name: StageName, call: Call<Fact>): { verdict: unknown } | undefined {
  switch (fixture.scenario.stage?.fault) {
    case 'throws':
      throw new Error('admit')
    case 'rejects':
      return { verdict: Promise.reject(new Error('admit')) }
    case 'undefined':
      return { verdict: undefined }
    case 'null':
      return { verdict: null }
    case 'wrong type':
      return { verdict: 'yes' }
    case 'missing fact':
      // A stage without facts must return `admitted`; an empty object is not a verdict.
      return { verdict: {} }
    case 'denial':
      return { verdict: no }
    case 'async denial':
      return { verdict: Promise.resolve(no) }
    case 'never':
      return { verdict: never }
    case 'late':
      return {
        verdict: new Promise((resolve) =>
          fixture.fixture.clock.after(LATE_MS, () => resolve(works(fixture, name, call.pass))),
        ),
      }
    case 'never, and the caller leaves':
      fixture.fixture.clock.after(1_000, () => fixture.leave())
      return { verdict: never }
    case 'never, and the caller is revoked':
      fixture.fixture.clock.after(1_000, () => fixture.revoke())
      return { verdict: never }
    default:
      return undefined
  }
}

function works(fixture: ScenarioResult, name: StageName, pass: number): unknown {
  fixture.admits.push({ pass, name })
  const facts = goodFacts(fixture, name)
  if (name === 'redact') return { kind: 'replace', body, facts }
  return gives[name] === undefined ? admitted : facts
}

function waitFor(fixture: ScenarioResult): unknown {
  const { clock } = fixture.fixture
  const revoked = fixture.scenario.ending === 'held, then revoked'
  const until = new Promise<'granted'>((resolve) => {
    clock.after(THINKING_MS, () => (revoked ? fixture.revoke() : resolve('granted')))
  })
  return { kind: 'wait', approvalId: 'ap-1', until }
}

export function fakeReviews(fixture: ScenarioResult): readonly AnyReview[] {
  return reviewNames.map((name) => {
    const fault = fixture.scenario.review?.name === name ? fixture.scenario.review : null
    return {
      name,
      needs: [],
      open(): RunningReview {
        if (fault?.at === 'open') throw new Error('open')
        fixture.opened++
        fixture.reviewEnds.set(name, 0)
        return {
          frame(it) {
            if (fixture.reviewEnds.get(name) !== 0) fixture.mistakes.push(`a frame after the end of ${name}`)
            return fault?.at === 'frame' ? wrong(fault.fault) : [it]
          },
          end() {
            fixture.reviewEnds.set(name, (fixture.reviewEnds.get(name) ?? 0) + 1)
            return fault?.at === 'end' ? wrong(fault.fault) : []
          },
          tally: () => ({ usage: null, usageSource: 'none', costMicros: 7 }),
        }
      },
    }
  })
}

function wrong(fault: ReviewFault): Frame[] | Denial | Promise<Frame[] | Denial> {
  if (fault === 'throws') throw new Error('review')
  if (fault === 'rejects') return Promise.reject(new Error('review'))
  if (fault === 'denial') return no
  if (fault === 'never') return never
  // Does not compile in TypeScript, but could be returned by plain JavaScript.
  return JSON.parse(fault === 'undefined' ? '[null]' : '["frames"]')[0] ?? JSON.parse('{"undefined":1}').none
}

export function fakeLedgers(fixture: ScenarioResult): Ledgers {
  const { ledger: fault } = fixture.scenario
  const append = async (rec: Rec) => {
    fixture.records.push(rec)
    const intent = rec.kind === 'intent'
    if (intent && fault === 'intent never, and the caller leaves') {
      fixture.leave()
      return never
    }
    if (fault === 'everything fails' || (fault === 'intent fails' && intent)) throw new Error('disk')
    return { seq: 1, hash: '' }
  }
  const ledger: Ledger = {
    append,
    enter: (rec, waiter) => void append(rec).then(waiter.durable.bind(waiter), waiter.failed.bind(waiter)),
    head: () => ({ seq: 0, hash: '' }),
    health: 'ok',
    close: () => Promise.resolve(),
  }
  return { of: () => ledger }
}

export function fakePlane(fixture: ScenarioResult): Plane {
  const { scenario } = fixture
  const operation = scenario.shape === 'tunnel' ? 'tunnel' : scenario.shape === 'hour' ? 'mcp.listen' : 'mcp.call'
  return {
    read: async () => ({ operation, method: 'tools/call', server: 'notes', name: 'add_note', body, parent: null }),
    forward: (_call, head) => {
      fixture.forwards++
      if ((head === 'sent') !== fixture.sink.headSent) fixture.mistakes.push('forward got the wrong state of the head')
      return forward(fixture)
    },
    keepAlive: () => ({ head: eventStream, heartbeat: () => frame('progress') }),
    refuse: () => {
      if (scenario.plane === 'refuse throws') throw new Error('refuse')
      return { head: json, frame: frame('error') }
    },
    abort: () => {
      if (scenario.plane === 'abort throws') throw new Error('abort')
      return [frame('error')]
    },
    encode: () => body.bytes,
  }
}

const json = { status: 200, headers: { 'content-type': 'application/json' } }
const eventStream = { status: 200, headers: { 'content-type': 'text/event-stream' } }

function forward(fixture: ScenarioResult): Promise<Reply | Denial> {
  switch (fixture.scenario.plane) {
    case 'forward throws':
      throw new Error('forward')
    case 'forward rejects':
      return Promise.reject(new Error('forward'))
    case 'forward undefined':
      return Promise.resolve(JSON.parse('{}').none)
    case 'forward denies':
      return Promise.resolve(no)
    case 'forward returns upstream error':
      return Promise.resolve(deny('upstream_error', 'it is dead'))
    case 'forward never, and the caller leaves':
      fixture.fixture.clock.after(1_000, () => fixture.leave())
      return never
    case 'forward returns the wrong kind':
      return Promise.resolve(fixture.scenario.shape === 'tunnel' ? framesReply(fixture) : tunnelReply(fixture))
    default:
      return Promise.resolve(fixture.scenario.shape === 'tunnel' ? tunnelReply(fixture) : framesReply(fixture))
  }
}

function framesReply(fixture: ScenarioResult): Reply {
  const stream = fixture.scenario.shape !== 'one' && fixture.scenario.shape !== 'held'
  return { kind: 'frames', head: stream ? eventStream : json, frames: frames(fixture), attempts: [] }
}

async function* frames(fixture: ScenarioResult): AsyncGenerator<readonly Frame[]> {
  const { shape } = fixture.scenario
  if (shape === 'one' || shape === 'held') {
    await ending(fixture)
    yield [frame('final')]
    return
  }
  yield [frame(shape === 'requests' ? 'request' : 'partial'), frame('partial')]
  await ending(fixture)
  for (let count = 0; count < 5; count++) {
    if (shape === 'hour') await fixture.fixture.tenMinutes()
    yield [frame(shape === 'requests' && count % 2 === 0 ? 'request' : 'partial')]
  }
  yield [frame('final')]
}

/** Applies the scenario's ending to a reply in progress. */
async function ending(fixture: ScenarioResult): Promise<void> {
  await Promise.resolve()
  if (fixture.scenario.ending === 'dies') throw new UpstreamError('the upstream died')
  if (fixture.scenario.ending === 'client leaves') fixture.leave()
  if (fixture.scenario.ending === 'cut') fixture.revoke()
}

function tunnelReply(fixture: ScenarioResult): Reply {
  const socket = pipeEnd()
  const { clock } = fixture.fixture
  socket.push('hello')
  clock.after(1_000, () => {
    switch (fixture.scenario.ending) {
      case 'dies':
        return socket.destroy(new Error('reset'))
      case 'client leaves':
        return fixture.leave()
      case 'cut':
        return fixture.revoke()
      default:
        socket.push(null)
        return fixture.sink.tunnelled?.push(null)
    }
  })
  return { kind: 'tunnel', head: { status: 200, headers: {} }, attempts: [], socket }
}
