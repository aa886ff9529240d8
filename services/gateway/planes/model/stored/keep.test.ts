import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deny, isDenial, unresolved } from '../../../call/index.ts'
import { testCall } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { responses } from '../dialects/responses.ts'
import { ModelFrame } from '../frame.ts'
import { bodyOf, endpointAt, openaiWire } from '../testing.ts'
import { createKeepReview, type KeepOptions } from './keep.ts'

const wire = { ...openaiWire, native: new Set(['responses']) }
const base: KeepOptions = {
  endpointOf: () => ({ ...endpointAt('http://m.example/v1'), wire }),
  labelsOf: () => ['web'],
  keepResponse: async () => {},
  keepFile: () => null,
  release: async () => null,
}

const target = { ...unresolved, kind: 'model', key: 'r' } as const

function openedFor(options: Partial<KeepOptions>, request: object = {}) {
  const body = bodyOf({ model: 'm', input: 'hi', ...request }, responses)
  const call = { operation: 'model.generate', method: 'responses', server: 'r', name: 'm', body } as const
  const facts = { identity: testIdentity, target }
  return createKeepReview({ ...base, ...options }).open(testCall(facts, call)) ?? assert.fail()
}

const frameOf = (value: object) => ModelFrame.body(Buffer.from(JSON.stringify(value)))
const response = {
  id: 'resp_1',
  output: [
    { type: 'message', id: 'msg_1', content: [] },
    { type: 'code_interpreter_call', id: 'ci_1', container_id: 'cntr_1' },
  ],
}

test('a response waits until its owner is stored, with its items, containers and labels', async () => {
  const gate = Promise.withResolvers<void>()
  const stored: unknown[] = []
  const running = openedFor({
    keepResponse(storing, ids) {
      stored.push([storing.account, storing.labels, ids])
      return gate.promise
    },
  })
  const frame = frameOf(response)
  let isPassed = false
  const passing = Promise.resolve(running.frame(frame)).then((frames) => {
    isPassed = true
    return frames
  })
  await Promise.resolve()
  assert.equal(isPassed, false)
  assert.deepEqual(stored, [['http://m.example/v1', ['web'], ['resp_1', 'msg_1', 'ci_1', 'cntr_1']]])
  gate.resolve()
  assert.deepEqual(await passing, [frame])
})

test('of a response that is not stored, only items and containers that need their id have an owner', async () => {
  const stored: (readonly string[])[] = []
  const keepResponse: KeepOptions['keepResponse'] = async (_, ids) => void stored.push(ids)
  await openedFor({ keepResponse }, { store: false }).frame(frameOf(response))
  await openedFor({ keepResponse }, { store: false }).frame(
    frameOf({ ...response, output: response.output.slice(0, 1) }),
  )
  assert.deepEqual(stored, [['ci_1', 'cntr_1']])
})

test('a file whose owner cannot be stored is not given to the caller', async () => {
  const facts = { identity: testIdentity, target: { ...target, accounts: new Set(['a']) } }
  const call = { operation: 'model.file', method: 'files', server: 'r', name: null } as const
  const options = { ...base, keepFile: async () => deny('state_unavailable', 'no journal') }
  const running = createKeepReview(options).open(testCall(facts, call)) ?? assert.fail()
  assert.ok(isDenial(await running.frame(frameOf({ id: 'file-1' }))))
})
