import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Denial, deny } from '../../call/index.ts'
import { refusalHeaders } from './refusal.ts'

const waitOf = (denial: Denial) => {
  const headers = refusalHeaders(denial)
  return [headers['retry-after'], headers['x-should-retry']]
}

test('a refusal as unavailable says when to repeat the call', () => {
  assert.deepEqual(waitOf(deny('state_unavailable', 'x')), ['2', undefined])
  assert.deepEqual(waitOf(deny('audit_unavailable', 'x')), ['2', undefined])
  assert.deepEqual(waitOf(deny('guard_unavailable', 'x')), ['2', undefined])
  assert.deepEqual(waitOf(deny('backlog_full', 'x')), ['1', undefined])
})

test('clients do not repeat what only a person, a long wait or another request helps', () => {
  assert.deepEqual(waitOf(deny('policy_denied', 'x')), [undefined, 'false'])
  assert.deepEqual(waitOf(deny('rate_limited', 'the prompt is too long')), [undefined, 'false'])
  assert.deepEqual(waitOf(deny('upstream_credential', 'x')), [undefined, 'false'])
  assert.deepEqual(waitOf(deny('rate_limited', 'x', { retryAfterMs: 60_001 })), ['61', 'false'])
  assert.deepEqual(waitOf(deny('rate_limited', 'x', { retryAfterMs: 60_000 })), ['60', undefined])
  assert.deepEqual(waitOf(deny('upstream_error', 'x')), [undefined, undefined])
})
