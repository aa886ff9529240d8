import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorTable } from '@plat/gateway/call'
import {
  AccountNeededError,
  ApprovalPendingError,
  ApprovalRefusedError,
  BudgetExceededError,
  DeniedError,
  RevokedError,
  ScopeMissingError,
} from '../index.ts'
import { DENIAL_CODES } from './codes.ts'
import { denialIn, deniedBy } from './error.ts'

const json = { 'content-type': 'application/json' }

test('the codes are those of the gateway', () => {
  assert.deepEqual([...DENIAL_CODES].sort(), Object.keys(errorTable).sort())
})

test('a JSON-RPC error has every member of the refusal', () => {
  const data = { error: 'policy_denied', decisionId: 'd1', policy: 'default/p', rule: 'no', retryAfterMs: 1500 }
  const error = Object.assign(new Error('not this one'), { code: 403, data })
  const denied = deniedBy(error)
  assert.ok(denied instanceof DeniedError)
  const { code, status, policy, rule, decisionId, retryAfterMs, message, cause } = denied
  assert.deepEqual(
    [code, status, policy, rule, decisionId, retryAfterMs, message],
    ['policy_denied', 403, 'default/p', 'no', 'd1', 1500, 'not this one'],
  )
  assert.equal(cause, error)
})

test('a tool result has every member of the refusal', () => {
  const result = refusedResult({ error: 'policy_denied', policy: 'default/p', rule: 'no', retryAfterMs: 1500 })
  const denied = deniedBy(result)
  assert.ok(denied instanceof DeniedError)
  const { code, status, policy, rule, decisionId, retryAfterMs, message } = denied
  assert.deepEqual(
    [code, status, policy, rule, decisionId, retryAfterMs, message],
    ['policy_denied', 403, 'default/p', 'no', 'd1', 1500, 'the reason'],
  )
})

test('results of tools are not a denial, also if they failed or only resemble one', () => {
  const { _meta } = refusedResult({ error: 'policy_denied' })
  const others = [
    { content: [] },
    { content: [], isError: true },
    { content: [], isError: true, _meta: {} },
    { content: [], _meta },
    refusedResult({ error: 'of the tool' }),
  ]
  for (const one of others) assert.equal(deniedBy(one), null, JSON.stringify(one))
})

function refusedResult(denial: object) {
  const data = { code: 403, decisionId: 'd1', reason: 'the reason', ...denial }
  return { content: [{ type: 'text', text: 'x' }], isError: true, _meta: { 'plat.dev/denial': data } }
}

test('codes of a protocol are not a status', () => {
  const denied = deniedBy({ code: -32601, message: 'no', data: { error: 'unknown_method', decisionId: 'd' } })
  assert.equal(denied?.status, 0)
})

test('ErrorInfo of A2A is read, also where a client put it into a cause', () => {
  const metadata = { error: 'rate_limited', decisionId: 'd2', retryAfterMs: '2000' }
  const data = [{ '@type': 'other' }, { reason: 'RATE_LIMITED', domain: 'plat.dev', metadata }]
  const cause = Object.assign(new Error('later'), { envelopeCode: 429, data })
  const denied = deniedBy(new Error('SSE event contained an error', { cause }))
  assert.deepEqual(
    [denied?.code, denied?.status, denied?.retryAfterMs, denied?.decisionId],
    ['rate_limited', 429, 2000, 'd2'],
  )
})

test('errors of model clients are read with their headers', () => {
  const headers = new Headers({ 'x-plat-decision-id': 'd3', 'retry-after': '7' })
  const openai = {
    status: 429,
    headers,
    error: { message: 'used up', type: 'x', param: null, code: 'budget_exceeded' },
  }
  const spent = deniedBy(openai)
  assert.ok(spent instanceof BudgetExceededError)
  assert.deepEqual([spent.decisionId, spent.retryAfterMs, spent.message], ['d3', 7000, 'used up'])
  const body = { type: 'error', error: { type: 'x', message: 'wait', code: 'approval_pending', approval_id: 'a1' } }
  const waits = deniedBy({ status: 503, headers, error: body })
  assert.ok(waits instanceof ApprovalPendingError)
  assert.equal(waits.approvalId, 'a1')
})

test('each kind has its class', () => {
  const of = (error: string, more: object = {}) => deniedBy({ code: 403, message: 'm', data: { error, ...more } })
  assert.ok(of('approval_denied') instanceof ApprovalRefusedError)
  assert.ok(of('approval_expired') instanceof ApprovalRefusedError)
  assert.ok(of('approval_stale') instanceof ApprovalRefusedError)
  assert.ok(of('revoked') instanceof RevokedError)
  assert.ok(of('suspended') instanceof RevokedError)
  const account = of('upstream_credential', { connectURL: 'https://gateway.example/connect', provider: 'github' })
  assert.ok(account instanceof AccountNeededError)
  assert.deepEqual([account.connectURL, account.provider], ['https://gateway.example/connect', 'github'])
  assert.equal(of('upstream_credential') instanceof AccountNeededError, false)
})

test('errors of upstreams are not denials', () => {
  const others = [
    new Error('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) }),
    { status: 429, error: { message: 'slow down', code: 'rate_limit_exceeded' } },
    { code: -32602, message: 'no such tool', data: { name: 'x' } },
    { code: 403, message: 'no', data: { error: 'made_up' } },
    null,
    'policy_denied',
    { error: null, data: null, cause: undefined },
  ]
  for (const one of others) assert.equal(deniedBy(one), null, JSON.stringify(one))
})

test('errors of the AI SDK are read, also after its own attempts', () => {
  const error = { message: 'used up', type: 'x', param: null, code: 'budget_exceeded' }
  const call = Object.assign(new Error('Too Many Requests'), {
    statusCode: 429,
    responseHeaders: { 'X-Plat-Decision-Id': 'd3', 'retry-after': '7' },
    responseBody: JSON.stringify({ error }),
  })
  const retried = Object.assign(new Error('Failed after 3 attempts'), { lastError: call, errors: [call] })
  for (const one of [call, retried, new Error('tool', { cause: retried })]) {
    const spent = deniedBy(one)
    assert.ok(spent instanceof BudgetExceededError)
    assert.deepEqual([spent.decisionId, spent.retryAfterMs, spent.status, spent.cause], ['d3', 7000, 429, one])
  }
  const others = [{ statusCode: 429, responseBody: '{"error":' }, { responseBody: 7 }, { responseHeaders: null }]
  for (const one of others) assert.equal(deniedBy(Object.assign(new Error('x'), one)), null)
})

test('errors that cause themselves are followed to an end', () => {
  const error = new Error('round and round')
  error.cause = error
  assert.equal(deniedBy(error), null)
})

test('a plain refusal is read off a response, whose body is still there', async () => {
  const challenge = 'Bearer realm="plat", error="insufficient_scope", scope="tools:notes tools:web"'
  const headers = { ...json, 'www-authenticate': challenge, 'x-plat-decision-id': 'd4' }
  const body = JSON.stringify({ error: 'insufficient_scope', message: 'no', requestId: 'd4' })
  const response = new Response(body, { status: 403, headers })
  const denied = await denialIn(response)
  assert.ok(denied instanceof ScopeMissingError)
  assert.deepEqual([denied.scopes, denied.status, denied.decisionId], [['tools:notes', 'tools:web'], 403, 'd4'])
  assert.equal(await response.text(), body)
  assert.equal(await denialIn(new Response('{"error":"unknown_tool"}', { status: 200, headers: json })), null)
  assert.equal(await denialIn(new Response('not json', { status: 502, headers: json })), null)
  assert.equal(await denialIn(new Response('<p>', { status: 502 })), null)
})
