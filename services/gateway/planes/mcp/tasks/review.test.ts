import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deny, type ErrorCode } from '../../../call/index.ts'
import { testCall, testTarget } from '../../../call/testing/call.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { McpFrame } from '../frames/frame.ts'
import { NOTHING_SEALED } from '../frames/seals.ts'
import { McpBody, type McpRequest } from '../message.ts'
import { createTaskReview } from './review.ts'
import type { CancelledTask } from './tasks.ts'

const SESSION = { id: 'upstream-1', target: 'default/notes' }

const request: McpRequest = {
  ...NOTHING_SEALED,
  ...{ kind: 'request', era: 'legacy', revision: '2025-11-25', method: 'tools/call', name: 'work', id: 1, bytes: null },
  ...{ session: SESSION, lastEvent: null, shared: null },
}

const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'work', task: {} } }
const body = new McpBody(Buffer.from(JSON.stringify(message)), message, true)

/** Reviews the response that creates a task whose owner cannot be stored for this reason. Returns the cancelled tasks. */
async function reviewed(code: ErrorCode): Promise<readonly CancelledTask[]> {
  const cancelled: CancelledTask[] = []
  const denial = deny(code, 'not stored')
  const review = createTaskReview({
    tasks: { find: () => null, bind: async () => denial, changes: () => false },
    requestOf: () => request,
    cancel: async (_, task, owner) => {
      assert.equal(owner, testIdentity)
      cancelled.push(task)
      return true
    },
  })
  const target = { ...testTarget, key: 'default/notes', server: 'notes', tool: 'work' }
  const call = testCall(
    { identity: testIdentity, target },
    { operation: 'mcp.call', method: 'tools/call', server: 'notes', body },
  )
  const task = { taskId: 'task-1', status: 'working' }
  const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { task } }))
  const verdict = await review.open(call)?.frame(McpFrame.written('final', json))
  assert.equal(verdict, denial)
  return cancelled
}

test('a task that gets no owner is cancelled at its server, in the session in which it was created', async () => {
  const expected = { server: 'notes', target: 'default/notes', revision: '2025-11-25', id: 'task-1', session: SESSION }
  for (const code of ['rate_limited', 'state_unavailable'] as const) assert.deepEqual(await reviewed(code), [expected])
})

test('a task of another owner is not cancelled', async () => {
  assert.deepEqual(await reviewed('upstream_error'), [])
})
