import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { listening } from '@plat/testkit/local'
import { type ApprovalView, isCut, withWholeArguments } from './approvals.ts'

const cut: ApprovalView = {
  ...{ id: 'a', state: 'pending', session: 's', namespace: 'default', agent: 'assistant', user: null },
  ...{
    server: 'notes',
    tool: 'add',
    method: 'tools/call',
    policy: null,
    rule: null,
    reason: '',
    argsSha256: 'ab',
    argsBytes: 9,
  },
  preview: { mode: 'redacted', text: '{"a"', truncated: true },
  wholeArguments: '/v1/approvals/a/arguments',
  quorum: { minApprovers: 1, approverGroups: [], userConfirmation: null, needed: 1, given: 0, votes: [] },
  createdAt: '2026-01-01T00:00:00Z',
  expiresAt: '2026-01-01T00:05:00Z',
}

test('whole arguments replace a truncated preview; who may not fetch them sees the preview', async (t) => {
  const requested: (string | undefined)[] = []
  let answer: { status: number; body: object } = { status: 200, body: { id: 'a', argsSha256: 'ab', text: '{"a":"b"}' } }
  const server = createServer((request, response) => {
    requested.push(request.url)
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
  })
  const port = await listening(server)
  t.after(() => server.close())
  const empty = { PLAT_GATEWAY_URL: '', PLAT_IDENTITY_URL: '', PLAT_BROKER_TOKEN: '', PLAT_ADMIN_TOKEN: 't' }
  const env = { ...empty, PLAT_ADMIN_URL: `http://127.0.0.1:${port}` }
  const whole = await withWholeArguments(env, cut)
  assert.deepEqual(whole.preview, { mode: 'redacted', text: '{"a":"b"}', truncated: false })
  assert.deepEqual(requested, ['/v1/approvals/a/arguments'])
  answer = { status: 403, body: { error: 'forbidden', message: 'no' } }
  assert.ok(isCut(await withWholeArguments(env, cut)))
  assert.ok(isCut(await withWholeArguments(env, { ...cut, wholeArguments: null })))
  const short = { ...cut, preview: { mode: 'full', text: '{}', truncated: false } } as const
  assert.equal(await withWholeArguments(env, short), short)
  assert.equal(requested.length, 2)
})
