import assert from 'node:assert/strict'
import { isObject, member, runAtOnce, type Steps } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { isDenial, type TextRedactor } from '../../call/index.ts'
import { stepless } from '../../call/testing/steps.ts'
import { parsedOrUndefined, strictMessage } from '../wire/message.ts'
import { A2aFrame } from './frame.ts'
import { ownTasks } from './list.ts'
import { readParams } from './message.ts'
import { A2A_METHODS, methodRow } from './methods.ts'
import { inOneForm, requestOf } from './read.ts'
import { joinedParts } from './redact/parts.ts'
import { A2aRequest } from './request.ts'
import { isResponseTo, namedIn, responseIn, StreamProgress } from './response.ts'
import { VersionError } from './versions/members.ts'
import { downgradedRequest } from './versions/requests.ts'
import { downgradedResponse, upgradedResponse } from './versions/responses.ts'
import { LEGACY_METHODS } from './versions/tables.ts'

const request = near([
  '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}',
  '"message":{"taskId":"t","contextId":"c","referenceTaskIds":["r"],"metadata":{"skillId":"s"}}',
  '"configuration":{"taskPushNotificationConfig":{"url":"https://h.example/","token":"x"}}',
  '{"jsonrpc":"2.0","id":"x","method":"GetTask","params":{"id":"t","tenant":""}}',
  '{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}}',
  '"parts":[{"kind":"file","file":{"uri":"u","mimeType":"m"}},{"kind":"data","data":{"value":1.0},"metadata":{"data_part_compat":true}}]',
])
const id = fc.oneof(
  fc.constantFrom('mine', '', null, undefined, 7, ['mine'], { id: 'mine' }),
  fc.string({ maxLength: 6 }),
)
const spelling = fc.constantFrom(
  'taskId',
  'task_id',
  'contextId',
  'context_id',
  'referenceTaskIds',
  'reference_task_ids',
)
const response = near([
  '{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}',
  '{"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"parts":[{"text":"a"},{"text":"b"}]}}}}',
  '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"x"}}',
  '{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"working"},"history":[]}}',
  '{"jsonrpc":"2.0","id":1,"result":{"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[]}}}',
  '{"jsonrpc":"2.0","id":1,"result":{"tasks":[{"id":"t"},{"id":"u","n":12345678901234567890}],"nextPageToken":"p","totalSize":2}}',
])

const legacyName = fc.constantFrom(...Object.values(LEGACY_METHODS))

const listed = fc.record(
  { tasks: fc.array(fc.oneof(fc.record({ id }), id)), nextPageToken: id, totalSize: fc.nat() },
  { requiredKeys: [] },
)

/** Returns the ids of a message as a lenient ProtoJSON parser reads them: both spellings, all values converted to strings. */
function lenientIds(message: Readonly<Record<string, unknown>>): readonly string[] {
  const one = (...names: readonly string[]) =>
    names.map((name) => message[name]).filter((value) => value !== undefined && value !== null)
  const lists = one('referenceTaskIds', 'reference_task_ids').filter((value) => Array.isArray(value))
  const all = [...one('taskId', 'task_id').slice(0, 1), ...one('contextId', 'context_id').slice(0, 1), ...lists.flat()]
  return all.map(String).filter((text) => text !== '')
}

/** Passes every text unchanged, in other pieces. */
class Late implements TextRedactor {
  #held = ''

  push(piece: string): Steps<string> {
    const all = this.#held + piece
    this.#held = all.slice(-2)
    return stepless(all.slice(0, -2))
  }

  end(): string {
    return this.#held
  }
}

function requestIn(bytes: Uint8Array) {
  const read = strictMessage(bytes)
  return isDenial(read) ? read : requestOf(read.value)
}

export const target = fuzzTarget('a2a', {
  'any body is read or refused': fc.property(request, fc.constantFrom(...A2A_METHODS), (text, method) => {
    const message = requestIn(Buffer.from(text))
    if (isDenial(message)) return
    const row = methodRow(method)
    if (row !== null) readParams(message.params, row, method)
  }),
  'no reader finds an id in a message that passed which the gateway did not see': fc.property(
    fc.dictionary(spelling, id),
    (given) => {
      const row = methodRow('SendMessage')
      assert.ok(row !== null)
      const message: Readonly<Record<string, unknown>> = { messageId: 'm', ...given }
      const read = readParams({ message }, row, 'SendMessage')
      if (isDenial(read)) return
      assert.deepEqual(lenientIds(message).toSorted(), [...read.tasks, ...read.contexts].toSorted())
    },
  ),
  'any request of 0.3 becomes one of 1.0 and 0.3 again, or is refused': fc.property(
    request,
    legacyName,
    (text, method) => {
      const bytes = Buffer.from(text)
      const message = requestIn(bytes)
      if (isDenial(message)) return
      try {
        const once = inOneForm(bytes, message, { method, version: '0.3' })
        const back = downgradedRequest(once.bytes, method)
        const again = inOneForm(back, JSON.parse(back.toString()), { method, version: '0.3' })
        const params = member(once.value, 'params')
        // A request with a tenant is refused.
        if (member(params, 'tenant') === undefined) assert.deepEqual(member(again.value, 'params'), params)
      } catch (error) {
        assert.ok(error instanceof VersionError, String(error))
      }
    },
  ),
  'any answer of 0.3 becomes one of 1.0 and 0.3 again, or is refused': fc.property(
    response,
    legacyName,
    (text, method) => {
      const json = Buffer.from(text)
      if (parsedOrUndefined(json) === undefined) return
      const once = upgradedResponse(json, method)
      downgradedResponse(json, method)
      if (once === null || once === json) return
      const again = upgradedResponse(downgradedResponse(once, method), method)
      // 0.3 requires ids that 1.0 may leave out.
      assert.equal(namedIn(JSON.parse(String(once))) === null, namedIn(JSON.parse(String(again))) === null)
    },
  ),
  'any answer is understood or refused': fc.property(response, (text) => {
    const json = Buffer.from(text)
    if (parsedOrUndefined(json) === undefined) return
    try {
      const frame = A2aFrame.body('final', json)
      const found = responseIn(frame)
      if (found === null) return
      assert.equal(Object.hasOwn(found, 'result'), !Object.hasOwn(found, 'error'))
      assert.equal(isResponseTo(new A2aRequest({ method: 'GetTask', idValue: 1 }), frame), found.id === 1)
      const named = namedIn(found)
      if (named === null) return
      for (const id of [...named.tasks, ...named.contexts]) assert.ok(typeof id === 'string' && id !== '')
      new StreamProgress().took(found)
    } catch (error) {
      assert.equal(error instanceof Error && error.name, 'JsonError')
      return
    }
    ownTasks({ json, value: parsedOrUndefined(json) }, { owns: () => true, sealPage: () => 'sealed' })
  }),
  'a list holds nothing of others': fc.property(listed, (result) => {
    const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
    const own = ownTasks(
      { json, value: JSON.parse(String(json)) },
      { owns: (task) => task === 'mine', sealPage: () => 'sealed' },
    )
    if (own === null) return
    const parsed = JSON.parse(String(own)).result
    assert.ok(parsed.tasks.every((task: unknown) => isObject(task) && task.id === 'mine'))
    assert.equal(parsed.totalSize, parsed.tasks.length)
    assert.ok(parsed.nextPageToken === '' || parsed.nextPageToken === 'sealed')
  }),
  'texts in parts stay what they are when nothing is taken out': fc.property(
    fc.array(fc.record({ text: fc.string() }), { maxLength: 5 }),
    (parts) => {
      const joined = runAtOnce(joinedParts({ a: [{ parts }] }, () => new Late()))
      const textsIn = (value: unknown) => JSON.stringify(value).replaceAll('"},{"text":"', '')
      assert.equal(textsIn(joined), textsIn({ a: [{ parts }] }))
    },
  ),
})
