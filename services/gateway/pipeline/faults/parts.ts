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
import { type AnyReview, type AnyStage, admitted, type Running } from '../stage.ts'
import { isHeld, type ReviewFault, reviewNames, type StageName, stageNames } from './scenario.ts'
import { body, frame, gives, goodFacts, pipeEnd, type ScenarioResult } from './world.ts'

/** How long a person thinks, in milliseconds. */
const THINKING_MS = 3_000
/** Later than the deadline of a stage, in milliseconds. */
const LATE_MS = 40_000

const no = deny('policy_denied', 'rule no')
const never = new Promise<never>(() => {})

export function fakeStages(world: ScenarioResult): readonly AnyStage[] {
  return stageNames.map((name) => ({
    name,
    needs: [],
    gives: gives[name] ?? [],
    skipped: {},
    admit(call: Call<Fact>) {
      const fault = world.scenario.stage?.name === name ? admitWrong(world, name, call) : undefined
      if (fault !== undefined) return fault.verdict
      if (name === 'approval' && call.pass === 1 && isHeld(world.scenario)) return waitFor(world)
      return works(world, name, call.pass)
    },
    settle(_call: Call<Fact>, outcome: Outcome) {
      world.settles.push({ name, result: outcome.result })
      if (name === 'reserve') world.held--
      if (world.scenario.settle?.name !== name) return
      if (world.scenario.settle.fault === 'throws') throw new Error('settle')
      return world.scenario.settle.fault === 'rejects' ? Promise.reject(new Error('settle')) : never
    },
    still() {
      if (world.scenario.stage?.name !== name) return null
      if (world.scenario.stage.fault === 'throws when asked again') throw new Error('still')
      return world.scenario.stage.fault === 'no longer holds' ? no : null
    },
  }))
}

/** Undefined: this fault does not show in the verdict. */
function admitWrong(world: ScenarioResult, name: StageName, call: Call<Fact>): { verdict: unknown } | undefined {
  switch (world.scenario.stage?.fault) {
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
      // A stage that gives nothing must say so; an empty object is a forgotten verdict.
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
          world.ground.clock.after(LATE_MS, () => resolve(works(world, name, call.pass))),
        ),
      }
    case 'never, and the caller leaves':
      world.ground.clock.after(1_000, () => world.leave())
      return { verdict: never }
    case 'never, and the caller is revoked':
      world.ground.clock.after(1_000, () => world.revoke())
      return { verdict: never }
    default:
      return undefined
  }
}

function works(world: ScenarioResult, name: StageName, pass: number): unknown {
  world.admits.push({ pass, name })
  const facts = goodFacts(world, name)
  if (name === 'redact') return { kind: 'replace', body, facts }
  return gives[name] === undefined ? admitted : facts
}

function waitFor(world: ScenarioResult): unknown {
  const { clock } = world.ground
  const revoked = world.scenario.ending === 'held, then revoked'
  const until = new Promise<'granted'>((resolve) => {
    clock.after(THINKING_MS, () => (revoked ? world.revoke() : resolve('granted')))
  })
  return { kind: 'wait', approvalId: 'ap-1', until }
}

export function fakeReviews(world: ScenarioResult): readonly AnyReview[] {
  return reviewNames.map((name) => {
    const fault = world.scenario.review?.name === name ? world.scenario.review : null
    return {
      name,
      needs: [],
      open(): Running {
        if (fault?.at === 'open') throw new Error('open')
        world.opened++
        world.reviewEnds.set(name, 0)
        return {
          frame(it) {
            if (world.reviewEnds.get(name) !== 0) world.mistakes.push(`a frame after the end of ${name}`)
            return fault?.at === 'frame' ? wrong(fault.fault) : [it]
          },
          end() {
            world.reviewEnds.set(name, (world.reviewEnds.get(name) ?? 0) + 1)
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
  // What the compiler would refuse, a plain JavaScript caller could still return.
  return JSON.parse(fault === 'undefined' ? '[null]' : '["frames"]')[0] ?? JSON.parse('{"undefined":1}').none
}

export function fakeLedgers(world: ScenarioResult): Ledgers {
  const { ledger: fault } = world.scenario
  const append = async (rec: Rec) => {
    world.records.push(rec)
    const intent = rec.kind === 'intent'
    if (intent && fault === 'intent never, and the caller leaves') {
      world.leave()
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

export function fakePlane(world: ScenarioResult): Plane {
  const { scenario } = world
  const operation = scenario.shape === 'tunnel' ? 'tunnel' : scenario.shape === 'hour' ? 'mcp.listen' : 'mcp.call'
  return {
    read: async () => ({ operation, method: 'tools/call', server: 'notes', name: 'add_note', body, parent: null }),
    forward: (_call, head) => {
      world.forwards++
      if ((head === 'sent') !== world.sink.headSent) world.mistakes.push('forward was told wrongly about the head')
      return forward(world)
    },
    held: () => ({ head: eventStream, beat: () => frame('progress') }),
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

function forward(world: ScenarioResult): Promise<Reply | Denial> {
  switch (world.scenario.plane) {
    case 'forward throws':
      throw new Error('forward')
    case 'forward rejects':
      return Promise.reject(new Error('forward'))
    case 'forward undefined':
      return Promise.resolve(JSON.parse('{}').none)
    case 'forward denies':
      return Promise.resolve(no)
    case 'forward says upstream error':
      return Promise.resolve(deny('upstream_error', 'it is dead'))
    case 'forward never, and the caller leaves':
      world.ground.clock.after(1_000, () => world.leave())
      return never
    case 'forward gives the wrong kind':
      return Promise.resolve(world.scenario.shape === 'tunnel' ? framesReply(world) : tunnelReply(world))
    default:
      return Promise.resolve(world.scenario.shape === 'tunnel' ? tunnelReply(world) : framesReply(world))
  }
}

function framesReply(world: ScenarioResult): Reply {
  const stream = world.scenario.shape !== 'one' && world.scenario.shape !== 'held'
  return { kind: 'frames', head: stream ? eventStream : json, frames: frames(world), attempts: [] }
}

async function* frames(world: ScenarioResult): AsyncGenerator<readonly Frame[]> {
  const { shape } = world.scenario
  if (shape === 'one' || shape === 'held') {
    await ending(world)
    yield [frame('final')]
    return
  }
  yield [frame(shape === 'requests' ? 'request' : 'partial'), frame('partial')]
  await ending(world)
  for (let count = 0; count < 5; count++) {
    if (shape === 'hour') await world.ground.tenMinutes()
    yield [frame(shape === 'requests' && count % 2 === 0 ? 'request' : 'partial')]
  }
  yield [frame('final')]
}

/** What the scenario does to a reply that is under way. */
async function ending(world: ScenarioResult): Promise<void> {
  await Promise.resolve()
  if (world.scenario.ending === 'dies') throw new UpstreamError('the upstream died')
  if (world.scenario.ending === 'client leaves') world.leave()
  if (world.scenario.ending === 'cut') world.revoke()
}

function tunnelReply(world: ScenarioResult): Reply {
  const socket = pipeEnd()
  const { clock } = world.ground
  socket.push('hello')
  clock.after(1_000, () => {
    switch (world.scenario.ending) {
      case 'dies':
        return socket.destroy(new Error('reset'))
      case 'client leaves':
        return world.leave()
      case 'cut':
        return world.revoke()
      default:
        socket.push(null)
        return world.sink.tunnelled?.push(null)
    }
  })
  return { kind: 'tunnel', head: { status: 200, headers: {} }, attempts: [], socket }
}
