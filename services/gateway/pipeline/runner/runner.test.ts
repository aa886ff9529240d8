import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { Rec } from '@plat/ledger'
import { type Denial, deny, type Frame, type Reply, UpstreamError } from '../../call/index.ts'
import type { Plane } from '../plane.ts'
import { aborted, CallAbort } from './call-abort.ts'
import { ada, args, eventStream, frame, json, only, setUp } from './testing/fixture.ts'

test('with audit policy closed the intent is recorded before the call is forwarded, and the outcome after', async () => {
  const { done, wire, records, open, metrics, headers } = setUp()
  await done
  assert.deepEqual(wire, ['forward unsent, 1 records', '200 {"ok":1}'])
  assert.deepEqual(
    records.map((rec) => rec.kind),
    ['intent', 'outcome'],
  )
  assert.equal(open.size, 0, 'the outcome closes the intent in the ledger')
  assert.deepEqual(metrics, ['decided allow notes', 'answered notes tools/call 200', 'upstream notes 0'])
  assert.deepEqual(Object.keys(headers), [], 'credentials were removed')
})

test('with audit policy open an allowed call leaves one outcome, with the tool and the hash of its arguments', async () => {
  const { done, wire, records } = setUp({ audit: 'open' })
  await done
  assert.equal(wire[0], 'forward unsent, 0 records')
  assert.equal(records.length, 1)
  const { kind, call, op, server, tool, method, argsSha256, argsBytes, action, reason, result, status } = only(records)
  assert.deepEqual(
    { kind, call, op, server, tool, method, argsSha256, argsBytes, action, reason, result, status },
    {
      kind: 'outcome',
      call: 'c1',
      op: 'mcp.call',
      server: 'notes',
      tool: 'add_note',
      method: 'tools/call',
      argsSha256: createHash('sha256').update(args).digest('hex'),
      argsBytes: 15,
      action: 'allow',
      reason: 'scope',
      result: 'completed',
      status: 200,
    },
  )
  assert.deepEqual(records[0]?.attempts, [{ endpoint: 'a', status: 200, ms: 3 }])
})

test('while the ledger cannot be written, audit policy closed forwards nothing and open forwards the call', async () => {
  // Shows D3.audit.auditFailurePolicy.open and D3.audit.auditFailurePolicy.closed.
  const unwritable = () => true
  const closed = setUp({ audit: 'closed', unwritable })
  await closed.done
  assert.deepEqual(closed.wire, ['200 audit_unavailable'])
  const open = setUp({ audit: 'open', unwritable })
  await open.done
  assert.deepEqual(open.wire, ['forward unsent, 0 records', '200 {"ok":1}'])
  const lost = (kind: string) => `a record could not be made durable {"kind":"${kind}","error":"no room"}`
  assert.deepEqual(closed.logged, [lost('intent'), lost('decision')])
  assert.deepEqual(open.logged, [lost('outcome')])
})

test('a denial before the call was forwarded leaves one decision with rule and revision', async () => {
  const denial = deny('policy_denied', 'rule keep', { policy: 'default/assistant', rule: 'keep' })
  const { done, wire, records, metrics } = setUp({ revoked: () => denial })
  await done
  assert.deepEqual(wire, ['200 policy_denied'])
  const { kind, action, policy, rule, reason, code, policyRevision } = only(records)
  assert.deepEqual([records.length, kind, action, policy, rule], [1, 'decision', 'deny', 'default/assistant', 'keep'])
  assert.deepEqual([reason, code, policyRevision], ['rule keep', 'policy_denied', 'sha256:now'])
  assert.deepEqual(metrics, ['answered unknown tools/call 403', 'decided deny unknown'])
})

test('a caller that is not authenticated leaves no record; a request that cannot be read leaves one', async () => {
  const stranger = setUp({ authenticate: () => deny('unauthenticated', 'no token') })
  await stranger.done
  assert.deepEqual([stranger.wire, stranger.records], [['200 unauthenticated'], []])
  const unread = setUp({ plane: { read: async () => deny('body_too_large', 'too large') } })
  await unread.done
  assert.deepEqual(
    [unread.records.length, unread.records[0]?.code, unread.records[0]?.op],
    [1, 'body_too_large', undefined],
  )
})

test('a control message leaves a record only when it is refused or fails, and an operation without a row is refused', async () => {
  const ping = setUp({ operation: 'mcp.control' })
  await ping.done
  assert.deepEqual(ping.records, [])
  const unreachable = setUp({
    operation: 'mcp.control',
    plane: { forward: async () => deny('upstream_error', 'away') },
  })
  await unreachable.done
  assert.deepEqual(
    unreachable.records.map(({ kind, result, code, call }) => [kind, result, code, typeof call]),
    [['outcome', 'failed', 'upstream_error', 'string']],
  )
  const refused = setUp({ operation: 'mcp.control', revoked: () => deny('revoked', 'no', { revoked: 'session' }) })
  await refused.done
  assert.deepEqual([refused.records.length, refused.records[0]?.kind], [1, 'decision'])
  const unbuilt = setUp({ operation: 'exec', matrix: {} })
  await unbuilt.done
  assert.deepEqual([unbuilt.wire, unbuilt.records[0]?.code], [['200 not_built'], 'not_built'])
})

test('a plain response is one write, an event stream one write per batch, with the head in the first', async () => {
  const batches = [[], [frame('partial', 'a'), frame('partial', 'b')], [frame('final', 'c')]]
  const stream = setUp({ head: eventStream, batches })
  await stream.done
  assert.deepEqual(stream.wire.slice(1), ['200…', 'ab', 'c', 'end'])
  const plain = setUp({ batches: [[frame('final', 'x')]] })
  await plain.done
  assert.deepEqual(plain.wire.slice(1), ['200 x'])
  const empty = setUp({ batches: [], head: { status: 202, headers: {} } })
  await empty.done
  assert.deepEqual(empty.wire.slice(1), ['202 '])
})

test('all frames of a complete response are one write', async () => {
  const frames = [frame('progress', '1'), frame('final', '2')]
  const forward = async () => ({ kind: 'frames', head: json, frames, attempts: [] }) as const
  const { done, wire, records } = setUp({ plane: { forward } })
  await done
  assert.deepEqual(wire, ['200 12'])
  assert.deepEqual([records.at(-1)?.result, records.at(-1)?.frames], ['completed', 2])
})

test('a request of the upstream to the caller is recorded before it is sent, and not sent if that fails', async () => {
  const serverRequest: Frame = { ...frame('request', '?'), messages: [{ method: 'elicitation/create', args }] }
  const batches = [[frame('progress', '1'), serverRequest], [frame('final', '2')]]
  const { done, wire, records } = setUp({ head: eventStream, batches })
  await done
  assert.deepEqual(wire.slice(1), ['200…', '1?', '2', 'end'])
  assert.deepEqual(
    records.map(({ kind, method, argsBytes }) => [kind, method, argsBytes]),
    [
      ['intent', 'tools/call', 15],
      ['message', 'elicitation/create', 15],
      ['outcome', 'tools/call', 15],
    ],
  )
  const unwritable = (rec: Rec) => rec.kind === 'message'
  const closed = setUp({ head: eventStream, batches, unwritable })
  await closed.done
  assert.deepEqual(closed.wire.slice(1), ['200 audit_unavailable'])
  const open = setUp({ head: eventStream, batches, unwritable, audit: 'open' })
  await open.done
  assert.deepEqual(open.wire.slice(1), ['200…', '1?', '2', 'end'])
})

test('a value that arrives after the abort is ignored, and an aborted call waits for none', async () => {
  const waiting = new CallAbort()
  const callbacks: ((value: string) => void)[] = []
  const result = waiting.untilCalledBack<string>((callback) => void callbacks.push(callback))
  waiting.stop('client', null)
  callbacks[0]?.('late')
  assert.equal(await result, aborted)
  assert.equal(await waiting.untilCalledBack<string>((callback) => callback('at once')), aborted)
})

test('a reply that arrives after its caller left is closed, and the call ends without it', async () => {
  const answer = Promise.withResolvers<Reply>()
  const closing = Promise.withResolvers<void>()
  const forward = () => {
    setImmediate(() => call.abort.stop('client', null))
    return answer.promise
  }
  const call = setUp({ plane: { forward } })
  await call.done
  assert.deepEqual(
    call.records.map(({ kind, result }) => [kind, result]),
    [
      ['intent', undefined],
      ['outcome', 'cancelled'],
    ],
  )
  const done = { done: true, value: undefined } as const
  const iterator = {
    next: async () => done,
    async return() {
      closing.resolve()
      return done
    },
  }
  answer.resolve({ kind: 'frames', head: json, attempts: [], frames: { [Symbol.asyncIterator]: () => iterator } })
  await closing.promise
})

test('a plane that throws or rejects while forwarding fails the call in the same way', async () => {
  const rejects = async () => Promise.reject(new Error('a secret'))
  const throws = () => {
    throw new Error('a secret')
  }
  for (const forward of [rejects, throws]) {
    const { done, wire, records, logged } = setUp({ plane: { forward } })
    await done
    assert.deepEqual(wire, ['200 internal'])
    assert.deepEqual(logged, ['forwarding failed {"call":"c1","error":"a secret"}'])
    assert.deepEqual(
      records.map(({ kind, result, reason }) => [kind, result, reason]),
      [
        ['intent', undefined, 'scope'],
        ['outcome', 'failed', 'forwarding failed'],
      ],
    )
  }
})

test('an abort listener is called once, and not after it was removed', () => {
  const abort = new CallAbort()
  const events: string[] = []
  const removed = () => void events.push('removed')
  abort.addEventListener('abort', removed)
  abort.addEventListener('abort', () => void events.push(`first ${abort.aborted} ${abort.reason}`))
  abort.addEventListener('abort', { handleEvent: () => void events.push('second') })
  abort.removeEventListener('abort', removed)
  abort.stop('client', null)
  abort.stop('drain', null)
  abort.addEventListener('abort', removed)
  assert.deepEqual(events, ['first true client', 'second'])
  const alone = new CallAbort()
  alone.addEventListener('abort', removed)
  alone.removeEventListener('abort', () => {})
  alone.stop('client', null)
  assert.deepEqual(events, ['first true client', 'second', 'removed'])
})

test('a pending approval sends a head after two seconds and heartbeats every fifteen; its grant starts the second pass', async () => {
  const granted = Promise.withResolvers<'granted'>()
  const wait = { kind: 'wait', approvalId: 'ap-1', until: granted.promise }
  const { clock, done, wire, records } = setUp({ approval: (pass) => (pass === 1 ? wait : undefined) })
  await clock.advance(0)
  await clock.advance(1_999)
  assert.deepEqual(wire, [])
  await clock.advance(1)
  assert.deepEqual(wire, ['200…', ':'])
  await clock.advance(30_000)
  assert.deepEqual(wire, ['200…', ':', ':', ':'])
  granted.resolve('granted')
  await done
  assert.deepEqual(wire.slice(4), ['forward sent, 1 records', '{"ok":1}', 'end'])
  assert.equal(records.at(-1)?.result, 'completed')
})

test('a caller that limits its wait gets approval_pending', async () => {
  const wait = { kind: 'wait', approvalId: 'ap-1', until: new Promise(() => {}) }
  const { clock, done, wire, records } = setUp({ approval: () => wait, headers: { prefer: 'respond-async, wait=3' } })
  await clock.advance(0)
  await clock.advance(2_999)
  assert.deepEqual(wire, [])
  await clock.advance(1)
  await done
  assert.deepEqual([wire, records.length, records[0]?.code], [['200 approval_pending'], 1, 'approval_pending'])
})

test('a call whose caller leaves while its approval is pending is recorded as cancelled and not forwarded', async () => {
  const wait = { kind: 'wait', approvalId: 'ap-1', until: new Promise(() => {}) }
  const { done, abort, records } = setUp({ approval: () => wait })
  setImmediate(() => abort.stop('client', null))
  await done
  assert.deepEqual(
    records.map(({ kind, result }) => [kind, result]),
    [['outcome', 'cancelled']],
  )
})

test('a call whose caller leaves at the final frame is completed, and one whose caller leaves earlier is cancelled', async () => {
  const endings: unknown[] = []
  for (const role of ['partial', 'final'] as const) {
    const unended = async function* () {
      yield [frame('partial', 'a')]
      yield [frame(role, 'b')]
      await new Promise(() => {})
    }
    const plane: Partial<Plane> = {
      forward: async () => ({ kind: 'frames', head: eventStream, frames: unended(), attempts: [] }),
    }
    const { clock, done, abort, wire, records } = setUp({ plane })
    await clock.advance(1)
    assert.deepEqual(wire, ['200…', 'a', 'b'])
    abort.stop('client', null)
    await done
    endings.push([records.at(-1)?.result, records.at(-1)?.status])
  }
  assert.deepEqual(endings, [
    ['cancelled', 200],
    ['completed', 200],
  ])
})

test('frames that throw fail the call: an upstream failure with its code, a bug with a log line and the decision id', async () => {
  const ended: unknown[] = []
  for (const error of [new UpstreamError('too slow', { code: 'upstream_timeout' }), new TypeError('a bug')]) {
    const failing = async function* () {
      yield [frame('partial', 'a')]
      throw error
    }
    const plane: Partial<Plane> = {
      forward: async () => ({ kind: 'frames', head: eventStream, frames: failing(), attempts: [] }),
    }
    const { done, wire, records, logged } = setUp({ plane })
    await done
    ended.push([records.at(-1)?.result, records.at(-1)?.code, wire.join(' '), logged])
  }
  const log = 'reading the response failed {"call":"c1","error":"a bug"}'
  assert.deepEqual(ended, [
    ['failed', 'upstream_timeout', '200… a abort upstream_timeout end', []],
    ['failed', 'internal', '200… a abort internal end', [log]],
  ])
})

test('a stream that its upstream suspends is recorded as suspended, and ends without an error', async () => {
  const suspended = async function* () {
    yield [frame('partial', 'a')]
    return 'suspended'
  }
  const plane: Partial<Plane> = {
    forward: async () => ({ kind: 'frames', head: eventStream, frames: suspended(), attempts: [] }),
  }
  const { done, wire, records } = setUp({ plane })
  await done
  assert.deepEqual([records.at(-1)?.result, wire], ['suspended', ['200…', 'a', 'end']])
})

test('an expired token ends a stream within the next tick, with a terminal error', async () => {
  const never = async function* () {
    yield [frame('partial', 'a')]
    await new Promise(() => {})
  }
  const plane: Partial<Plane> = {
    forward: async () => ({ kind: 'frames', head: eventStream, frames: never(), attempts: [] }),
  }
  const { clock, done, wire, records } = setUp({
    plane,
    authenticate: () => ({ ...ada, expiresAt: Date.UTC(2026, 0, 1) + 60_000 }),
  })
  await clock.advance(59_999)
  assert.deepEqual(wire, ['200…', 'a'])
  await clock.advance(251)
  await done
  assert.deepEqual(wire, ['200…', 'a', 'abort unauthenticated', 'end'])
  assert.equal(records.at(-1)?.result, 'cut')
})

test('a long call is rechecked when the snapshot changes, not only at the next tick', async () => {
  let denial: Denial | null = null
  const plane: Partial<Plane> = {
    forward: async () => ({
      kind: 'frames',
      head: eventStream,
      attempts: [],
      frames: (async function* () {
        yield [frame('partial', 'a')]
        await new Promise(() => {})
      })(),
    }),
  }
  const { clock, done, snapshots, records } = setUp({ operation: 'mcp.listen', plane, still: () => denial })
  await clock.advance(1)
  denial = deny('policy_denied', 'new rule')
  snapshots.publish({ name: 'policy', initial: 0 }, 1)
  await done
  assert.deepEqual([records.at(-1)?.result, records.at(-1)?.code], ['cut', 'policy_denied'])
})

test('a drain aborts long calls at once, waits for the others, and ends all', async () => {
  const hanging: Partial<Plane> = { forward: () => new Promise(() => {}) }
  const { clock, done, live, records } = setUp({ plane: hanging })
  await clock.advance(1)
  const drained = live.drain(5_000)
  await clock.advance(4_999)
  assert.equal(live.size, 1)
  await clock.advance(1)
  await done
  await drained
  assert.deepEqual([live.size, records.at(-1)?.result, records.at(-1)?.code], [0, 'cut', 'state_unavailable'])
})

test('a call that policy does not allow is never forwarded without an approval, whatever the stages return', async () => {
  const unasked = setUp({ decided: 'require_approval' })
  await unasked.done
  assert.deepEqual(unasked.wire, ['200 policy_denied'])
  const { kind, policy, rule } = only(unasked.records)
  assert.deepEqual([kind, policy, rule], ['decision', 'p', 'r'])
  const use = { approval: { approvalId: 'ap-1', by: ['ada'] } }
  const approved = setUp({ decided: 'require_approval', approval: () => use })
  await approved.done
  assert.deepEqual(approved.wire, ['forward unsent, 1 records', '200 {"ok":1}'])
})
